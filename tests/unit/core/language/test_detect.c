/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "core/language/detect.h"
#include "core/language/runners.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* The manifests of this tree. */
static struct runners *all;
static const char *snippets; /* folder */

static struct detection detect(const char *file_name, const char *code, size_t len)
{
	const struct detect_subject subject = {file_name, code, len};
	struct detection d;

	detect_language(all, &subject, &d);
	return d;
}

static const char *first_of(const struct detection *d)
{
	return d->count > 0 ? d->candidates[0]->name : "nothing";
}

/* @is_sure: of @language; else it is not sure of any other. */
static void check(const char *code, const char *language, bool is_sure)
{
	struct detection d = detect(NULL, code, strlen(code));
	bool is_it = str_equal(first_of(&d), language);

	if (is_sure ? !(d.is_sure && is_it) : (d.is_sure && !is_it))
		fail_msg("%s, %s, instead of %s: %s", first_of(&d), d.is_sure ? "sure" : "unsure",
		         language, code);
}

/* What people type to see whether it works: Python unless another language is certain. */
static void short_code_is_not_mistaken(void **state)
{
	static const char *const python[] = {
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
		"del x",
		"x: int = 3",
		"@property\ndef f(self): ...",
		"let x = 5",
		"6*7",
		"1/3",
		"len(\"abc\")",
		"sum([1,2])",
		"(1 + 2)*3",
		"[1, 2]",
		"\"a\".upper()",
		"math.sqrt(2)",
		"assert 1 == 1",
		"42",
		"'x' * 3",
		"while 1: pass",
		"x = 1\nx + 1",
		"",
		"\n\n",
	};
	static const char *const sure_python[] = {
		"x=[0]*10**10",
		"a=5\nb=6\na*b",
		"{\"a\":1}",
		"raise ValueError(\"x\")",
		"print(1)",
		"print('hello')",
		"async def f():\n    pass",
		"[i for i in range(3)]",
		"while True:\n  break",
		"for i in range(3): x",
		"try:\n  x\nfinally:\n  y",
		"import os\nfor f in os.listdir('.'):\n    print(f)",
		"def f(x):\n    return x",
		"from collections import Counter\nCounter('abc')",
		"class A:\n    def f(self):\n        return self.x",
		"import numpy as np\nprint(np.arange(3))",
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
		"echo \"print(1)\"",
		"while read x; do printf 'a: %s' $x; done",
		"for f in *; do cp $f b: ; done",
		"if [ -f x ]; then rm x; fi",
		"ls -l | grep x",
		"echo hello",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(python); i++)
		check(python[i], "python", false);
	for (size_t i = 0; i < ARRAY_SIZE(sure_python); i++)
		check(sure_python[i], "python", true);
	for (size_t i = 0; i < ARRAY_SIZE(shell); i++)
		check(shell[i], "shell", true);
}

