/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/detect.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "base/str.h"
#include "core/language/mask.h"
#include "core/language/runners.h"

/*
 * Theory of operation. An extension or a "#!" line decides. Otherwise literals are hidden (mask.h),
 * and each hint of a manifest adds its weight to the score of its language for every line that it
 * matches, up to REPEATS: one habit of a long program must not outweigh all others. The best score
 * is sure if it is high enough, and clearly above the next.
 */

#define LOOK_BYTES     8192 /* later text is ignored */
#define LINES_MAX      512
#define STARTS_MAX     1024
#define STARTS_OF_LINE 32 /* each may be read to the end of its line: the code is untrusted */
#define REPEATS        4
#define SURE           5
/* A word of `commands`, with arguments or without: "date" may be a variable. */
#define COMMAND_WEIGHT 6
#define COMMAND_ALONE  2

struct text {
	const char *data;
	size_t len;
};

/* A statement, up to the end of its line. */
struct start {
	struct text rest;
	size_t line;
};

struct lines {
	struct text list[LINES_MAX];
	size_t count; /* without empty ones */
	struct start starts[STARTS_MAX];
	size_t starts_count;
};

static bool is_one_of(char c, const char *letters)
{
	return c && strchr(letters, c);
}

static bool is_blank(char c)
{
	return is_one_of(c, " \t\r");
}

static struct text trim(struct text t)
{
	while (t.len > 0 && is_blank(*t.data))
		t = (struct text){t.data + 1, t.len - 1};
	while (t.len > 0 && is_blank(t.data[t.len - 1]))
		t.len--;
	return t;
}

static void add_start(struct lines *lines, struct text rest)
{
	rest = trim(rest);
	if (rest.len > 0 && lines->starts_count < STARTS_MAX)
		lines->starts[lines->starts_count++] =
			(struct start){.rest = rest, .line = lines->count};
}

/* A line begins a statement, and so do ";" and "{ ". */
static void add_line(struct lines *lines, struct text line)
{
	size_t count = 1;

	if (line.len == 0)
		return;
	add_start(lines, line);
	for (size_t i = 0; i < line.len && count < STARTS_OF_LINE; i++) {
		if (line.data[i] != ';' &&
		    (line.data[i] != '{' || i + 1 == line.len || line.data[i + 1] != ' '))
			continue;
		add_start(lines, (struct text){line.data + i + 1, line.len - i - 1});
		count++;
	}
	lines->list[lines->count++] = line;
}

static void split_lines(struct text code, struct lines *lines)
{
	const char *at = code.data, *end = at + code.len;

	while (at < end && lines->count < LINES_MAX) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);

		add_line(lines, trim((struct text){at, len}));
		at += len + 1;
	}
}

typedef int compare_fn(const char *a, const char *b, size_t len);

static bool has_word(char *const *list, struct text word, compare_fn *compare)
{
	for (; list && *list; list++)
		if (strlen(*list) == word.len && compare(*list, word.data, word.len) == 0)
			return true;
	return false;
}

static char **extensions_of(const struct runner *r)
{
	return r->extensions;
}

static char **interpreters_of(const struct runner *r)
{
	return r->interpreters;
}

/* All languages whose list has @word. */
static void find_claims(const struct runners *all, char **(*list_of)(const struct runner *r),
                        struct text word, struct detection *d)
{
	const struct runner *r;

	for (size_t i = 0; word.len > 0 && (r = runners_at(all, i)); i++)
		if (has_word(list_of(r), word, strncasecmp) && d->count < DETECT_CANDIDATES_MAX)
			d->candidates[d->count++] = r;
	d->is_sure = d->count == 1;
}

static struct text find_extension(const char *file_name)
{
	const char *slash = strrchr(file_name, '/'), *base = slash ? slash + 1 : file_name;
	const char *dot = strrchr(base, '.');

	/* ".sh" alone is a hidden file. */
	if (!dot || dot == base)
		return (struct text){"", 0};
	return (struct text){dot + 1, strlen(dot + 1)};
}

/* The last part of a path. Its length is 0 at the end of the line. */
static struct text next_program(struct text *rest)
{
	struct text word = {0};

	*rest = trim(*rest);
	word.data = rest->data;
	while (word.len < rest->len && !is_blank(rest->data[word.len]))
		word.len++;
	*rest = (struct text){rest->data + word.len, rest->len - word.len};
	for (size_t i = word.len; i > 0; i--)
		if (word.data[i - 1] == '/')
			return (struct text){word.data + i, word.len - i};
	return word;
}

