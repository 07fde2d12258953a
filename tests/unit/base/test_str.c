/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/str.h"

static void equality_and_prefixes_are_exact(void **state)
{
	(void)state;
	assert_true(str_equal("a", "a"));
	assert_false(str_equal("a", "ab"));
	assert_true(str_has_prefix("abc", "ab"));
	assert_true(str_has_prefix("abc", ""));
	assert_true(str_has_prefix("abc", "abc"));
	assert_false(str_has_prefix("ab", "abc"));
	assert_false(str_has_prefix("xbc", "ab"));
}

static void a_copy_is_whole_or_empty(void **state)
{
	char dst[4] = "old";

	(void)state;
	assert_int_equal(str_copy(dst, sizeof(dst), "new"), 0);
	assert_string_equal(dst, "new");
	assert_int_equal(str_copy(dst, sizeof(dst), "four"), -ENAMETOOLONG);
	assert_string_equal(dst, "");
	assert_int_equal(str_copy(dst, 1, ""), 0);
	assert_string_equal(dst, "");
}

static void a_format_is_whole_or_empty(void **state)
{
	char dst[4] = "old";

	(void)state;
	assert_int_equal(str_format(dst, sizeof(dst), "%d", 123), 0);
	assert_string_equal(dst, "123");
	assert_int_equal(str_format(dst, sizeof(dst), "%d", 1234), -ENAMETOOLONG);
	assert_string_equal(dst, "");
}

static void copy_into_nothing(void *arg)
{
	int r = str_copy(arg, 0, "");

	(void)r;
}

static void format_into_nothing(void *arg)
{
	int r = str_format(arg, 0, "x");

	(void)r;
}

static void no_room_at_all_is_a_bug(void **state)
{
	char dst[1];

	(void)state;
	assert_true(unit_aborts(copy_into_nothing, dst));
	assert_true(unit_aborts(format_into_nothing, dst));
}

static void lists_are_counted_and_freed(void **state)
{
	char **list = xcalloc(3, sizeof(*list));

	(void)state;
	assert_int_equal(str_list_count(list), 0);
	list[0] = xstrdup("a");
	list[1] = xstrdup("b");
	assert_int_equal(str_list_count(list), 2);
	assert_true(str_list_has(list, "b"));
	assert_false(str_list_has(list, "c"));
	str_list_freep(&list);
	assert_null(list);
	str_list_free(NULL);
	assert_false(str_list_has(NULL, "x"));
	assert_int_equal(str_list_count(NULL), 0);
}

static void a_list_frees_itself_at_the_end_of_its_scope(void **state)
{
	cleanup_str_list char **list = xcalloc(2, sizeof(*list));

	(void)state;
	list[0] = xstrdup("a"); /* the sanitizer would report a leak */
	assert_int_equal(str_list_count(list), 1);
}

static void a_copy_of_a_list_is_its_own(void **state)
{
	char a[] = "a";
	char *const given[] = {a, NULL};
	cleanup_str_list char **copy = str_list_copy(given);
	cleanup_str_list char **none = str_list_copy(NULL);

	(void)state;
	a[0] = 'x';
	assert_string_equal(copy[0], "a");
	assert_null(copy[1]);
	assert_null(none[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equality_and_prefixes_are_exact),
		cmocka_unit_test(a_copy_is_whole_or_empty),
		cmocka_unit_test(a_format_is_whole_or_empty),
		cmocka_unit_test(no_room_at_all_is_a_bug),
		cmocka_unit_test(lists_are_counted_and_freed),
		cmocka_unit_test(a_copy_of_a_list_is_its_own),
		cmocka_unit_test(a_list_frees_itself_at_the_end_of_its_scope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
