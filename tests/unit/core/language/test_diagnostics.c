/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "base/alloc.h"
#include "core/language/diagnostics.h"

static char rust[] = "{file}:{line}:{column}: {severity}[{code}]: {message}";
static char gnu[] = "{file}:{line}:{column}: {severity}: {message}";
static char microsoft[] = "{file}({line},{column}): {severity} {code}: {message}";
static char java[] = "{file}:{line}: {severity}: {message}";
static char *forms[] = {rust, gnu, microsoft, java, NULL};

struct expected {
	const char *text, *file, *severity, *code, *message;
	unsigned line, column;
};

static void each_form_gives_its_fields(void **state)
{
	static const struct expected table[] = {
		{"a.c:3:7: error: no: such thing", "a.c", "error", "", "no: such thing", 3, 7},
		{"main.rs:2:5: error[E0425]: cannot find", "main.rs", "error", "E0425",
	         "cannot find", 2, 5},
		{"x.cs(12,34): warning CS0168: unused", "x.cs", "warning", "CS0168", "unused", 12,
	         34},
		{"A.java:9: error: ';' expected", "A.java", "error", "", "';' expected", 9, 0},
		{"/tmp/millibox-build/b.c:1:2: fatal error: x", "b.c", "fatal error", "", "x", 1,
	         2},
		{"./d/b.c:1:2: note: x", "d/b.c", "note", "", "x", 1, 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct expected *e = &table[i];
		struct diagnostics d;

		diagnostics_read(forms, e->text, strlen(e->text), &d);
		assert_int_equal(d.count, 1);
		assert_string_equal(d.list[0].file, e->file);
		assert_string_equal(d.list[0].severity, e->severity);
		assert_string_equal(d.list[0].code, e->code);
		assert_string_equal(d.list[0].message, e->message);
		assert_int_equal(d.list[0].line, e->line);
		assert_int_equal(d.list[0].column, e->column);
		diagnostics_done(&d);
	}
}

static void other_lines_are_skipped(void **state)
{
	static const char text[] = "main.c: In function 'main':\n"
				   "    2 | int x = \"a\"\n"
				   "a:b:c: error: no number\n"
				   ":1:1: error: no file\n"
				   "\n"
				   "a.c:1:1:\n";
	struct diagnostics d;

	(void)state;
	diagnostics_read(forms, text, strlen(text), &d);
	assert_int_equal(d.count, 0);
	diagnostics_done(&d);
	diagnostics_read(NULL, text, strlen(text), &d);
	assert_int_equal(d.count, 0);
}

static void caret_gives_a_missing_column(void **state)
{
	static const char text[] = "A.java:9: error: x\n  int y = z;\n          ^\n";
	struct diagnostics d;

	(void)state;
	diagnostics_read(forms, text, strlen(text), &d);
	assert_int_equal(d.count, 1);
	assert_int_equal(d.list[0].column, 11);
	diagnostics_done(&d);
}

static void number_and_length_are_bounded(void **state)
{
	static const char line[] = "a.c:1:1: error: x\n";
	size_t len = sizeof(line) - 1, count = DIAGNOSTICS_MAX + 50;
	cleanup_free char *many = xcalloc(count, len);
	cleanup_free char *longer = xcalloc(1, 100000);
	struct diagnostics d;

	(void)state;
	for (size_t i = 0; i < count; i++)
		memcpy(many + i * len, line, len);
	diagnostics_read(forms, many, count * len, &d);
	assert_int_equal(d.count, DIAGNOSTICS_MAX);
	diagnostics_done(&d);
	memset(longer, ':', 99999);
	diagnostics_read(forms, longer, 99999, &d);
	assert_int_equal(d.count, 0);
	diagnostics_done(&d);
}

/* The time that a line takes grows with the places where a name may end. */
static void a_long_name_is_no_file(void **state)
{
	static const char rest[] = ":1:1: error: x";
	char line[600];
	struct diagnostics d;

	(void)state;
	memset(line, 'a', sizeof(line));
	memcpy(line + 300, rest, sizeof(rest) - 1);
	diagnostics_read(forms, line, 300 + sizeof(rest) - 1, &d);
	assert_int_equal(d.count, 1);
	diagnostics_done(&d);
	memset(line, 'a', sizeof(line));
	memcpy(line + 500, rest, sizeof(rest) - 1);
	line[200] = ':'; /* a first place that does not fit */
	diagnostics_read(forms, line, 500 + sizeof(rest) - 1, &d);
	assert_int_equal(d.count, 0);
	diagnostics_done(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form_gives_its_fields),
		cmocka_unit_test(other_lines_are_skipped),
		cmocka_unit_test(caret_gives_a_missing_column),
		cmocka_unit_test(number_and_length_are_bounded),
		cmocka_unit_test(a_long_name_is_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
