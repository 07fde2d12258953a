/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/paragraph.h"

#define HELP_COLUMN 30

/* Kinds of positive numbers: parser and example. */
struct number_kind {
	int (*parse)(const char *text, uint64_t *ret_value);
	const char *expected;
};

static const struct number_kind number_kinds[OPTION_KIND_COUNT] = {
	[OPTION_SIZE] = {parse_size, "a size such as 512Mi or 1Gi"},
	[OPTION_CPU] = {parse_cpu, "a number of cores such as 1, 0.5 or 500m"},
	[OPTION_DURATION] = {parse_duration, "a time such as 30, 1.5, 500ms or 5m"},
	[OPTION_NUMBER] = {parse_u64, "a whole number"},
};

struct parser {
	const struct options *options;
	char **next; /* first unparsed word */
	void *values;
	struct args *args;
	const char **given; /* by row: the value of an option that may be given once; NULL: none */
};

/* By a name of @len bytes; @name NULL: by @letter. */
static const struct option_row *find_row(const struct options *options, const char *name,
                                         size_t len, char letter)
{
	for (size_t i = 0; i < options->count; i++) {
		const struct option_row *row = &options->rows[i];

		if (name ? strlen(row->name) == len && strncmp(row->name, name, len) == 0
		         : row->letter == letter)
			return row;
	}
	return NULL;
}

static void list_add(struct option_list *list, const char *item)
{
	list->items = xrealloc_array(list->items, list->count + 1, sizeof(*list->items));
	list->items[list->count++] = item;
}

static int store_number(const struct option_row *row, const char *text, uint64_t *ret_number,
                        struct error *err)
{
	const struct number_kind *kind = &number_kinds[row->kind];
	uint64_t value = 0;
	int r = kind->parse(text, &value);

	if (r == -ERANGE)
		return error_set(err, ERR_INVALID, 0, "--%s: '%s' is too large", row->name, text);
	if (r < 0)
		return error_set(err, ERR_INVALID, 0, "--%s: '%s' is not %s", row->name, text,
		                 kind->expected);
	if (value == 0)
		return error_set(err, ERR_INVALID, 0, "--%s: must be greater than 0", row->name);
	*ret_number = value;
	return 0;
}

/* Of two values the caller may mean either. */
static int note_given(struct parser *p, const struct option_row *row, const char *text,
                      struct error *err)
{
	const char **before = &p->given[row - p->options->rows];

	if (*before)
		return error_set(err, ERR_INVALID, 0,
		                 "--%s is given twice, as '%.100s' and as '%.100s'", row->name,
		                 *before, text);
	*before = text;
	return 0;
}

static int store_value(struct parser *p, const struct option_row *row, const char *text,
                       struct error *err)
{
	void *slot = (char *)p->values + row->offset;

	if (row->kind == OPTION_LIST) {
		list_add(slot, text);
		return 0;
	}
	if (note_given(p, row, text, err) < 0)
		return -1;
	if (row->kind == OPTION_TEXT) {
		*(const char **)slot = text;
		return 0;
	}
	return store_number(row, text, slot, err);
}

/* Words of other programs that are not close to ours. */
static const struct {
	const char *given, *meant;
} other_names[] = {
	{"detach", "background"},
	{"image", "template"},
	{"name", "id"},
	{"ttl", "lifetime"},
};

/* Return: the option's name, or NULL. */
static const char *find_meant(const struct options *options, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(other_names); i++) {
		const char *meant = other_names[i].meant;

		if (str_equal(other_names[i].given, name) &&
		    find_row(options, meant, strlen(meant), 0))
			return meant;
	}
	return NULL;
}

static int refuse_unknown(const struct parser *p, const char *word, const char *name,
                          struct error *err)
{
	struct suggest s = {.word = name};
	const char *meant = find_meant(p->options, name);

	for (size_t i = 0; i < p->options->count; i++)
		suggest_offer(&s, p->options->rows[i].name);
	suggest_offer(&s, "help");
	meant = meant ? meant : s.best;
	if (meant)
		return error_set(err, ERR_INVALID, 0, "unknown option '%s'; did you mean '--%s'?",
		                 word, meant);
	if (p->options->program_word > 0 && p->options->has_program(p->values))
		return error_set(err, ERR_INVALID, 0,
		                 "unknown option '%s'; put '--' before arguments of the program",
		                 word);
	return error_set(err, ERR_INVALID, 0, "unknown option '%s'", word);
}

bool options_is_flag(const struct option_row *row)
{
	return row->kind == OPTION_FLAG || row->kind == OPTION_IGNORED;
}

