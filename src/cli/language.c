/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/language.h"

#include <ctype.h>
#include <string.h>

#include "base/attr.h"
#include "base/str.h"

struct rule {
	const char *word;
	const char *language;
};

static const struct rule extensions[] = {
	{"py", "python"},
	{"pyw", "python"},
	{"sh", "shell"},
	{"bash", "shell"},
};

/* Without a trailing version. */
static const struct rule interpreters[] = {
	{"python", "python"}, {"pypy", "python"}, {"sh", "shell"},
	{"bash", "shell"},    {"dash", "shell"},  {"ash", "shell"},
};

struct slice {
	const char *text;
	size_t len;
};

static const char *find_rule(const struct rule *rules, size_t count, struct slice word)
{
	for (size_t i = 0; i < count; i++) {
		if (strlen(rules[i].word) == word.len &&
		    strncmp(rules[i].word, word.text, word.len) == 0)
			return rules[i].language;
	}
	return NULL;
}

const char *language_of_name(const char *file_name)
{
	const char *slash = strrchr(file_name, '/');
	const char *base = slash ? slash + 1 : file_name;
	const char *dot = strrchr(base, '.');

	/* ".sh" alone is a hidden file. */
	if (!dot || dot == base)
		return NULL;
	return find_rule(extensions, ARRAY_SIZE(extensions),
	                 (struct slice){dot + 1, strlen(dot + 1)});
}

/* Its length is 0 at the end. */
static struct slice next_word(struct slice *rest)
{
	struct slice word;
	size_t start = 0, end;

	while (start < rest->len && (rest->text[start] == ' ' || rest->text[start] == '\t'))
		start++;
	end = start;
	while (end < rest->len && !isspace((unsigned char)rest->text[end]))
		end++;
	word = (struct slice){rest->text + start, end - start};
	rest->text += end;
	rest->len -= end;
	return word;
}

static struct slice base_name(struct slice path)
{
	for (size_t i = path.len; i > 0; i--) {
		if (path.text[i - 1] == '/')
			return (struct slice){path.text + i, path.len - i};
	}
	return path;
}

const char *language_of_code(const char *code, size_t len)
{
	const char *newline;
	struct slice line, program;

	if (len < 2 || code[0] != '#' || code[1] != '!')
		return NULL;
	newline = memchr(code, '\n', len);
	line = (struct slice){code + 2, (newline ? (size_t)(newline - code) : len) - 2};
	program = base_name(next_word(&line));
	if (program.len == 3 && strncmp(program.text, "env", 3) == 0) {
		/* Options of env ("-S", "-i") and NAME=value precede it. */
		do
			program = next_word(&line);
		while (program.len > 0 &&
		       (program.text[0] == '-' || memchr(program.text, '=', program.len)));
		program = base_name(program);
	}
	/* "python3.11" -> "python" */
	while (program.len > 0 && (isdigit((unsigned char)program.text[program.len - 1]) ||
	                           program.text[program.len - 1] == '.'))
		program.len--;
	return find_rule(interpreters, ARRAY_SIZE(interpreters), program);
}
