/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/attr.h"
#include "core/language/detect.h"
#include <string.h>

static void check_language(const char *code, const char *language)
{
	const char *found = detect_language(code, strlen(code));

	if (strcmp(found, language) != 0)
		fail_msg("%s instead of %s: %s", found, language, code);
}

/* What people type to see whether it works. */
static void short_ones_are_python_unless_they_are_commands(void **state)
{
	static const char *const python[] = {
		"x=[0]*10**10",
		"a=5\nb=6\na*b",
		"{\"a\":1}",
		"raise ValueError(\"x\")",
		"x=5",
		"hello world",
		"x",
		"f(x)",
		"date = 5\ndate",
		"test == 1",
		"sort(x)",
		"head, tail = x",
		"find in x",
		"s = \"$name | cat\"",
		"done = True\nfi = 2",
		"async def f():\n    pass",
		"del x",
		"x: int = 3",
		"@property\ndef f(self): ...",
		"let x = 5",
		"6*7",
		"1/3",
		"len(\"abc\")",
		"sum([1,2])",
		"[i for i in range(3)]",
		"(1 + 2)*3",
		"[1, 2]",
		"\"a\".upper()",
		"math.sqrt(2)",
		"assert 1 == 1",
		"42",
		"'x' * 3",
		"while True:\n  break",
		"while 1: pass",
		"for i in range(3): x",
		"try:\n  x\nfinally:\n  y",
	};
	static const char *const shell[] = {
		"ls",
		"ls -l",
		"cat<f",
		"echo $HOME\nls",
		"cd /tmp && ls",
		"./run.sh",
		"/bin/ls",
		"python3 main.py",
		"mkdir -p a/b",
		"export A=1\necho $A",
		"x=5\necho $x",
		"find . -name '*.py'",
		"cat > f <<EOF\nprint(1)\nEOF",
		"git status",
		"pwd",
		"7z x archive",
		"[ -f x ] && rm x",
		"(cd x; make)",
		"f() {\n  true\n}",
		"make all",
		"awk '{print length($1)}' f",
		"[[ -f x ]]",
		"echo \"print(1)\"",
		"while read x; do printf 'a: %s' $x; done",
		"for f in *; do cp $f b: ; done",
		"if [ -f x ]; then rm x; fi",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(python); i++)
		check_language(python[i], "python");
	for (size_t i = 0; i < ARRAY_SIZE(shell); i++)
		check_language(shell[i], "shell");
}

static void languages_are_distinguished(void **state)
{
	static const struct {
		const char *code, *language;
	} rows[] = {
		{"print(1)", "python"},
		{"x = 1\nx + 1", "python"},
		{"import os\nfor f in os.listdir('.'):\n    print(f)", "python"},
		{"def f(x):\n    return x", "python"},
		{"#!/usr/bin/env python3\necho = 1", "python"},
		{"#!/bin/sh\nprint(1)", "shell"},
		{"#!/usr/bin/env node\nx", "javascript"},
		{"ls -l | grep x", "shell"},
		{"echo hello", "shell"},
		{"", "python"},
		{"const a = 1;\nconsole.log(a);", "javascript"},
		{"interface A { x: number }\nconst a: string = 'x';\nconsole.log(a);",
	         "typescript"},
		{"package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }", "go"},
		{"fn main() {\n    println!(\"x\");\n}", "rust"},
		{"public class Main { public static void main(String[] a) { System.out.println(1); "
	         "} }",
	         "java"},
		{"#include <stdio.h>\nint main(void) { printf(\"x\"); }", "c"},
		{"#include <iostream>\nint main() { std::cout << 1; }", "cpp"},
		{"using System;\nConsole.WriteLine(1);", "csharp"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_language(rows[i].code, rows[i].language);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(languages_are_distinguished),
		cmocka_unit_test(short_ones_are_python_unless_they_are_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
