/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "guest/put.h"

static bool is_accepted(const char *data, size_t len)
{
	const struct wire_bytes path = {data, (uint32_t)len};
	struct error err = {0};
	int r = put_check_path(&path, &err);

	assert_int_equal(error_is_set(&err), r < 0);
	if (r < 0) {
		assert_int_equal(err.code, ERR_INVALID);
		assert_string_equal(err.field, "files.path");
	}
	return r >= 0;
}

static void ordinary_and_odd_but_legal_names_are_accepted(void **state)
{
	static const char *const good[] = {
		"a",   "main.py", "a/b/c", "...",      "..a", "a..", ".hidden",
		"a b", "-rf",     "a\nb",  "\xff\xfe", "\"'", "~",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(is_accepted(good[i], strlen(good[i])));
}

static void paths_that_could_lead_elsewhere_are_refused(void **state)
{
	static const char *const bad[] = {
		"",    "/",    "/a",    "a/",     "a//b", ".",   "..",
		"./a", "../a", "a/./b", "a/../b", "a/..", "a/.",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(is_accepted(bad[i], strlen(bad[i])));
	assert_false(is_accepted("a\0b", 3));
}

static void lengths_have_limits(void **state)
{
	char long_name[256 + 1];
	char path[PUT_PATH_MAX + 2];

	(void)state;
	memset(long_name, 'x', sizeof(long_name));
	assert_true(is_accepted(long_name, 255));
	assert_false(is_accepted(long_name, 256));

	memset(path, 'x', sizeof(path));
	for (size_t i = 0; i < sizeof(path); i += 2)
		path[i + 1] = '/';
	assert_true(is_accepted(path, (size_t)2 * PUT_COMPONENTS_MAX - 1));
	assert_false(is_accepted(path, (size_t)2 * PUT_COMPONENTS_MAX + 1));

	memset(path, 'x', sizeof(path));
	for (size_t i = 200; i < sizeof(path); i += 200)
		path[i] = '/';
	assert_true(is_accepted(path, PUT_PATH_MAX));
	assert_false(is_accepted(path, PUT_PATH_MAX + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_and_odd_but_legal_names_are_accepted),
		cmocka_unit_test(paths_that_could_lead_elsewhere_are_refused),
		cmocka_unit_test(lengths_have_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
