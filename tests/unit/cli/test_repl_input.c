/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/attr.h"
#include "cli/repl_input.h"
#include <string.h>

static void complete_programs_are_recognised(void **state)
{
	static const char *const complete[] = {
		"x = 1\n",
		"print('a (b')\n",
		"f(1,\n  2)\n",
		"def f():\n  return 7\n\n",
		"for i in x; do\n echo $i\ndone\n\n",
		"x = '''a\nb'''\n",
		"# a comment with an open ( bracket\n",
		"echo \"it's\"\n",
		"s = 'it\\'s'\n",
		"const a = `x\ny`;\n",
		")\n",
		"'unterminated\n",
		"\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(complete); i++)
		assert_false(repl_needs_more(complete[i], strlen(complete[i])));
}

static void beginnings_want_more(void **state)
{
	static const char *const begun[] = {
		"f(1,\n",        "x = [\n",         "def f():\n",         "def f():\n  return 7\n",
		"@decorated\n",  "if true; then\n", "while read x; do\n", "a = 1 + \\\n",
		"x = \"\"\"a\n", "const a = `x\n",  "function f() {\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(begun); i++)
		assert_true(repl_needs_more(begun[i], strlen(begun[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete_programs_are_recognised),
		cmocka_unit_test(beginnings_want_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
