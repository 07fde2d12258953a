/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/options.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"

#define VALUE      "{value}"
#define BLANKS     " \t"
#define PREFIX_MAX 4096
/* Of a value that becomes a line of code. */
#define LINE_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-=.,: "
#define EXAMPLE_LEN  120
#define DIGITS       "0123456789"

static bool is_printable(const char *text, bool blanks)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f ||
		    (!blanks && strchr(BLANKS, *text)))
			return false;
	return true;
}

static void list_values(char *const *values, char *ret_text, size_t size)
{
	size_t used = 0;

	for (; *values && used + strlen(*values) + 3 < size; values++)
		used += (size_t)snprintf(ret_text + used, size - used, "%s%s", used ? ", " : "",
		                         *values);
}

/* A leading "v" is part of how Node.js writes its own. */
static const char *skip_v(const char *version)
{
	return version + (*version == 'v');
}

static bool is_version(const char *text)
{
	for (;; text++) {
		size_t len = strspn(text, DIGITS);

		if (len == 0 || len > 6)
			return false;
		text += len;
		if (*text != '.')
			return !*text;
	}
}

/* The next part, 0 past the end, and the dot behind it. */
static unsigned take_part(const char **at)
{
	unsigned number = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++)
		number = number * 10 + (unsigned)(**at - '0');
	*at += **at == '.';
	return number;
}

