/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/detect.h"

#include "base/attr.h"
#include "base/str.h"
#include <ctype.h>
#include <string.h>

/*
 * Theory of operation. Typical words and forms of each language have weights; the sum over all
 * lines is its score. Most code that names no language is Python, and short code has few signs, so
 * another language must be certain: its score must reach a threshold and exceed that of Python.
 */

#define LOOK_BYTES  16384 /* later text is ignored */
#define SURE        5
#define SURE_SHELL  3
#define SURE_SINGLE 2 /* weight of a command without arguments */

/* In the order of enum language. */
static const char *const names[] = {"python", "javascript", "typescript", "go",     "rust",
                                    "java",   "c",          "cpp",        "csharp", "shell"};
enum language {
	PYTHON,
	JAVASCRIPT,
	TYPESCRIPT,
	GO,
	RUST,
	JAVA,
	C,
	CPP,
	CSHARP,
	SHELL,
	LANGUAGE_COUNT
};
static_assert(ARRAY_SIZE(names) == LANGUAGE_COUNT, "every language has its name");

/* Of a #! line; the first match counts. */
static const struct {
	const char *word;
	enum language language;
} interpreters[] = {
	{"python", PYTHON},   {"pypy", PYTHON},     {"ts-node", TYPESCRIPT},
	{"node", JAVASCRIPT}, {"deno", TYPESCRIPT}, {"sh", SHELL},
};

/* At the start of a line (after blanks), or anywhere. */
static const struct {
	const char *text;
	enum language language;
	unsigned weight;
	bool anywhere;
} signs[] = {
	{"import ", PYTHON, 1, false},
	{"from ", PYTHON, 2, false},
	{"def ", PYTHON, 4, false},
	{"class ", PYTHON, 1, false},
	{"print(", PYTHON, 3, true},
	{"elif ", PYTHON, 4, false},
	{"assert ", PYTHON, 3, false},
	{"except", PYTHON, 3, false},
	{"__name__", PYTHON, 6, true},
	{"self.", PYTHON, 2, true},
	{"async def ", PYTHON, 6, false},
	{"with open(", PYTHON, 4, false},
	{"try:", PYTHON, 4, false},
	{"lambda ", PYTHON, 2, true},
	{" = ", PYTHON, 1, true}, /* no shell has blanks there */
	{"console.log(", JAVASCRIPT, 6, true},
	{"const ", JAVASCRIPT, 2, false},
	{"let ", JAVASCRIPT, 2, false},
	{"var ", JAVASCRIPT, 1, false},
	{"function ", JAVASCRIPT, 2, false},
	{"require(", JAVASCRIPT, 4, true},
	{"=> {", JAVASCRIPT, 3, true},
	{"document.", JAVASCRIPT, 2, true},
	{"interface ", TYPESCRIPT, 4, false},
	{": string", TYPESCRIPT, 6, true},
	{": number", TYPESCRIPT, 6, true},
	{": boolean", TYPESCRIPT, 6, true},
	{"package main", GO, 9, false},
	{"func ", GO, 4, false},
	{"fmt.Print", GO, 6, true},
	{":= ", GO, 3, true},
	{"fn main()", RUST, 9, false},
	{"println!(", RUST, 6, true},
	{"let mut ", RUST, 6, false},
	{"use std::", RUST, 6, false},
	{"impl ", RUST, 3, false},
	{"public class ", JAVA, 6, false},
	{"public static void", JAVA, 6, true},
	{"System.out.print", JAVA, 9, true},
	{"import java.", JAVA, 9, false},
	{"#include <stdio.h>", C, 6, false},
	{"#include <stdlib.h>", C, 4, false},
	{"#include <string.h>", C, 3, false},
	{"int main(", C, 3, false},
	{"printf(", C, 2, false},
	{"#include <iostream>", CPP, 9, false},
	{"#include <vector>", CPP, 9, false},
	{"std::", CPP, 5, true},
	{"using namespace ", CPP, 6, false},
	{"using System", CSHARP, 9, false},
	{"Console.Write", CSHARP, 9, true},
	{"namespace ", CSHARP, 2, false},
	{"export ", SHELL, 2, false},
	{"if [", SHELL, 5, false},
	{"[ -", SHELL, 4, false},
	{"[[ -", SHELL, 4, false},
	{"[ \"$", SHELL, 4, false},
	{"; do", SHELL, 4, true},
	{"; then", SHELL, 4, true},
	{"set -", SHELL, 5, false},
	{"./", SHELL, 4, false},
	{"/", SHELL, 3, false},
	/* The lines that follow are another program. */
	{"<<EOF", SHELL, 40, true},
	{"<< EOF", SHELL, 40, true},
	{"<<'EOF'", SHELL, 40, true},
	{"<< 'EOF'", SHELL, 40, true},
	{" | ", SHELL, 1, true},
	{" && ", SHELL, 1, true},
	{" || ", SHELL, 1, true},
	{"$(", SHELL, 1, true},
	{"${", SHELL, 1, true},
};

