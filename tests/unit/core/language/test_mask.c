/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "base/attr.h"
#include "base/str.h"
#include "core/language/mask.h"
#include <stdlib.h>
#include <string.h>

/* @expected has "." where @text is hidden. */
static void check_cut(const char *text, const char *expected, bool is_cut)
{
	size_t len = strlen(text);
	cleanup_free char *copy = xmemdup0(text, len);

	mask_literals(copy, len, is_cut);
	for (size_t i = 0; i < len; i++)
		if (copy[i] == MASK)
			copy[i] = '.';
	if (!str_equal(copy, expected))
		fail_msg("%s\nbecame\n%s\ninstead of\n%s", text, copy, expected);
}

static void check(const char *text, const char *expected)
{
	check_cut(text, expected, false);
}

static void text_in_quotes_is_hidden(void **state)
{
	(void)state;
	check("print(\"ls; rm\")", "print(\"......\")");
	check("a = 'x y' + f'z'", "a = '...' + f'.'");
	check("x = rb'ab'", "x = rb'..'");
	/* Punctuation and escapes stay. */
	check("puts \"#{x}: a\\n\"", "puts \"#{.}:..\\n\"");
	check("echo \"$x\" '$y'", "echo \"$.\" '$.'");
	check("\"\\\"a\" b", "\"\\\".\" b");
	check("`a ${b}` c", "`..${.}` c");
	check("''''a'''b", "'''..'''b");
}

static void text_of_several_lines_is_hidden(void **state)
{
	(void)state;
	check("s = \"\"\"\nimport x\n\"\"\"\nb", "s = \"\"\"\n........\n\"\"\"\nb");
	check("s = '''a 'b'\nc''' d", "s = '''.....\n.''' d");
	check("f(`a\n${b}\n`); c", "f(`.\n....\n`); c");
	check("python3 -c '\na b\n' c", "python3 -c '\n...\n' c");
	check("python3 -c \"a\nb\" c", "python3 -c \".\n.\" c");
	check("/* a\n * b */ c", "/*..\n.....*/ c");
}

static void what_is_not_closed_is_code(void **state)
{
	(void)state;
	check("don't print(x)", "don't print(x)");
	check("a 'b\nc", "a 'b\nc");
	check("x = \"\"\"\ny", "x = \"\"\"\ny");
	check("a `b\nc", "a `b\nc");
	check("/* a\nb", "/* a\nb");
	check("fn f<'a>(x: &'a str) -> &'a str", "fn f<'a>(x: &'a str) -> &'a str");
	check("```\nprint(x)\n```", "```\nprint(x)\n```");
	check("cat <<EOF\na", "cat <<EOF\na");
}

/* Its end may be in what was cut off. */
static void what_is_cut_off_may_close(void **state)
{
	(void)state;
	check_cut("x = \"\"\"\ny", "x = \"\"\"\n.", true);
	check_cut("cat <<EOF\na", "cat <<EOF\n.", true);
	check_cut("cat << 'EOF'\na", "cat << 'EOF'\n.", true);
	/* A shift, and an output of C++. */
	check_cut("y = 1 << n\na", "y = 1 << n\na", true);
	check_cut("cout << \"Sum\"\na", "cout << \"...\"\na", true);
	check_cut("a 'b\nc", "a 'b\nc", true);
}

static void comments_are_hidden(void **state)
{
	(void)state;
	check("x = 1 # import y", "x = 1 #.........");
	check("#!/bin/sh\n# a\n#b", "#........\n#..\n#b");
	check("#include <x>\n$# ${#a[@]} x#y", "#include <x>\n$# ${#a[@]} x#y");
	check("// a b\nx; // c\n", "//....\nx; //..\n");
	check("a // b\nhttp://c/d", "a // b\nhttp://c/d");
	check("-- a\nx -- b\n--x", "--..\nx -- b\n--x");
	check("f(/* a */ b)", "f(/*...*/ b)");
}

static void documents_are_hidden(void **state)
{
	(void)state;
	check("cat > a <<EOF\nimport x\nEOF\nls", "cat > a <<EOF\n........\nEOF\nls");
	check("cat << 'EOF' > a\nb\nEOF\n", "cat << 'EOF' > a\n.\nEOF\n");
	check("x <<-EOF | y\na\n\tEOF\nb", "x <<-EOF | y\n.\n\tEOF\nb");
	check("x = <<~RUBY\n  a\nRUBY\nb", "x = <<~RUBY\n...\nRUBY\nb");
	check("$x = <<<HTML\n<a>\nHTML;\nb", "$x = <<<HTML\n...\nHTML;\nb");
	check("cat <<EOF\nEOFX\nEOF", "cat <<EOF\n....\nEOF");
}

/* The buffer has no byte more than the text: a sanitizer sees what is touched beyond. */
static void hostile_text_stays_within_bounds(void **state)
{
	static const char *const units[] = {
		"\"",    "'",    "`",       "\\",       "/*",      "//",  "#",   "<<",
		"<<A\n", "<<'",  "\"\"\"",  "'''",      "'\n",     "\\'", "-- ", "-c '\n",
		"```",   "\"\\", "<<\"A\"", "a <<AB\n", "\0\"\0'", " r'", "<<-",
	};
	enum {
		LEN = 8192
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		for (size_t len = LEN - 8; len <= LEN; len++) {
			char *text = malloc(len);
			size_t unit = strlen(units[i]) ? strlen(units[i]) : 4;

			assert_non_null(text);
			for (size_t at = 0; at < len; at++)
				text[at] = units[i][at % unit];
			mask_literals(text, len, len % 2);
			mask_literals(text, len % unit, len % 2);
			free(text);
		}
	mask_literals(NULL, 0, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_in_quotes_is_hidden),
		cmocka_unit_test(text_of_several_lines_is_hidden),
		cmocka_unit_test(what_is_not_closed_is_code),
		cmocka_unit_test(what_is_cut_off_may_close),
		cmocka_unit_test(comments_are_hidden),
		cmocka_unit_test(documents_are_hidden),
		cmocka_unit_test(hostile_text_stays_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
