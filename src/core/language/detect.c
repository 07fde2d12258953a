/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/detect.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "base/str.h"
#include "core/language/runners.h"

/*
 * Theory of operation. An extension or a "#!" line decides. Otherwise each hint of a manifest adds
 * its weight to the score of its language for every line that it matches, up to REPEATS: one habit
 * of a long program must not outweigh all others. The best score is sure if it is high enough, and
 * clearly above the next.
 */

#define LOOK_BYTES 8192 /* later text is ignored */
#define LINES_MAX  512
#define REPEATS    4
#define SURE       5
/* A word of `commands`, with arguments or without: "date" may be a variable. */
#define COMMAND_WEIGHT 6
#define COMMAND_ALONE  2
#define BLANKS         " \t\r"

struct text {
	const char *data;
	size_t len;
};

struct lines {
	struct text list[LINES_MAX];
	size_t count; /* without empty ones */
};

static bool is_blank(char c)
{
	return c && strchr(BLANKS, c);
}

static struct text trim(struct text t)
{
	while (t.len > 0 && is_blank(*t.data))
		t = (struct text){t.data + 1, t.len - 1};
	while (t.len > 0 && is_blank(t.data[t.len - 1]))
		t.len--;
	return t;
}

static void split_lines(struct text code, struct lines *ret_lines)
{
	const char *at = code.data, *end = at + (code.len < LOOK_BYTES ? code.len : LOOK_BYTES);

	while (at < end && ret_lines->count < LINES_MAX) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		struct text line = trim((struct text){at, (size_t)((stop ? stop : end) - at)});

		if (line.len > 0)
			ret_lines->list[ret_lines->count++] = line;
		at += stop ? (size_t)(stop - at) + 1 : (size_t)(end - at);
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

/* After a name: "date = 1", "head, tail". A path or an option is none: "cd /tmp", "ls -l". */
static bool is_operator(struct text rest)
{
	char first = char_at(rest, 0), second = char_at(rest, 1);

	if (first == '/' || first == '*' || first == '-' || first == '<' || first == '>')
		return second == ' ' || second == '=';
	return strchr("=+%!,:([)", first) || (rest.len >= 3 && memcmp(rest.data, "in ", 3) == 0);
}

/* Return: a weight; 0: @line begins with none of @commands. */
static unsigned weigh_command(char *const *commands, struct text line)
{
	struct text word, rest;

	while (line.len > 0 && *line.data == '(') /* a subshell */
		line = (struct text){line.data + 1, line.len - 1};
	word = (struct text){line.data, 0};
	while (isalnum((unsigned char)char_at(line, word.len)) ||
	       (char_at(line, word.len) && strchr("_-", char_at(line, word.len))))
		word.len++;
	if (word.len == 0 || !has_word(commands, word, strncmp))
		return 0;
	rest = (struct text){line.data + word.len, line.len - word.len};
	if (rest.len > 0 && !strchr(" \t;|&<>", *rest.data))
		return 0;
	if (rest.len > 0 && *rest.data == ';' && rest.len == 1)
		return 0; /* a statement of another language */
	if (rest.len == 0)
		return COMMAND_ALONE;
	return is_operator(trim(rest)) ? 0 : COMMAND_WEIGHT;
}

static unsigned score_commands(const struct runner *r, const struct lines *lines)
{
	unsigned score = 0, found = 0;

	for (size_t i = 0; r->commands && i < lines->count && found < REPEATS; i++) {
		unsigned weight = weigh_command(r->commands, lines->list[i]);

		score += weight;
		found += weight > 0;
	}
	/* "pwd" is the whole program. */
	return score == COMMAND_ALONE && lines->count == 1 ? SURE : score;
}

static unsigned score_hint(const struct hint *hint, const struct lines *lines)
{
	unsigned found = 0;

	for (size_t i = 0; i < lines->count && found < REPEATS; i++)
		found += hint_matches(hint, lines->list[i].data, lines->list[i].len);
	return found * hint->weight;
}

static unsigned score_runner(const struct runner *r, const struct lines *lines)
{
	unsigned score = score_commands(r, lines);

	for (size_t i = 0; i < r->hints_count; i++)
		score += score_hint(&r->hints[i], lines);
	return score;
}

struct score {
	const struct runner *runner;
	unsigned own, total;
};

/* Text of the extended language counts once there is some of its own. */
static void add_extended(const struct runners *all, struct score *scores, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *name = scores[i].runner->extends;
		const struct runner *base = name ? runners_find(all, name) : NULL;

		scores[i].total = scores[i].own;
		for (size_t k = 0; scores[i].own > 0 && k < count; k++)
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

void detect_language(const struct runners *all, const struct detect_subject *subject,
                     struct detection *ret_detection)
{
	struct score scores[RUNNERS_MAX];
	struct lines lines = {.count = 0};
	const struct runner *r;
	size_t count = 0;

	detect_stated(all, subject, ret_detection);
	if (ret_detection->count > 0)
		return;
	split_lines((struct text){subject->code, subject->len}, &lines);
	for (; count < RUNNERS_MAX && (r = runners_at(all, count)); count++)
		scores[count] = (struct score){.runner = r, .own = score_runner(r, &lines)};
	rank(all, scores, count, ret_detection);
}