/* At the start of a line, with or without arguments. */
static const char *const commands[] = {
	"7z",       "apt",      "apt-get", "awk",    "bash",   "basename", "cat",      "cd",
	"chmod",    "chown",    "cp",      "curl",   "cut",    "date",     "df",       "diff",
	"dirname",  "du",       "echo",    "env",    "export", "find",     "free",     "gcc",
	"git",      "go",       "grep",    "gunzip", "gzip",   "head",     "hostname", "id",
	"jq",       "kill",     "ln",      "ls",     "lscpu",  "make",     "mkdir",    "mktemp",
	"mv",       "nl",       "node",    "npm",    "nproc",  "od",       "openssl",  "pip",
	"pip3",     "printenv", "printf",  "ps",     "pwd",    "pytest",   "python",   "python3",
	"realpath", "rm",       "rmdir",   "sed",    "seq",    "sh",       "sleep",    "sort",
	"source",   "stat",     "sudo",    "tail",   "tar",    "tee",      "test",     "top",
	"touch",    "tr",       "tree",    "uname",  "uniq",   "unzip",    "uptime",   "wc",
	"wget",     "which",    "who",     "whoami", "xargs",  "yes",      "zip",
};

struct line {
	const char *text;
	size_t len;
};

static bool line_has(const struct line *line, const char *word, bool anywhere)
{
	size_t len = strlen(word);

	if (anywhere)
		return memmem(line->text, line->len, word, len);
	return line->len >= len && memcmp(line->text, word, len) == 0;
}