/* Compares as many parts as @a has. Return: as strcmp. */
static int compare_versions(const char *a, const char *b)
{
	a = skip_v(a);
	b = skip_v(b);
	while (*a) {
		unsigned x = take_part(&a), y = take_part(&b);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

/* A version of the language is written without "v": the compiler gets it as it is. */
static bool is_version_of(const struct runner_option *option, const char *value)
{
	return is_version(option->type == RUNNER_OPTION_VERSION ? skip_v(value) : value);
}

static bool is_of_version(const struct runner_option *option)
{
	return option->type == RUNNER_OPTION_VERSION ||
	       option->type == RUNNER_OPTION_LANGUAGE_VERSION;
}

static int check_value(const struct runner_option *option, const char *value, const char *field,
                       struct error *err)
{
	char list[EXAMPLE_LEN] = "";

	if (strlen(value) > OPTIONS_VALUE_MAX)
		return error_field(err, field, "exceeds %d bytes", OPTIONS_VALUE_MAX);
	if (option->type == RUNNER_OPTION_BOOL && !str_equal(value, "true") &&
	    !str_equal(value, "false"))
		return error_field(err, field, "must be true or false");
	if (option->values && !str_list_has(option->values, value)) {
		list_values(option->values, list, sizeof(list));
		return error_field(err, field, "must be one of %s", list);
	}
	if (!is_printable(value, option->type == RUNNER_OPTION_WORDS))
		return error_field(err, field, "has characters that no option has");
	if (option->before && value[strspn(value, LINE_LETTERS)])
		return error_field(err, field, "has characters that end a command");
	if (option->type == RUNNER_OPTION_PROGRAM && *value != '/')
		return error_field(err, field, "must be an absolute path in the box");
	if (is_of_version(option) && !is_version_of(option, value))
		return error_field(err, field, "must be a version, like 18 or 1.18");
	return 0;
}

static int refuse_option(const struct runner *r, const char *field, struct error *err)
{
	char list[EXAMPLE_LEN] = "none";
	size_t used = 0;

	for (size_t i = 0; i < r->options_count; i++)
		if (used + strlen(r->options[i].name) + 3 < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
			                         used ? ", " : "", r->options[i].name);
	return error_field(err, field, "is not an option of %.32s, which has: %s", r->name, list);
}

int options_check(const struct runner *r, char *const *given, struct error *err)
{
	size_t count = 0;

	for (; given && *given; given++) {
		size_t len = strcspn(*given, "=");
		cleanup_free char *name = xmemdup0(*given, len);
		const struct runner_option *option = runner_find_option(r, name);
		char field[64];

		(void)snprintf(field, sizeof(field), "options.%.48s", name);
		if (++count > OPTIONS_MAX)
			return error_field(err, "options", "at most %d are accepted", OPTIONS_MAX);
		if (!option)
			return refuse_option(r, field, err);
		if (check_value(option, (*given)[len] ? *given + len + 1 : "", field, err) < 0)
			return -1;
	}
	return 0;
}

int options_check_version(const struct runner *r, char *const *given, const char *installed,
                          struct error *err)
{
	for (size_t i = 0; installed && i < r->options_count; i++) {
		const struct runner_option *option = &r->options[i];
		const char *value = is_of_version(option) ? options_value(option, given) : NULL;
		bool most = option->type == RUNNER_OPTION_LANGUAGE_VERSION;
		int order = value && is_version_of(option, value)
		                    ? compare_versions(value, installed)
		                    : 0;
		char field[64];

		if (order == 0 || (most && order < 0))
			continue;
		(void)snprintf(field, sizeof(field), "options.%.48s", option->name);
		return error_field(err, field, "the box has %.32s %.32s, not %.32s%s", r->title,
		                   installed, value,
		                   most ? ": ask for its version or an earlier one" : "");
	}
	return 0;
}

const char *options_value(const struct runner_option *option, char *const *given)
{
	size_t len = strlen(option->name);

	for (; given && *given; given++)
		if (strncmp(*given, option->name, len) == 0 && (*given)[len] == '=')
			return *given + len + 1;
	return option->fallback;
}

/* @word with the value in place of "{value}". */
static char *put_value(const char *word, const char *value)
{
	const char *at = strstr(word, VALUE);

	if (!at)
		return xstrdup(word);
	return xasprintf("%.*s%s%s", (int)(at - word), word, value, at + strlen(VALUE));
}

struct words {
	char **list;
	size_t count;
};

static void add_word(struct words *words, char *word)
{
	if (words->count == OPTIONS_WORDS_MAX) {
		free(word);
		return;
	}
	words->list[words->count++] = word;
}

/* A template of one "{value}" becomes as many words as the value has. */
static void add_split(struct words *words, const char *value)
{
	while (*(value += strspn(value, BLANKS))) {
		size_t len = strcspn(value, BLANKS);

		add_word(words, xmemdup0(value, len));
		value += len;
	}
}

char **options_words(const struct runner *r, char *const *given, bool compile)
{
	struct words words = {.list = xcalloc(OPTIONS_WORDS_MAX + 1, sizeof(char *))};

	for (size_t i = 0; i < r->options_count; i++) {
		const struct runner_option *option = &r->options[i];
		char *const *form = compile ? option->compile : option->run;
		const char *value = options_value(option, given);

		if (!value || (option->type == RUNNER_OPTION_BOOL && !str_equal(value, "true")))
			continue;
		for (; form && *form; form++)
			if (option->type == RUNNER_OPTION_WORDS && str_equal(*form, VALUE))
				add_split(&words, value);
			else
				add_word(&words, put_value(*form, value));
	}
	return words.list;
}

const char *options_of_type(const struct runner *r, char *const *given,
                            enum runner_option_type type)
{
	for (size_t i = 0; i < r->options_count; i++) {
		const char *value = options_value(&r->options[i], given);

		if (r->options[i].type == type && value)
			return value;
	}
	return NULL;
}

bool options_compile(const struct runner *r, char *const *given)
{
	const struct runner_option *option =
		r->compile_if ? runner_find_option(r, r->compile_if) : NULL;

	return r->compile_command && (!option || str_equal(options_value(option, given), "true"));
}

char *options_prefix(const struct runner *r, char *const *given)
{
	cleanup_buf struct buf text = BUF_INIT(PREFIX_MAX);

	for (size_t i = 0; i < r->options_count; i++) {
		const struct runner_option *option = &r->options[i];
		const char *value = options_value(option, given);
		cleanup_free char *line =
			option->before && value && *value ? put_value(option->before, value) : NULL;

		/* Values are bounded (OPTIONS_VALUE_MAX): few options have a line. */
		if (line && buf_addf(&text, "%s\n", line) < 0)
			break;
	}
	return text.len > 0 ? xmemdup0(text.data, text.len) : NULL;
}
