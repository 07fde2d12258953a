/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>

#include "base/cgroup_path.h"

static const char hybrid[] =
	"13:cpuset:/sets\n4:cpu,cpuacct:/\n3:memory:/user/a:b\n0::/user.slice\n";

static void expect(const char *text, const char *controller, const char *want)
{
	char path[64];

	assert_int_equal(cgroup_path_find(text, controller, path, sizeof(path)), 0);
	assert_string_equal(path, want);
}

static void the_line_of_a_controller_is_found(void **state)
{
	(void)state;
	expect(hybrid, "cpu", "/");
	expect(hybrid, "cpuacct", "/");
	expect(hybrid, "memory", "/user/a:b"); /* a colon in the path is no separator */
	expect(hybrid, NULL, "/user.slice");
	expect("5:cpu:/memory/x\n4:pids,memory:/y", "memory", "/y");
	expect("0::/a\\040b", NULL, "/a\\040b"); /* unlike in mountinfo nothing is escaped */
}

static void other_lines_are_not(void **state)
{
	static const struct {
		const char *text, *controller;
	} list[] = {
		{hybrid, "pids"},
		{hybrid, "set"},
		{"3:cpuset:/a\n", "cpu"},
		{"0::/x\n", "memory"},
		{"4:memory:/x\n", NULL},
		{"1::/x\n", NULL},
		{"10::/x\n", NULL},
		{"", NULL},
		{"", "cpu"},
		{"0:", NULL},
		{"4:memory\n0", "memory"},
		{"4\n:memory:/x", NULL},
	};
	char path[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		assert_int_equal(
			cgroup_path_find(list[i].text, list[i].controller, path, sizeof(path)),
			-ENOENT);
}

static void a_path_that_does_not_fit_is_an_error(void **state)
{
	char path[12];

	(void)state;
	assert_int_equal(cgroup_path_find(hybrid, NULL, path, sizeof(path) - 1), -ENAMETOOLONG);
	assert_int_equal(cgroup_path_find(hybrid, NULL, path, sizeof(path)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_of_a_controller_is_found),
		cmocka_unit_test(other_lines_are_not),
		cmocka_unit_test(a_path_that_does_not_fit_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
