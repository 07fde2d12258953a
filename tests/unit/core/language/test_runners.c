/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "core/language/runners.h"

#define GOOD                                                                                       \
	"name: demo\naliases: [d, demo3]\ntitle: Demo\nsource: main.py\n"                          \
	"command: [/bin/sh, '{runner}/run', '{source}']\nenv: {A: '1', B: two}\n"                  \
	"program: /bin/sh\nreport: true\n"

struct fixture {
	char dir[32];
};

static int setup(void **state)
{
	struct fixture *f = NEW(struct fixture);

	if (str_copy(f->dir, sizeof(f->dir), "/tmp/millibox-runners-XXXXXX") < 0 ||
	    !mkdtemp(f->dir))
		return -1;
	*state = f;
	return 0;
}

static void put(const struct fixture *f, const char *name, const char *text)
{
	cleanup_free char *folder = xasprintf("%s/%s", f->dir, name);
	cleanup_free char *path = xasprintf("%s/manifest.yaml", folder);

	assert_int_equal(file_mkdir_parents(folder, 0755), 0);
	(void)unlink(path);
	assert_int_equal(file_create_at(AT_FDCWD, path, 0644, text, strlen(text)), 0);
}

static void drop(const struct fixture *f, const char *name)
{
	cleanup_free char *folder = xasprintf("%s/%s", f->dir, name);
	cleanup_free char *path = xasprintf("%s/manifest.yaml", folder);

	(void)unlink(path);
	(void)rmdir(folder);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = {"demo", "other", "cache", ".git"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		drop(f, names[i]);
	(void)rmdir(f->dir);
	free(f);
	return 0;
}

static void manifest_becomes_a_runner(void **state)
{
	struct fixture *f = *state;
	struct error err = {0};
	const struct runner *r;
	struct runners *all;

	put(f, "demo", GOOD);
	put(f, "other",
	    "name: other\ntitle: O\nsource: m\ncommand: ['{runner}/x']\nprogram: /nonexistent\n"
	    "session_command: [/bin/sh, '{runner}/stay']\n");
	put(f, ".git", "not: a manifest\n");
	all = runners_load(f->dir, NULL, &err);
	if (!all)
		fail_msg("%s", err.msg);
	r = runners_find(all, "demo3");
	assert_non_null(r);
	assert_ptr_equal(r, runners_find(all, "demo"));
	assert_ptr_equal(r, runners_at(all, 0));
	assert_string_equal(r->title, "Demo");
	assert_string_equal(r->source, "main.py");
	assert_string_equal(r->command[2], "{source}");
	assert_string_equal(r->env[1], "B=two");
	assert_null(r->env[2]);
	assert_true(r->report);
	assert_null(runner_missing(r));
	assert_null(r->session_command);
	r = runners_at(all, 1);
	assert_string_equal(r->name, "other");
	assert_string_equal(runner_missing(r), "/nonexistent");
	assert_int_equal(r->index, 1);
	assert_string_equal(r->session_command[1], "{runner}/stay");
	assert_null(r->session_command[2]);
	assert_false(r->report);
	assert_null(r->aliases[0]);
	assert_null(r->env[0]);
	assert_null(runners_at(all, 2));
	assert_null(runners_find(all, "Demo"));
	assert_null(runners_find(all, ""));
	runners_free(all);
}

static void expect_install(const struct fixture *f, const char *more, const char *command)
{
	cleanup_free char *text = xasprintf("%s%s", GOOD, more);
	cleanup_free char *told = NULL;
	struct error err = {0};
	struct runners *all;

	put(f, "demo", text);
	all = runners_load(f->dir, NULL, &err);
	assert_non_null(all);
	told = runner_install_command(runners_at(all, 0));
	if (command)
		assert_string_equal(told, command);
	else
		assert_null(told);
	runners_free(all);
}

static void packages_are_one_command(void **state)
{
	struct fixture *f = *state;

	expect_install(f, "", NULL);
	expect_install(f, "install: ask the vendor\n", "ask the vendor");
	expect_install(f, "debian: [g++, libx4.0-cil]\ninstall: or ask the vendor\n",
	               "apt-get install g++ libx4.0-cil");
}

/* The daemon's filter lets it ask for a file's mode, not for its own rights. */
static void a_program_that_comes_later_is_found(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *path = xasprintf("%s/demo/tool", f->dir);
	cleanup_free char *text = xasprintf("name: demo\ntitle: D\nsource: m\ncommand: ['%s']\n"
	                                    "program: '%s'\nneeds: [/dev/null]\n",
	                                    path, path);
	struct error err = {0};
	struct runners *all;
	const struct runner *r;

	put(f, "demo", text);
	all = runners_load(f->dir, NULL, &err);
	assert_non_null(all);
	r = runners_at(all, 0);
	assert_string_equal(runner_missing(r), path);
	assert_int_equal(file_create_at(AT_FDCWD, path, 0644, "x", 1), 0);
	assert_string_equal(runner_missing(r), path); /* not executable */
	assert_int_equal(chmod(path, 0755), 0);
	assert_string_equal(runner_place(r), path);
	assert_string_equal(runner_missing(r), "/dev/null"); /* not a file */
	assert_int_equal(unlink(path), 0);
	assert_null(runner_place(r));
	runners_free(all);
}

static void folder_without_manifest_is_skipped(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *cache = xasprintf("%s/cache", f->dir);
	struct error err = {0};
	struct runners *all;

	assert_int_equal(file_mkdir_parents(cache, 0755), 0);
	assert_null(runners_load(f->dir, NULL, &err));
	assert_non_null(strstr(err.msg, "no runner"));
	error_clear(&err);
	put(f, "demo", GOOD);
	all = runners_load(f->dir, NULL, &err);
	assert_non_null(all);
	assert_null(runners_at(all, 1));
	runners_free(all);
}

static void wrong_manifests_are_refused(void **state)
{
	static const struct {
		const char *text, *where, *what;
	} rows[] = {
		{"", "manifest.yaml: ", "'name' is missing"},
		{GOOD "colour: red\n", ":9: ", "'colour' is not a key"},
		{GOOD "name: demo\n", ":9: ", "twice"},
		{"name: Demo\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\n",
	         ":1: ", "lower-case"},
		{"name: ../x\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\n",
	         ":1: ", "lower-case"},
		{"name: -x\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\n",
	         ":1: ", "lower-case"},
		{"name: [demo]\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\n",
	         ":1: ", "a value"},
		{"name: demo\ntitle:\nsource: m\ncommand: [/x]\nprogram: /x\n", ":2: ", "a value"},
		{"name: demo\ntitle: D\nsource: a/b\ncommand: [/x]\nprogram: /x\n",
	         ":3: ", "file name"},
		{"name: demo\ntitle: D\nsource: ..\ncommand: [/x]\nprogram: /x\n",
	         ":3: ", "file name"},
		{"name: demo\ntitle: D\nsource: m\ncommand: /x\nprogram: /x\n", ":4: ", "a list"},
		{"name: demo\ntitle: D\nsource: m\ncommand: [[/x]]\nprogram: /x\n",
	         ":4: ", "values"},
		{"name: demo\ntitle: D\nsource: m\ncommand: []\nprogram: /x\n", ":4: ", "absolute"},
		{"name: demo\ntitle: D\nsource: m\ncommand: [sh]\nprogram: /x\n",
	         ":4: ", "absolute"},
		{"name: demo\ntitle: D\nsource: m\ncommand: ['{runner}']\nprogram: /x\n",
	         ":4: ", "absolute"},
		{"name: demo\ntitle: D\nsource: m\ncommand: [/x]\nprogram: x\n",
	         ":5: ", "absolute"},
		{GOOD "x: 1\n", ":9: ", "not a key"},
		{"name: demo\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\nreport: 1\n",
	         ":6: ", "true or false"},
		{"name: demo\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\nenv: [a]\n",
	         ":6: ", "a mapping"},
		{"name: demo\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\nenv: {a: [b]}\n",
	         ":6: ", "a mapping"},
		{"name: demo\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\nenv: {a-b: c}\n",
	         ":6: ", "a mapping"},
		{"name: demo\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\naliases: x\n",
	         ":6: ", "a list"},
		{"name: demo\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\naliases: [A]\n",
	         ":6: ", "lower-case"},
		{"name: demo\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\naliases: [demo]\n",
	         "", "both claim 'demo'"},
		{"name: other\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\n",
	         "manifest.yaml: ", "must be 'demo'"},
		{GOOD "debian: [-o]\n", ":9: ", "names of Debian's packages"},
		{GOOD "debian: [gcc, ./x.deb]\n", ":9: ", "names of Debian's packages"},
		{GOOD "debian: [gcc-]\n", ":9: ", "names of Debian's packages"},
		{GOOD "debian: ['gcc libc6-dev']\n", ":9: ", "names of Debian's packages"},
		{GOOD "debian: []\n", ":9: ", "must name a package"},
		{GOOD "hello: [a]\n", ":9: ", "a value"},
		{GOOD "hints: ['4 x{any}']\n", ":9: ", "WEIGHT TEXT"},
		{GOOD "hints: [x]\n", ":9: ", "WEIGHT TEXT"},
		{GOOD "extends: nothing\n", "", "extends 'nothing', which no runner has"},
		{GOOD "compile_if: check\n", "manifest.yaml: ", "must name an option"},
		{GOOD "compile_if: a\noptions: {a: {type: bool}}\n",
	         "manifest.yaml: ", "beside a 'compile_command'"},
		{GOOD "compile_command: [/x]\ncompile_if: a\noptions: {a: {type: text}}\n",
	         "manifest.yaml: ", "type bool"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err = {0};

		put(f, "demo", rows[i].text);
		assert_null(runners_load(f->dir, NULL, &err));
		assert_int_equal(err.code, ERR_CONFIG);
		if (!strstr(err.msg, rows[i].where) || !strstr(err.msg, rows[i].what))
			fail_msg("row %zu: %s", i, err.msg);
	}
}

static void two_runners_cannot_share_a_name(void **state)
{
	struct fixture *f = *state;
	struct error err = {0};

	put(f, "demo", GOOD);
	put(f, "other",
	    "name: other\naliases: [d]\ntitle: O\nsource: m\ncommand: [/x]\nprogram: /x\n");
	assert_null(runners_load(f->dir, NULL, &err));
	assert_non_null(strstr(err.msg, "'demo' and 'other' both claim 'd'"));
}

static void a_missing_folder_is_reported(void **state)
{
	struct error err = {0};

	(void)state;
	assert_null(runners_load("/nonexistent/runners", NULL, &err));
	assert_int_equal(err.code, ERR_CONFIG);
	assert_int_not_equal(err.sys, 0);
	runners_free(NULL);
}

static void number_of_runners_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct error err = {0};
	char name[16];
	char text[128];

	for (int i = 0; i < 65; i++) {
		(void)snprintf(name, sizeof(name), "r%02d", i);
		(void)snprintf(text, sizeof(text),
		               "name: %s\ntitle: D\nsource: m\ncommand: [/x]\nprogram: /x\n", name);
		put(f, name, text);
	}
	assert_null(runners_load(f->dir, NULL, &err));
	assert_non_null(strstr(err.msg, "more than 64"));
	for (int i = 0; i < 65; i++) {
		(void)snprintf(name, sizeof(name), "r%02d", i);
		drop(f, name);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(manifest_becomes_a_runner),    TEST(folder_without_manifest_is_skipped),
		TEST(wrong_manifests_are_refused),  TEST(two_runners_cannot_share_a_name),
		TEST(a_missing_folder_is_reported), TEST(number_of_runners_is_bounded),
		TEST(packages_are_one_command),     TEST(a_program_that_comes_later_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