static void languages_are_distinguished(void **state)
{
	static const struct {
		const char *language, *code;
	} rows[] = {
		{"javascript", "const a = 1;\nconsole.log(a);"},
		{"javascript", "console.log('hello')"},
		{"javascript", "const fs = require('fs');\nfs.readFileSync('x');"},
		{"javascript", "function f(x) {\n  return x * 2;\n}\nconsole.log(f(21));"},
		{"javascript", "import fs from 'fs';\nexport default fs;"},
		{"javascript",
	         "[1, 2].map((x) => x * 2).forEach((x) => { console.log(`${x}`); });"},
		{"typescript",
	         "interface A { x: number }\nconst a: string = 'x';\nconsole.log(a);"},
		{"typescript",
	         "function f(x: number): number {\n  return x;\n}\nconsole.log(f(1));"},
		{"typescript",
	         "enum Color { Red, Green }\nconst c: Color = Color.Red;\nlet n: number = c;"},
		{"go", "package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }"},
		{"go", "package main\n\nimport (\n\t\"fmt\"\n)\n\nfunc main() {\n\tx := "
	               "5\n\tfmt.Println(x)\n}"},
		{"rust", "fn main() {\n    println!(\"x\");\n}"},
		{"rust",
	         "use std::collections::HashMap;\nfn main() {\n    let mut m: HashMap<&str, i32> = "
	         "std::collections::HashMap::new();\n    m.insert(\"a\", 1);\n}"},
		{"java", "public class Main { public static void main(String[] a) { "
	                 "System.out.println(1); } }"},
		{"java", "import java.util.*;\nclass A {\n  int x;\n}"},
		{"c", "#include <stdio.h>\nint main(void) { printf(\"x\"); }"},
		{"c", "#include <stdlib.h>\n\nint main(void)\n{\n\tchar *p = malloc(10);\n\treturn "
	              "p == 0;\n}"},
		{"cpp", "#include <iostream>\nint main() { std::cout << 1; }"},
		{"cpp", "#include <cstdio>\nint main() { std::printf(\"x\"); }"},
		{"cpp", "#include <vector>\n#include <algorithm>\nusing namespace std;\nint main() "
	                "{ vector<int> v; }"},
		{"csharp", "using System;\nConsole.WriteLine(1);"},
		{"csharp", "class P { static void Main() { System.Console.WriteLine(1); } }"},
		{"ruby", "puts \"hello\""},
		{"ruby", "def f(x)\n  x * 2\nend\nputs f(21)"},
		{"ruby", "require 'json'\n[1, 2].each do |x|\n  puts x\nend"},
		{"ruby", "class A\n  attr_reader :x\n  def initialize\n    @x = 1\n  end\nend"},
		{"php", "<?php\necho 6 * 7;"},
		{"php", "<?php\n$x = [1, 2];\nforeach ($x as $y) { echo $y; }"},
		{"perl", "use strict;\nuse warnings;\nprint \"hello\\n\";"},
		{"perl", "my $x = 6;\nmy @a = (1, 2);\nprint \"$x\\n\";"},
		{"perl", "print \"hello\\n\";"},
		{"lua", "local x = 5\nprint(x)"},
		{"lua", "for i, v in ipairs({1, 2}) do\n  io.write(v)\nend"},
		{"lua", "local function f(x)\n  if x ~= 1 then\n    return x .. 'a'\n  end\nend"},
		{"r", "x <- c(1, 2, 3)\nprint(mean(x))"},
		{"r", "f <- function(x) x * 2\ncat(f(21))"},
		{"r", "library(stats)\nx <- 5"},
		{"fish", "set -l x 5\necho $x"},
		{"fish", "for i in (seq 3)\n  echo $i\nend"},
		{"zsh", "setopt extended_glob\nprint -l *.txt"},
		/* A program that writes another. */
		{"shell", "cat > a.py <<'EOF'\nimport os\ndef f(x):\n    "
	                  "print(x)\nf(os.name)\nEOF\npython3 a.py"},
		{"perl", "my $t = <<EOF;\nls -l\nEOF\nprint $t;"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check(rows[i].code, rows[i].language, true);
}

/* The snippets of a file follow lines "======== NAME". */
#define SNIPPET "======== "

struct tally {
	size_t snippets, wrong;
	size_t python; /* wrong ones: who writes Python need not name it */
};

/* A request without a language: what is certain, else Python. */
static const char *choose(const char *code, size_t len)
{
	struct detection d = detect(NULL, code, len);

	return d.is_sure ? d.candidates[0]->name : "python";
}

static size_t check_file(const char *folder, const char *language, struct tally *tally)
{
	cleanup_free char *path = xasprintf("%s/%s.txt", folder, language);
	cleanup_buf struct buf text = BUF_INIT(1 << 20);
	size_t count = 0;

	assert_int_equal(file_read_at(AT_FDCWD, path, &text), 0);
	assert_int_equal(buf_add(&text, "", 1), 0);
	for (char *at = text.data, *next; *at; at = next, count++) {
		char *code = strchr(at, '\n') + 1;
		const char *chosen;

		assert_true(str_has_prefix(at, SNIPPET));
		next = strstr(code, "\n" SNIPPET);
		next = next ? next + 1 : code + strlen(code);
		chosen = choose(code, (size_t)(next - code));
		if (str_equal(chosen, language))
			continue;
		print_message("%s instead of %s: %.*s\n", chosen, language,
		              (int)(code - at - strlen(SNIPPET) - 1), at + strlen(SNIPPET));
		tally->wrong++;
		tally->python += str_equal(language, "python");
	}
	tally->snippets += count;
	return count;
}

/* What models and people send: see snippets/. */
static void snippets_are_recognised(void **state)
{
	static const struct {
		const char *language;
		size_t least;
	} rows[] = {
		{"python", 90}, {"javascript", 50}, {"typescript", 45}, {"shell", 50},
		{"c", 25},      {"cpp", 25},        {"csharp", 25},     {"go", 25},
		{"java", 25},   {"php", 25},        {"ruby", 25},       {"rust", 25},
	};
	struct tally tally = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_in_range(check_file(snippets, rows[i].language, &tally), rows[i].least,
		                SIZE_MAX);
	print_message("%zu snippets, %zu wrong\n", tally.snippets, tally.wrong);
	assert_int_equal(tally.python, 0);
	assert_in_range(tally.wrong * 100, 0, tally.snippets);
}

static void check_stated(const char *file_name, const char *code, const char *language)
{
	const struct detect_subject subject = {file_name, code, strlen(code)};
	struct detection d;

	detect_stated(all, &subject, &d);
	if (language ? !d.is_sure || !str_equal(first_of(&d), language) : d.count > 0)
		fail_msg("%s instead of %s: %s %s", first_of(&d), language ? language : "nothing",
		         file_name ? file_name : "", code);
}

static void extension_decides(void **state)
{
	static const char *const rows[][2] = {
		{"a.py", "python"},
		{"/x/y.z/a.b.py", "python"},
		{"a.pyw", "python"},
		{"a.sh", "shell"},
		{"a.bash", "shell"},
		{"a.js", "javascript"},
		{"a.mjs", "javascript"},
		{"a.ts", "typescript"},
		{"a.go", "go"},
		{"a.rs", "rust"},
		{"Main.java", "java"},
		{"a.c", "c"},
		{"a.cc", "cpp"},
		{"a.c++", "cpp"},
		{"a.cs", "csharp"},
		{"a.rb", "ruby"},
		{"a.php", "php"},
		{"a.pl", "perl"},
		{"a.lua", "lua"},
		{"a.R", "r"},
		{"a.fish", "fish"},
		{"a.zsh", "zsh"},
		{"a.PY", "python"},
		{"a.txt", NULL},
		{"py", NULL},
		{".py", NULL},
		{"dir.py/file", NULL},
		{"a.py/", NULL},
		{"a.", NULL},
		{"a.python", NULL},
		{"a.p", NULL},
		{"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_stated(rows[i][0], "", rows[i][1]);
	check_stated("a.py", "#!/bin/sh\n", "python");
	check_stated("a.txt", "#!/bin/sh\n", "shell");
}

static void first_line_decides(void **state)
{
	static const char *const rows[][2] = {
		{"#!/usr/bin/python3\nprint(1)\n", "python"},
		{"#!/usr/bin/python3.11 -u\n", "python"},
		{"#! /usr/bin/python\n", "python"},
		{"#!python", "python"},
		{"#!/usr/bin/env python3\necho = 1", "python"},
		{"#!/usr/bin/env -S python3 -u\n", "python"},
		{"#!/usr/bin/env -i A=b /opt/bin/pypy3\n", "python"},
		{"#!/bin/sh\nprint(1)", "shell"},
		{"#!/bin/bash\r\n", "shell"},
		{"#!/bin/dash", "dash"},
		{"#!/usr/bin/env node\nx", "javascript"},
		{"#!/usr/bin/env ts-node\nx", "typescript"},
		{"#!/usr/bin/perl\n# python", "perl"},
		{"#!/usr/bin/lua5.4\n", "lua"},
		{"#!/usr/bin/env Rscript\n", "r"},
		{"#!/usr/bin/ruby -w\n", "ruby"},
		{"#!/usr/bin/unknown\nprint(1)", NULL},
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
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_stated(NULL, rows[i][0], rows[i][1]);
}

/* The buffer has no byte more than the code: a sanitizer sees what is read beyond. */
static struct detection detect_copy(const char *text, size_t len)
{
	char *copy = len > 0 ? malloc(len) : malloc(1);
	struct detection d;

	assert_non_null(copy);
	if (len > 0)
		memcpy(copy, text, len);
	d = detect(NULL, copy, len);
	free(copy);
	return d;
}

static void hostile_code_is_read_within_bounds(void **state)
{
	static const char *const units[] = {
		"a",         "std::",  "#!",     "#!/usr/bin/env -", "(",    "\n", "{\"",
		"for x in ", "print(", " ",      "<<EOF\n",          "\xff", "$",  "^{name}",
		"\r\n",      "=> {",   "((((ls",
	};
	enum {
		LEN = 1 << 20
	};
	char *code = malloc(LEN);

	(void)state;
	assert_non_null(code);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t unit = strlen(units[i]);

		for (size_t at = 0; at < LEN; at++)
			code[at] = units[i][at % unit];
		(void)detect_copy(code, LEN);
		(void)detect_copy(code, unit);
		(void)detect_copy(code, unit - 1);
	}
	memset(code, 0, LEN);
	assert_int_equal(detect_copy(code, LEN).count, 0);
	/* What is far from the beginning does not count. */
	memset(code, '\n', LEN);
	memcpy(code + LEN - 32, "fn main() {\nprintln!(\"x\");\n}", 28);
	assert_int_equal(detect_copy(code, LEN).count, 0);
	/* A line that is repeated is no better sign than a few of them. */
	for (size_t at = 0; at + 6 <= 6000; at += 6)
		memcpy(code + at, "x = 1\n", 6);
	assert_false(detect_copy(code, 6000).is_sure);
	free(code);
	assert_string_equal(first_of(&(struct detection){0}), "nothing");
}

/* Each statement may be read to the end of its line, so those of one line are bounded. */
static void many_statements_of_a_line_are_not_all_looked_at(void **state)
{
	static const char after[] = " export FOO=1";
	char line[1024] = "";
	size_t len = 0;

	(void)state;
	for (int statements = 0; statements < 40; statements++)
		len += (size_t)snprintf(line + len, sizeof(line) - len, "q%d;", statements);
	(void)snprintf(line + len, sizeof(line) - len, "%s", after);
	assert_false(detect(NULL, line, strlen(line)).is_sure);
	/* Control: it counts where few precede it. */
	check("q1; q2; export FOO=1", "shell", true);
}

static void unsure_detection_lists_candidates(void **state)
{
	struct detection d = detect(NULL, "x=5", 3);

	(void)state;
	assert_false(d.is_sure);
	assert_true(d.count >= 1);
	assert_string_equal(d.candidates[0]->name, "python");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_code_is_not_mistaken),
		cmocka_unit_test(languages_are_distinguished),
		cmocka_unit_test(snippets_are_recognised),
		cmocka_unit_test(extension_decides),
		cmocka_unit_test(first_line_decides),
		cmocka_unit_test(hostile_code_is_read_within_bounds),
		cmocka_unit_test(many_statements_of_a_line_are_not_all_looked_at),
		cmocka_unit_test(unsure_detection_lists_candidates),
	};
	struct error err = {0};
	int failed;

	all = argc == 3 ? runners_load(argv[1], NULL, &err) : NULL;
	if (!all) {
		(void)fprintf(stderr, "usage: %s RUNNERS SNIPPETS: %s\n", argv[0], err.msg);
		return 2;
	}
	snippets = argv[2];
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	runners_free(all);
	return failed;
}
