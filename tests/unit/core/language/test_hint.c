/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/attr.h"
#include "core/language/hint.h"
#include <stdlib.h>
#include <string.h>

static void check(const char *value, const char *line, bool matches)
{
	struct hint h;

	if (hint_parse(value, &h) < 0)
		fail_msg("refused: %s", value);
	if (hint_matches(&h, line, strlen(line)) != matches)
		fail_msg("'%s' and '%s': not %s", value, line, matches ? "true" : "false");
	hint_done(&h);
}

static void fields_stand_for_what_varies(void **state)
{
	(void)state;
	check("4 ^def ", "def f():", true);
	check("4 ^def ", "x def f", false);
	check("4 def ", "x def f", true);
	check("4 ^{name}() {", "main_2() { echo; }", true);
	check("4 ^{name}() {", "2main() {", false);
	check("4 ^{name}() {{end}", "f() {", true);
	check("4 ^{name}() {{end}", "f() { x", false);
	check("4 ^fi{end}", "fi", true);
	check("4 ^fi{end}", "find", false);
	check("4 ^{name}={number}{end}", "a=50", true);
	check("4 ^{name}={number}{end}", "a=b", false);
	/* The last parenthesis, not the first. */
	check("4 ^{name}({any}){end}", "f(g(x))", true);
	check("4 ^{name}({any}){end}", "f(g(x)) + 1", false);
	check("4 ^for {any} in {any}:{end}", "for a, b in c:", true);
	check("4 ^for {any} in {any}:{end}", "for a, b of c:", false);
	/* Not at its first occurrence. */
	check("4 @{name} =", "@ @x =", true);
	check("4 {{name}", "{ {x", true);
	check("4 {other}", "a {other}", true);
	/* Not beyond a statement. */
	check("4 ^import {any} from ", "import a from b", true);
	check("4 ^import {any} from ", "import a; b from c", false);
	check("4 ^{name}({any}){end}", "f(x); g(y)", false);
	check("4 ^for {any}; do", "for x in y; do", true);
	check("4 ^import {any};{end}", "import a.b;", true);
	check("4 ^{int|char} {name}(", "char f()", true);
	check("4 ^{int|char} {name}(", "chart f()", false);
	/* The first that fits, without a second try. */
	check("4 ^{int|interface} x", "interface x", false);
	check("4 ^{interface|int} x", "interface x", true);
	check("4 ^a {static |}b", "a b", true);
	check("4 ^a {static |}b", "a static b", true);
	check("4 ^a {static |}b", "a c", false);
	check("4 : {x|y}{,|)| =}", "f(a: y)", true);
	check("4 : {x|y}{,|)| =}", "f(a: yes)", false);
	check("4 { |{name}| ", "each { |x| y", true);
	check("4 x", "", false);
	check("4 ^{name}", "", false);
}

static void unsound_hints_are_refused(void **state)
{
	static const char *const values[] = {
		"",
		"4",
		"4 ",
		"x y",
		"101 x",
		"-1 x",
		"4 ^",
		"4 {any}",
		"4 {name}",
		"4 ^{any}",
		"4 {end}",
		"4 x{any}{end}",
		"4 x{any}",
		"4 x{end}y",
		"4 x{any}{name}",
		"4 {a|b}",
		"4 x{any}{a|b}",
		"4 a{name}b{name}c{name}d{name}e{name}f{name}g",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct hint h;

		if (hint_parse(values[i], &h) == 0)
			fail_msg("accepted: %s", values[i]);
		hint_done(&h);
	}
}

static void fields_are_bounded(void **state)
{
	enum {
		LEN = 1 << 20
	};
	char *line = malloc(LEN);

	(void)state;
	assert_non_null(line);
	memset(line, 'a', LEN);
	for (size_t i = 0; i < 3; i++) {
		static const char *const values[] = {"4 a{name}b", "4 a{any}b{any}c", "4 a{any}ab"};
		struct hint h;

		assert_int_equal(hint_parse(values[i], &h), 0);
		assert_false(hint_matches(&h, line, LEN));
		hint_done(&h);
	}
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_stand_for_what_varies),
		cmocka_unit_test(unsound_hints_are_refused),
		cmocka_unit_test(fields_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
