/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "core/template/packages.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void packages_are_found_by_any_spelling(void **state)
{
	static const char *const entries[] = {"Foo_Bar-1.2.3.dist-info", "baz-2.0-py3.11.egg-info",
	                                      "plain", "bad.dist-info", "-1.dist-info"};
	char root[] = "/tmp/packages-XXXXXX";
	const char *patterns[] = {"/nonexistent/*", NULL, NULL};
	struct packages *p;

	(void)state;
	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		cleanup_free char *path = xasprintf("%s/%s", root, entries[i]);

		assert_int_equal(mkdir(path, 0700), 0);
	}
	patterns[1] = root;
	p = packages_load(patterns);
	assert_string_equal(packages_find(p, "foo-bar"), "1.2.3");
	assert_string_equal(packages_find(p, "FOO.__bar"), "1.2.3");
	assert_string_equal(packages_find(p, "baz"), "2.0");
	assert_null(packages_find(p, "plain"));
	assert_null(packages_find(p, "bad"));
	assert_null(packages_find(p, ""));
	assert_null(packages_find(NULL, "baz"));
	packages_free(p);
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		cleanup_free char *path = xasprintf("%s/%s", root, entries[i]);

		assert_int_equal(rmdir(path), 0);
	}
	assert_int_equal(rmdir(root), 0);
}

static void a_package_installed_later_is_found(void **state)
{
	char root[] = "/tmp/packages-XXXXXX";
	const char *patterns[] = {NULL, NULL};
	cleanup_free char *path = NULL;
	struct packages *p;

	(void)state;
	assert_non_null(mkdtemp(root));
	path = xasprintf("%s/late-1.0.dist-info", root);
	patterns[0] = root;
	p = packages_load(patterns);
	assert_null(packages_find(p, "late"));
	assert_int_equal(mkdir(path, 0700), 0);
	packages_refresh(p);
	assert_string_equal(packages_find(p, "late"), "1.0");
	assert_int_equal(rmdir(path), 0);
	packages_refresh(p);
	assert_null(packages_find(p, "late"));
	packages_refresh(NULL);
	packages_free(p);
	assert_int_equal(rmdir(root), 0);
}

static void versions_are_compared_by_their_numbers(void **state)
{
	static const struct {
		const char *version, *wanted;
		bool fits;
	} rows[] = {
		{"1.10", "", true},
		{"1.10", "1.10", true},
		{"1.10", "==1.10", true},
		{"1.10", "1.9", false},
		{"1.10", ">=1.9", true},
		{"1.10", ">=1.9,<1.10", false},
		{"1.10", ">= 1.9, < 2", true},
		{"1.10", "!=1.10", false},
		{"1.10", ">1.10", false},
		{"1.10.0", "1.10", true},
		{"2.0rc1", "==2.0", false},
		{"1.10", "<=1.10,!=1.10", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (package_version_fits(rows[i].version, rows[i].wanted) != rows[i].fits)
			fail_msg("%s and %s", rows[i].version, rows[i].wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packages_are_found_by_any_spelling),
		cmocka_unit_test(a_package_installed_later_is_found),
		cmocka_unit_test(versions_are_compared_by_their_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