/* Of a "#!" line, without a version: "python3.11" is "python". */
static struct text find_interpreter(const struct detect_subject *s)
{
	size_t len = s->len < LOOK_BYTES ? s->len : LOOK_BYTES;
	struct text line = {s->code, len}, program;
	const char *newline;

	if (len < 2 || memcmp(s->code, "#!", 2) != 0)
		return (struct text){"", 0};
	newline = memchr(s->code, '\n', len);
	line = (struct text){s->code + 2, (newline ? (size_t)(newline - s->code) : len) - 2};
	program = next_program(&line);
	if (program.len == 3 && memcmp(program.data, "env", 3) == 0)
		/* Options of env ("-S", "-i") and NAME=value precede it. */
		do
			program = next_program(&line);
		while (program.len > 0 &&
		       (*program.data == '-' || memchr(program.data, '=', program.len)));
	while (program.len > 0 && (isdigit((unsigned char)program.data[program.len - 1]) ||
	                           program.data[program.len - 1] == '.'))
		program.len--;
	return program;
}

void detect_stated(const struct runners *all, const struct detect_subject *subject,
                   struct detection *ret_detection)
{
	struct detection *d = ret_detection;

	*d = (struct detection){0};
	if (subject->file_name)
		find_claims(all, extensions_of, find_extension(subject->file_name), d);
	if (d->count == 0)
		find_claims(all, interpreters_of, find_interpreter(subject), d);
}

static char char_at(struct text t, size_t at)
{
	char c = '\0';

	if (at < t.len)
		c = t.data[at];
	return c;
}