/* Return: '\0' past the end. */
static char char_at(const struct line *line, size_t at)
{
	if (at >= line->len)
		return '\0';
	return line->text[at];
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* "6 * 7", "'a'.upper()", "[1, 2]", "(1 + 2)": not a command. */
static bool begins_value(const struct line *line)
{
	char first = char_at(line, 0), second = char_at(line, 1);
	bool quoted = second == '"' || second == '\'';
	size_t digits = 0;

	if (first == '[')
		return is_word(second) || quoted;
	if (first == '(')
		return isdigit((unsigned char)second) || quoted;
	if (first == '"' || first == '\'')
		return true;
	while (digits < line->len && isdigit((unsigned char)line->text[digits]))
		digits++;
	/* Not a command whose name begins with digits. */
	return digits > 0 && (digits == line->len || !is_word(line->text[digits]));
}

/* "len(x)", "math.sqrt(2)", but neither "name() {" nor "puts(x);". */
static bool is_call(const struct line *line)
{
	char last = char_at(line, line->len - 1); /* an empty line: past the end */
	size_t at = 0;

	while (at < line->len && (is_word(line->text[at]) || line->text[at] == '.'))
		at++;
	return at > 0 && at < line->len && line->text[at] == '(' && last != '{' && last != ';';
}

/* "while x:"; a shell has "; do" there. */
static bool begins_block(const struct line *line)
{
	static const char *const words[] = {"while ", "for ", "if ", "with "};

	if (line->len > 1 && line->text[line->len - 1] == ':')
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (line_has(line, words[i], false) && line_has(line, ": ", true))
			return true;
	return false;
}

/* A line of its own. */
static bool is_closing(const struct line *line)
{
	static const char *const words[] = {"then", "do", "fi", "done", "esac", ";;"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (line->len == strlen(words[i]) && line_has(line, words[i], false))
			return true;
	return false;
}

/* "name() {" */
static bool begins_function(const struct line *line)
{
	size_t at = 0;

	while (at < line->len && is_word(line->text[at]))
		at++;
	return at > 0 && at + 2 < line->len && memcmp(line->text + at, "()", 2) == 0 &&
	       char_at(line, line->len - 1) == '{';
}

/* Of Python, after a name. A path or an option is none: "cd /tmp", "ls -l". */
static bool is_operator(const struct line *rest)
{
	char first = char_at(rest, 0), second = char_at(rest, 1);

	if (first == '/' || first == '*' || first == '-')
		return second == ' ' || second == '=';
	return strchr("=+%!,:([)", first) || line_has(rest, "in ", false);
}

/* The length of a command at the start of @line; 0: none. */
static size_t command_len(const struct line *line)
{
	size_t len = 0;

	while (len < line->len && (is_word(line->text[len]) || line->text[len] == '-'))
		len++;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strlen(commands[i]) == len && memcmp(commands[i], line->text, len) == 0)
			return len;
	return 0;
}

/* Neither "date = 1" nor "sort(x)", "date.year", "head, tail". Return: a weight. */
static unsigned weigh_command(const struct line *line)
{
	struct line rest = *line;
	size_t len;

	while (rest.len > 0 && *rest.text == '(') /* a subshell */
		rest = (struct line){rest.text + 1, rest.len - 1};
	len = command_len(&rest);
	rest = (struct line){rest.text + len, rest.len - len};
	if (len == 0)
		return 0;
	if (rest.len == 0)
		return SURE_SINGLE;
	if (!memchr(" \t;|&<>", *rest.text, 8))
		return 0;
	while (rest.len > 0 && (*rest.text == ' ' || *rest.text == '\t'))
		rest = (struct line){rest.text + 1, rest.len - 1};
	if (rest.len == 0)
		return SURE_SINGLE;
	return is_operator(&rest) ? 0 : SURE_SHELL + 1;
}

static void score_line(const struct line *line, unsigned scores[LANGUAGE_COUNT])
{
	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (line_has(line, signs[i].text, signs[i].anywhere))
			scores[signs[i].language] += signs[i].weight;
	/* Short Python. */
	if (begins_value(line) || is_call(line) || begins_block(line))
		scores[PYTHON] += 1;
	scores[SHELL] += weigh_command(line);
	if (begins_function(line) || is_closing(line))
		scores[SHELL] += SURE_SHELL + 1;
}

static bool next_line(const char **at, const char *end, struct line *ret_line)
{
	const char *text = *at, *stop;

	if (text >= end)
		return false;
	stop = memchr(text, '\n', (size_t)(end - text));
	if (!stop)
		stop = end;
	*at = stop + 1;
	while (text < stop && (*text == ' ' || *text == '\t'))
		text++;
	*ret_line = (struct line){text, (size_t)(stop - text)};
	return true;
}

/* Of the first line "#!..."; LANGUAGE_COUNT: none. */
static enum language find_interpreter(const char *code, const char *end)
{
	struct line line;

	if (!next_line(&code, end, &line) || !line_has(&line, "#!", false))
		return LANGUAGE_COUNT;
	for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++)
		if (line_has(&line, interpreters[i].word, true))
			return interpreters[i].language;
	return LANGUAGE_COUNT;
}

const char *detect_language(const char *code, size_t len)
{
	const char *end = code + (len < LOOK_BYTES ? len : LOOK_BYTES), *at = code;
	unsigned scores[LANGUAGE_COUNT] = {0}, lines = 0;
	enum language best = find_interpreter(code, end);
	struct line line;

	if (best != LANGUAGE_COUNT)
		return names[best];
	for (; next_line(&at, end, &line); lines += line.len > 0)
		score_line(&line, scores);
	/* "pwd" alone; among other lines it may be a variable. */
	if (lines == 1 && scores[SHELL] == SURE_SINGLE)
		scores[SHELL] = SURE_SHELL;
	/* JavaScript is valid TypeScript, and C++ may look like C. */
	if (scores[TYPESCRIPT] > 0)
		scores[TYPESCRIPT] += scores[JAVASCRIPT];
	if (scores[CPP] > 0)
		scores[CPP] += scores[C];
	best = PYTHON;
	for (int i = 0; i < LANGUAGE_COUNT; i++)
		if (scores[i] > scores[best] && scores[i] >= (i == SHELL ? SURE_SHELL : SURE))
			best = (enum language)i;
	return names[best];
}
