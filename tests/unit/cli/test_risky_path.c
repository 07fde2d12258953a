/* SPDX-License-Identifier: Apache-2.0 */
#include "base/attr.h"
#include "base/fd.h"
#include "cli/risky_path.h"
#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Nothing of these paths is there: their names alone decide. */
static const char *reason_of(const char *path, mode_t new_mode)
{
	cleanup_close int empty = fd_open("/proc/self/fdinfo", O_RDONLY | O_DIRECTORY, 0);
	const struct risky_change change = {empty, empty, path, 0, new_mode};

	assert_true(empty >= 0);
	return risky_path_reason(&change);
}

static void files_that_programs_run_are_named(void **state)
{
	static const struct {
		const char *path, *who;
	} rows[] = {
		{".envrc", "a shell would"},
		{"a/b/.ENVRC", "a shell would"},
		{".vscode/tasks.json", "an editor"},
		{"a/.vscode/deep/er.json", "an editor"},
		{".dir-locals.el", "an editor"},
		{".hg/hgrc", "hg"},
		{"sub/.hg/hgrc", "hg"},
		{".git/config", "git"},
		{"a/.GIT/hooks/post-merge", "git"},
		{"a/.git", "git"},
		{".github/workflows/a.yml", "a build service"},
		{".gitlab-ci.yml", "a build service"},
		{"GNUmakefile", "make"},
		{"src/rules.mk", "make"},
		{"CMakeLists.txt", "make"},
		{"conftest.py", "Python"},
		{"lib/x.pth", "Python"},
		{"sitecustomize/__init__.py", "Python"},
		{"eslint.config.mjs", "npm"},
		{"a/.eslintrc.cjs", "npm"},
		{"package.json", "npm"}, /* it cannot be read */
		{"build.rs", "cargo"},
		{".cargo/config.toml", "cargo"},
		{".config/autostart/x.desktop", "the desktop"},
		{".ssh/authorized_keys", "ssh"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *reason = reason_of(rows[i].path, S_IFREG | 0644);

		if (!reason || strncmp(reason, rows[i].who, strlen(rows[i].who)) != 0)
			fail_msg("%s: %s", rows[i].path, reason ? reason : "nobody");
	}
}

static void other_files_are_not(void **state)
{
	static const char *const paths[] = {
		"a.txt",
		"src/main.c",
		"envrc",
		"x.envrc.txt",
		"vscode/tasks.json",
		".vscodes/a",
		"hooks/a",
		"config",
		"a/HEAD",
		"a/config",
		"github/a.yml",
		"test_a.py",
		"a.mks",
		"Makefiles/a",
		"index.js",
		"docs/setup.pyx",
		"conftest.pyc",
		"a/.gitignore",
		".env",
		"package-lock.json",
		"hg/hgrc",
		".gitattributes",
		"config.js/a.txt",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		const char *reason = reason_of(paths[i], S_IFREG | 0644);

		if (reason)
			fail_msg("%s: %s", paths[i], reason);
	}
}

/* A directory runs nothing, something else of its name could lead to another; what is gone runs no
 * more. */
static void the_type_decides(void **state)
{
	(void)state;
	assert_null(reason_of(".vscode", S_IFDIR | 0755));
	assert_non_null(reason_of(".vscode", S_IFLNK));
	assert_non_null(reason_of("a/.cargo", S_IFREG | 0644));
	assert_non_null(reason_of(".hg", S_IFLNK));
	assert_null(reason_of(".envrc", 0));
	assert_null(reason_of(".vscode/tasks.json", 0));
	assert_null(reason_of("Makefile", S_IFDIR | 0755));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_programs_run_are_named),
		cmocka_unit_test(other_files_are_not),
		cmocka_unit_test(the_type_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