/* "date in x" is Python. */
static bool is_keyword(struct text rest)
{
	static const char *const words[] = {"in ", "is ", "and ", "or ", "if ", "for ", "not "};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (rest.len >= strlen(words[i]) &&
		    memcmp(rest.data, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

/* After a name: "date = 1", "head, tail". A path or an option is none: "cd /tmp", "ls -l". */
static bool is_operator(struct text rest)
{
	char first = char_at(rest, 0), second = char_at(rest, 1);

	if (is_one_of(first, "/*-+<>"))
		return second == ' ' || second == '=';
	return !first || is_one_of(first, "=%!,:([)") || is_keyword(rest);
}

static struct text skip(struct text t, size_t len)
{
	return trim((struct text){t.data + len, t.len - len});
}

static size_t span_word(struct text t, const char *more)
{
	size_t len = 0;

	while (isalnum((unsigned char)char_at(t, len)) || is_one_of(char_at(t, len), more))
		len++;
	return len;
}

/* The parenthesis of a subshell, and NAME=value in front of a command. */
static struct text skip_settings(struct text line)
{
	size_t len;

	while (char_at(line, 0) == '(')
		line = skip(line, 1);
	while ((len = span_word(line, "_")) > 0 && char_at(line, len) == '=') {
		while (len < line.len && !is_blank(line.data[len]))
			len++;
		line = skip(line, len);
	}
	return line;
}

/* The last ";" of a line ends a statement of another language, but not ";;" and "\\;". */
static bool ends_statement(struct text rest)
{
	return rest.data[rest.len - 1] == ';' && !is_one_of(char_at(rest, rest.len - 2), ";\\");
}

/* Return: a weight; 0: @line begins with none of @commands. */
static unsigned weigh_command(char *const *commands, struct text line)
{
	struct text word, rest;

	line = skip_settings(line);
	word = (struct text){line.data, span_word(line, "_-")};
	if (word.len == 0 || !has_word(commands, word, strncmp))
		return 0;
	rest = (struct text){line.data + word.len, line.len - word.len};
	if (rest.len == 0)
		return COMMAND_ALONE;
	if (!is_one_of(*rest.data, " \t;|&<>") || ends_statement(rest))
		return 0;
	return is_operator(trim(rest)) ? 0 : COMMAND_WEIGHT;
}

static unsigned score_commands(const struct runner *r, const struct lines *lines)
{
	unsigned score = 0, found = 0;
	size_t last = LINES_MAX;

	for (size_t i = 0; r->commands && i < lines->starts_count && found < REPEATS; i++) {
		const struct start *s = &lines->starts[i];
		unsigned weight = s->line == last ? 0 : weigh_command(r->commands, s->rest);

		if (weight > 0)
			last = s->line;
		score += weight;
		found += weight > 0;
	}
	/* "pwd" is the whole program. */
	return score == COMMAND_ALONE && lines->count == 1 ? SURE : score;
}

/* Most do not: without a call. */
static bool may_begin(const struct hint *hint, char first)
{
	return hint->parts[0].kind != HINT_TEXT || *hint->parts[0].text == first;
}

static unsigned count_starts(const struct hint *hint, const struct lines *lines)
{
	unsigned found = 0;
	size_t last = LINES_MAX;

	for (size_t i = 0; i < lines->starts_count && found < REPEATS; i++) {
		const struct start *s = &lines->starts[i];

		if (s->line == last || !may_begin(hint, *s->rest.data) ||
		    !hint_matches(hint, s->rest.data, s->rest.len))
			continue;
		last = s->line;
		found++;
	}
	return found;
}

static unsigned count_lines(const struct hint *hint, const struct lines *lines)
{
	unsigned found = 0;

	for (size_t i = 0; i < lines->count && found < REPEATS; i++)
		found += hint_matches(hint, lines->list[i].data, lines->list[i].len);
	return found;
}

static unsigned score_runner(const struct runner *r, const struct lines *lines)
{
	unsigned score = score_commands(r, lines);

	for (size_t i = 0; i < r->hints_count; i++) {
		const struct hint *hint = &r->hints[i];

		score += hint->weight *
		         (hint->at_start ? count_starts(hint, lines) : count_lines(hint, lines));
	}
	return score;
}

struct score {
	const struct runner *runner;
	unsigned own, total;
};

/* Text of the extended language counts once there is enough of its own. */
static void add_extended(const struct runners *all, struct score *scores, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *name = scores[i].runner->extends;
		const struct runner *base = name ? runners_find(all, name) : NULL;

		scores[i].total = scores[i].own;
		for (size_t k = 0; scores[i].own >= SURE && k < count; k++)
			if (scores[k].runner == base)
				scores[i].total += scores[k].own;
	}
}

/* The first that extends the second has its score and more. */
static bool is_clear(const struct score *best, const struct score *next)
{
	if (best->total < SURE)
		return false;
	if (best->runner->extends && str_equal(best->runner->extends, next->runner->name))
		return true;
	return next->total * 4 <= best->total * 3;
}

static void rank(const struct runners *all, struct score *scores, size_t count, struct detection *d)
{
	struct score *order[DETECT_CANDIDATES_MAX] = {0};

	add_extended(all, scores, count);
	for (size_t i = 0; i < count; i++) {
		struct score *s = &scores[i];

		/* An insertion; of equal ones the first stays first. */
		for (size_t k = 0; s && s->total > 0 && k < DETECT_CANDIDATES_MAX; k++)
			if (!order[k] || s->total > order[k]->total) {
				struct score *moved = order[k];

				order[k] = s;
				s = moved;
			}
	}
	d->is_sure = order[0] && order[0]->total >= SURE;
	for (size_t k = 0; k < DETECT_CANDIDATES_MAX && order[k]; k++) {
		d->candidates[d->count++] = order[k]->runner;
		if (k > 0)
			d->is_sure &= is_clear(order[0], order[k]);
	}
}

/* @code: LOOK_BYTES. Return: what is looked at, without literals. */
static struct text take_code(const struct detect_subject *subject, char *code)
{
	size_t len = subject->len < LOOK_BYTES ? subject->len : LOOK_BYTES;

	if (len > 0)
		memcpy(code, subject->code, len);
	mask_literals(code, len, subject->len > len);
	return (struct text){code, len};
}

void detect_language(const struct runners *all, const struct detect_subject *subject,
                     struct detection *ret_detection)
{
	struct score scores[RUNNERS_MAX];
	struct lines lines = {.count = 0};
	char code[LOOK_BYTES];
	const struct runner *r;
	size_t count = 0;

	detect_stated(all, subject, ret_detection);
	if (ret_detection->count > 0)
		return;
	split_lines(take_code(subject, code), &lines);
	for (; count < RUNNERS_MAX && (r = runners_at(all, count)); count++)
		scores[count] = (struct score){.runner = r, .own = score_runner(r, &lines)};
	rank(all, scores, count, ret_detection);
}
