/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/tools/shorten.h"
#include "base/alloc.h"
#include "base/utf8.h"
#include <string.h>

static void short_text_stays_as_it_is(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1000);

	(void)state;
	assert_int_equal(shorten(&b, "", 0, 10, NULL), 0);
	assert_int_equal(shorten(&b, "0123456789", 10, 10, NULL), 0);
	assert_string_equal(b.data, "0123456789");
}

static void long_text_keeps_head_and_tail(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1000);

	(void)state;
	assert_int_equal(shorten(&b, "aaaaabbbbbbbbbbccccc", 20, 10, "x://y"), 1);
	assert_string_equal(
		b.data,
		"aaaaa\n[... 10 of 20 bytes left out at offset 5; all of it: x://y ...]\nccccc");
}

static void lines_are_not_cut_where_that_costs_little(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1000);
	static const char text[] = "line one\nline two\nline three\nline four\nline five\n";

	(void)state;
	assert_int_equal(shorten(&b, text, strlen(text), 24, NULL), 1);
	assert_true(strncmp(b.data, "line one\n[... ", 14) == 0 ||
	            strncmp(b.data, "line one\nlin\n[... ", 18) == 0);
	assert_non_null(strstr(b.data, " ...]\nline five\n"));
}

static void no_character_is_cut(void **state)
{
	char text[300];

	(void)state;
	for (size_t i = 0; i < sizeof(text); i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	for (size_t max = 1; max < 200; max++) {
		cleanup_buf struct buf b = BUF_INIT(1000);

		assert_int_equal(shorten(&b, text, sizeof(text), max, NULL), 1);
		assert_true(utf8_is_valid(b.data, b.len));
	}
}

static void text_that_does_not_fit_is_reported(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(12);

	(void)state;
	assert_true(shorten(&b, "aaaaabbbbbbbbbbccccc", 20, 10, NULL) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_text_stays_as_it_is),
		cmocka_unit_test(long_text_keeps_head_and_tail),
		cmocka_unit_test(lines_are_not_cut_where_that_costs_little),
		cmocka_unit_test(no_character_is_cut),
		cmocka_unit_test(text_that_does_not_fit_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
