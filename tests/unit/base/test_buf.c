/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"

static bool memory_is_out;

void *__real_realloc(void *ptr, size_t size);
void *__wrap_realloc(void *ptr, size_t size);

void *__wrap_realloc(void *ptr, size_t size)
{
	return memory_is_out ? NULL : __real_realloc(ptr, size);
}

static void bytes_are_appended_and_terminated(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(100);

	(void)state;
	assert_int_equal(buf_add(&b, "ab\0c", 4), 0);
	assert_int_equal(buf_add_str(&b, "de"), 0);
	assert_int_equal(buf_addf(&b, "%d", 42), 0);
	assert_int_equal(buf_add(&b, NULL, 0), 0);
	assert_int_equal(b.len, 8);
	assert_memory_equal(b.data, "ab\0cde42", 9);
}

static void the_maximum_is_reached_but_not_exceeded(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(0);

	(void)state;
	buf_init(&b, 5);
	assert_int_equal(buf_add_str(&b, "12345"), 0);
	assert_int_equal(buf_add(&b, "6", 1), -ENOBUFS);
	assert_int_equal(buf_addf(&b, "%d", 6), -ENOBUFS);
	assert_int_equal(buf_reserve(&b, 1), -ENOBUFS);
	assert_int_equal(buf_reserve(&b, SIZE_MAX), -ENOBUFS);
	assert_string_equal(b.data, "12345");
	assert_int_equal(b.len, 5);
	assert_true(b.cap <= 6);
}

static void a_maximum_of_everything_does_not_wrap(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(SIZE_MAX);

	(void)state;
	assert_int_equal(buf_reserve(&b, SIZE_MAX), -ENOBUFS);
	assert_int_equal(buf_add_str(&b, "x"), 0);
	assert_int_equal(buf_reserve(&b, SIZE_MAX - 1), -ENOBUFS);
	assert_string_equal(b.data, "x");
}

static void some_is_what_fits(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(4);

	(void)state;
	assert_int_equal(buf_add_some(&b, "abc", 3), 3);
	assert_int_equal(buf_add_some(&b, "defg", 4), 1);
	assert_int_equal(buf_add_some(&b, "h", 1), 0);
	assert_string_equal(b.data, "abcd");
}

static void growth_keeps_the_bytes(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1000000);

	(void)state;
	for (int i = 0; i < 100000; i++)
		assert_int_equal(buf_add(&b, (const char[]){(char)(i % 100)}, 1), 0);
	assert_int_equal(b.len, 100000);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(b.data[i], i % 100);
	assert_true(b.cap <= b.max + 1);
}

static void reserved_room_can_be_filled_by_hand(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(100);

	(void)state;
	assert_int_equal(buf_reserve(&b, 100), 0);
	memset(b.data, 'x', 100);
	b.len = 100;
	assert_int_equal(b.cap, 101);
	assert_int_equal(buf_reserve(&b, 0), 0);
}

static void consuming_drops_the_front(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(100);

	(void)state;
	buf_consume(&b, 0); /* also on an empty buffer */
	assert_int_equal(buf_add_str(&b, "abcdef"), 0);
	buf_consume(&b, 2);
	assert_string_equal(b.data, "cdef");
	buf_consume(&b, 0);
	assert_int_equal(b.len, 4);
	buf_consume(&b, 4);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
}

static void consume_more_than_there_is(void *arg)
{
	buf_consume(arg, 1);
}

static void consuming_too_much_is_a_bug(void **state)
{
	struct buf b = BUF_INIT(1);

	(void)state;
	assert_true(unit_aborts(consume_more_than_there_is, &b));
}

static void reset_empties_and_done_frees(void **state)
{
	struct buf b = BUF_INIT(100);

	(void)state;
	buf_reset(&b);
	assert_null(b.data);
	assert_int_equal(buf_add_str(&b, "abc"), 0);
	buf_reset(&b);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
	buf_done(&b);
	assert_null(b.data);
	assert_int_equal(b.cap, 0);
	buf_done(&b);
	assert_int_equal(buf_add_str(&b, "again"), 0);
	buf_done(&b);
}

static void taking_is_never_null_and_leaves_it_empty(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(10);
	size_t len = 99;
	cleanup_free char *nothing = buf_take(&b, &len);

	(void)state;
	assert_string_equal(nothing, "");
	assert_int_equal(len, 0);
	assert_int_equal(buf_add_str(&b, "abc"), 0);

	cleanup_free char *bytes = buf_take(&b, NULL);
	assert_string_equal(bytes, "abc");
	assert_int_equal(b.len, 0);
	assert_int_equal(b.max, 10);
	assert_int_equal(buf_add_str(&b, "0123456789"), 0);
}

static void missing_memory_is_a_full_buffer(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1000000);

	(void)state;
	assert_int_equal(buf_add_str(&b, "kept"), 0);
	memory_is_out = true;
	int added = buf_reserve(&b, 100000);
	size_t some = buf_add_some(&b, "", 100000);
	memory_is_out = false;
	assert_int_equal(added, -ENOBUFS);
	assert_int_equal(some, 0);
	assert_string_equal(b.data, "kept");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_appended_and_terminated),
		cmocka_unit_test(the_maximum_is_reached_but_not_exceeded),
		cmocka_unit_test(a_maximum_of_everything_does_not_wrap),
		cmocka_unit_test(some_is_what_fits),
		cmocka_unit_test(growth_keeps_the_bytes),
		cmocka_unit_test(reserved_room_can_be_filled_by_hand),
		cmocka_unit_test(consuming_drops_the_front),
		cmocka_unit_test(consuming_too_much_is_a_bug),
		cmocka_unit_test(reset_empties_and_done_frees),
		cmocka_unit_test(taking_is_never_null_and_leaves_it_empty),
		cmocka_unit_test(missing_memory_is_a_full_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