/* @attached: value in the same word, or NULL. */
static int take_option(struct parser *p, const struct option_row *row, const char *attached,
                       struct error *err)
{
	if (options_is_flag(row)) {
		if (attached)
			return error_set(err, ERR_INVALID, 0, "--%s takes no value", row->name);
		if (row->kind == OPTION_FLAG)
			*(bool *)((char *)p->values + row->offset) = true;
		return 0;
	}
	if (!attached && !*p->next)
		return error_set(err, ERR_INVALID, 0, "--%s requires a value (%s)", row->name,
		                 row->value);
	return store_value(p, row, attached ? attached : *p->next++, err);
}

static int parse_long(struct parser *p, const char *word, struct error *err)
{
	const char *name = word + 2;
	const char *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct option_row *row = find_row(p->options, name, len, 0);
	cleanup_free char *bare = NULL;

	if (row)
		return take_option(p, row, equals ? equals + 1 : NULL, err);
	bare = xstrndup(name, len);
	return refuse_unknown(p, word, bare, err);
}

/* "-" is a file. */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1];
}

static void add_word(struct args *args, const char *word)
{
	struct option_list words = {args->words, args->words_count};

	list_add(&words, word);
	args->words = words.items;
	args->words_count = words.count;
}

static int parse_word(struct parser *p, const char *word, struct error *err)
{
	const struct option_row *row;

	if (str_has_prefix(word, "--"))
		return parse_long(p, word, err);
	if (is_option(word)) {
		row = find_row(p->options, NULL, 0, word[1]);
		return row ? take_option(p, row, word[2] ? word + 2 : NULL, err)
		           : refuse_unknown(p, word, word + 1, err);
	}
	add_word(p->args, word);
	return 0;
}

static int take_rest(struct parser *p)
{
	p->args->rest = p->next;
	p->args->rest_count = str_list_count(p->next);
	return 0;
}

/* The next word is the program, or its first argument. All that follows is the program's. */
static int take_program(struct parser *p)
{
	if (!p->options->has_program(p->values))
		add_word(p->args, *p->next++);
	p->next += *p->next && str_equal(*p->next, "--");
	return take_rest(p);
}

/* After "--": the words up to the program are no options. All that follows is the program's. */
static int take_operands(struct parser *p)
{
	size_t wanted = p->options->program_word;

	if (wanted > 0 && p->options->has_program(p->values))
		wanted--;
	while (*p->next && p->args->words_count < wanted)
		add_word(p->args, *p->next++);
	return take_rest(p);
}

int options_parse(const struct options *options, char **argv, void *values, struct args *ret_args,
                  struct error *err)
{
	cleanup_free const char **given = xcalloc(options->count + 1, sizeof(*given));
	struct parser p = {options, argv, values, ret_args, given};

	*ret_args = (struct args){0};
	while (*p.next) {
		const char *word = *p.next;

		if (!is_option(word) && ret_args->words_count + 1 == options->program_word)
			return take_program(&p);
		p.next++;
		if (str_equal(word, "--"))
			return take_operands(&p);
		if (str_equal(word, "--help") || str_equal(word, "-h")) {
			ret_args->help = true;
			return 0;
		}
		if (parse_word(&p, word, err) < 0)
			return -1;
	}
	return 0;
}

void options_done(const struct options *options, void *values, struct args *args)
{
	for (size_t i = 0; i < options->count; i++) {
		const struct option_row *row = &options->rows[i];
		struct option_list *list = (void *)((char *)values + row->offset);

		if (row->kind != OPTION_LIST)
			continue;
		free(list->items);
		*list = (struct option_list){0};
	}
	free(args->words);
	*args = (struct args){0};
}

static void print_row(const struct option_row *row, FILE *out)
{
	cleanup_free char *left = NULL;
	const char *value = row->value ? row->value : "";
	const char *space = row->value ? " " : "";

	if (row->letter)
		left = xasprintf("-%c, --%s%s%s", row->letter, row->name, space, value);
	else
		left = xasprintf("    --%s%s%s", row->name, space, value);
	(void)fprintf(out, "  %-26s  ", left);
	paragraph_print(row->help, HELP_COLUMN, out);
	(void)fputc('\n', out);
}

void options_print_help(const struct options *options, FILE *out)
{
	static const struct option_row help = {
		.name = "help", .letter = 'h', .help = "show this text"};

	for (size_t i = 0; i < options->count; i++)
		print_row(&options->rows[i], out);
	print_row(&help, out);
}
