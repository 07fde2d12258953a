/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "base/alloc.h"

static void nothing_is_still_an_allocation(void **state)
{
	cleanup_free char *a = xmalloc(0);
	cleanup_free char *b = xcalloc(0, 8);
	cleanup_free char *c = xcalloc(8, 0);
	cleanup_free char *d = xrealloc_array(NULL, 0, 8);

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	assert_non_null(d);
}

static void new_objects_are_zero(void **state)
{
	struct thing {
		char bytes[100];
	};
	cleanup_free struct thing *thing = NEW(struct thing);

	(void)state;
	for (size_t i = 0; i < sizeof(thing->bytes); i++)
		assert_int_equal(thing->bytes[i], 0);
}

static void an_array_keeps_its_elements_when_it_grows(void **state)
{
	cleanup_free int *array = xrealloc_array(NULL, 2, sizeof(*array));

	(void)state;
	array[0] = 1;
	array[1] = 2;
	array = xrealloc_array(array, 1000, sizeof(*array));
	assert_int_equal(array[0], 1);
	assert_int_equal(array[1], 2);
}

static void copies_are_terminated_where_they_should_be(void **state)
{
	cleanup_free char *whole = xstrdup("whole");
	cleanup_free char *part = xstrndup("partly", 4);
	cleanup_free char *shorter = xstrndup("ab", 10);
	cleanup_free char *bytes = xmemdup0("a\0b", 3);
	cleanup_free char *none = xmemdup0(NULL, 0);
	cleanup_free char *text = xasprintf("%s-%d", "x", 7);

	(void)state;
	assert_string_equal(whole, "whole");
	assert_string_equal(part, "part");
	assert_string_equal(shorter, "ab");
	assert_memory_equal(bytes, "a\0b\0", 4);
	assert_string_equal(none, "");
	assert_string_equal(text, "x-7");
}

/* The address sanitizer ends the process for such sizes, where a libc returns NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* Through variables that the compiler cannot see through, or it would warn about the sizes. */
static volatile size_t huge = SIZE_MAX;

static void ask_for_too_much(void *arg)
{
	(void)arg;
	free(xmalloc(huge - 1));
}

static void ask_for_a_product_that_wraps(void *arg)
{
	(void)arg;
	free(xrealloc_array(NULL, huge / 2, 4));
}

static void ask_for_many_that_wrap(void *arg)
{
	(void)arg;
	free(xcalloc(huge / 2, 4));
}

static void copy_too_much(void *arg)
{
	(void)arg;
	free(xmemdup0("", huge));
}

static void out_of_memory_aborts(void **state)
{
	(void)state;
	assert_true(unit_aborts(ask_for_too_much, NULL));
	assert_true(unit_aborts(ask_for_a_product_that_wraps, NULL));
	assert_true(unit_aborts(ask_for_many_that_wrap, NULL));
	assert_true(unit_aborts(copy_too_much, NULL));
}

static void ownership_leaves_a_taken_variable(void **state)
{
	cleanup_free char *a = xstrdup("x");
	cleanup_free char *b = TAKE_PTR(a);
	int fd = 5;

	(void)state;
	assert_null(a);
	assert_string_equal(b, "x");
	assert_int_equal(TAKE_FD(fd), 5);
	assert_int_equal(fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_still_an_allocation),
		cmocka_unit_test(new_objects_are_zero),
		cmocka_unit_test(an_array_keeps_its_elements_when_it_grows),
		cmocka_unit_test(copies_are_terminated_where_they_should_be),
		cmocka_unit_test(out_of_memory_aborts),
		cmocka_unit_test(ownership_leaves_a_taken_variable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
