/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "cli/language.h"

struct example {
	const char *text;
	const char *language; /* NULL: unknown */
};

static void check(const char *text, const char *got, const char *expected)
{
	if ((got && expected) ? strcmp(got, expected) != 0 : got != expected)
		fail_msg("'%s': %s, not %s", text, got ? got : "unknown",
		         expected ? expected : "unknown");
}

static void the_extension_selects_the_language(void **state)
{
	static const struct example examples[] = {
		{"a.py", "python"},
		{"/x/y.z/a.b.py", "python"},
		{"a.pyw", "python"},
		{"a.sh", "shell"},
		{"a.bash", "shell"},
		{"a.txt", NULL},
		{"py", NULL},
		{".py", NULL},
		{"dir.py/file", NULL},
		{"a.py/", NULL},
		{"a.", NULL},
		{"a.PY", NULL},
		{"a.python", NULL},
		{"a.p", NULL},
		{"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
		check(examples[i].text, language_of_name(examples[i].text), examples[i].language);
}

static void the_first_line_selects_the_language(void **state)
{
	static const struct example examples[] = {
		{"#!/usr/bin/python3\nprint(1)\n", "python"},
		{"#!/usr/bin/python3.11 -u\n", "python"},
		{"#! /usr/bin/python\n", "python"},
		{"#!python", "python"},
		{"#!/usr/bin/env python3\n", "python"},
		{"#!/usr/bin/env -S python3 -u\n", "python"},
		{"#!/usr/bin/env -i A=b /opt/bin/pypy3\n", "python"},
		{"#!/bin/sh\n", "shell"},
		{"#!/bin/bash\r\n", "shell"},
		{"#!/bin/dash", "shell"},
		{"#!/usr/bin/perl\n# python", NULL},
		{"#!/usr/bin/env\npython", NULL},
		{"#!/usr/bin/env -S", NULL},
		{"#!\n/bin/sh", NULL},
		{"#!", NULL},
		{"#", NULL},
		{"", NULL},
		{"# !/bin/sh\n", NULL},
		{" #!/bin/sh\n", NULL},
		{"print(1)\n#!/bin/sh\n", NULL},
		{"#!/bin/sh/\n", NULL},
		{"#!/bin/3.11\n", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		const char *text = examples[i].text;

		check(text, language_of_code(text, strlen(text)), examples[i].language);
	}
}

static void nothing_beyond_the_length_is_read(void **state)
{
	static const char code[] = "#!/bin/shell";

	(void)state;
	check("cut", language_of_code(code, 9), "shell");
	check("whole", language_of_code(code, sizeof(code) - 1), NULL);
	check("one byte", language_of_code(code, 1), NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_extension_selects_the_language),
		cmocka_unit_test(the_first_line_selects_the_language),
		cmocka_unit_test(nothing_beyond_the_length_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
