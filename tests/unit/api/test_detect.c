/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/detect.h"
#include "base/attr.h"
#include <string.h>

static void programs_are_told_apart(void **state)
{
	static const struct {
		const char *code, *language;
	} rows[] = {
		{"print(1)",							   "python"    },
		{"x = 1\nx + 1",						       "python"    },
		{"import os\nfor f in os.listdir('.'):\n    print(f)",                 "python"    },
		{"def f(x):\n    return x",					    "python"    },
		{"#!/usr/bin/env python3\necho = 1",                                   "python"    },
		{"#!/bin/sh\nprint(1)",						"shell"     },
		{"#!/usr/bin/env node\nx",					     "javascript"},
		{"ls -l | grep x",						     "shell"     },
		{"echo hello",							 "shell"     },
		{"",								   "shell"     },
		{"const a = 1;\nconsole.log(a);",                                      "javascript"},
		{"interface A { x: number }\nconst a: string = 'x';\nconsole.log(a);",
	         "typescript"								      },
		{"package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }",       "go"        },
		{"fn main() {\n    println!(\"x\");\n}",                               "rust"      },
		{"public class Main { public static void main(String[] a) { System.out.println(1); "
	         "} }",	                                       "java"      },
		{"#include <stdio.h>\nint main(void) { printf(\"x\"); }",              "c"         },
		{"#include <iostream>\nint main() { std::cout << 1; }",                "cpp"       },
		{"using System;\nConsole.WriteLine(1);",                               "csharp"    },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(detect_language(rows[i].code, strlen(rows[i].code)),
		                    rows[i].language);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(programs_are_told_apart)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
