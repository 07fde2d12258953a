/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/head.h"
#include "text.h"
#include "unit.h"

/* Feeds @text in pieces of @step. Return: bytes of the body, or -1. */
static int64_t feed(const struct text *text, size_t step, bool *ret_done)
{
	struct chunks c = {0};
	size_t used = 0;

	*ret_done = false;
	while (used < text->len && !*ret_done) {
		size_t len = text->len - used < step ? text->len - used : step;
		char *exact = text_exact(text->data + used, len);
		int64_t n = chunks_feed(&c, exact, len, ret_done);
		bool again = false;

		free(exact);
		if (n < 0) {
			assert_int_equal(chunks_feed(&c, "0\r\n\r\n", 5, &again), -1);
			return -1;
		}
		assert_true((size_t)n == len || *ret_done);
		used += (size_t)n;
	}
	if (*ret_done) {
		bool again = false;

		assert_int_equal(chunks_feed(&c, "0\r\n\r\n", 5, &again), 0);
		assert_true(again);
	}
	return (int64_t)used;
}

static void bodies_end_behind_the_last_chunk(void **state)
{
	static const struct {
		struct text text;
		size_t used;
		bool done;
	} good[] = {
		{TEXT("0\r\n\r\n"), 5, true},
		{TEXT("000\r\n\r\n"), 7, true},
		{TEXT("0\r\n\r\nGET http://x/ HTTP/1.1\r\n"), 5, true},
		{TEXT("1\r\n\n\r\n0\r\n\r\n"), 11, true},
		{TEXT("5\r\n\r\n0\r\n\r\n0\r\n\r\n"), 15, true},
		{TEXT("A\r\n0123456789\r\n0a\r\n0123456789\r\n0\r\n\r\nx"), 36, true},
		{TEXT("00000000000000f\r\n"), 17, false},
		{TEXT("7fffffffffffff\r\nx"), 17, false},
		{TEXT("1"), 1, false},
		{TEXT("1\r\nx\r\n0\r\n\r"), 10, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		for (size_t step = 1; step <= good[i].text.len; step++) {
			bool done = false;

			assert_int_equal(feed(&good[i].text, step, &done), (int64_t)good[i].used);
			assert_int_equal(done, good[i].done);
		}
}

static void other_framing_is_refused(void **state)
{
	static const struct text bad[] = {
		TEXT("\r\n"),
		TEXT("\n"),
		TEXT("x\r\n"),
		TEXT(" 1\r\n"),
		TEXT("1 \r\n"),
		TEXT("+1\r\n"),
		TEXT("-1\r\n"),
		TEXT("0x1\r\n"),
		TEXT("1_0\r\n"),
		TEXT("1\n"),
		TEXT("1\rx"),
		TEXT("1\r\r\n"),
		TEXT("1;\r\n"),
		TEXT("1;x=y\r\n"),
		TEXT("0;\n\r\n"),
		TEXT("1\t\r\n"),
		TEXT("1\0\r\n"),
		TEXT("0000000000000001\r\n"),
		TEXT("ffffffffffffffff\r\n"),
		TEXT("10000000000000001\r\n"),
		TEXT("1\r\nxy"),
		TEXT("1\r\nx\n"),
		TEXT("1\r\nx\r\r"),
		TEXT("1\r\nx\r\n\r\n"),
		TEXT("1\r\nx0\r\n\r\n"),
		TEXT("0\r\nX: y\r\n\r\n"),
		TEXT("0\r\n\n"),
		TEXT("0\r\n\rx"),
		TEXT("0\n\n"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		for (size_t step = 1; step <= bad[i].len; step++) {
			bool done = false;

			assert_int_equal(feed(&bad[i], step, &done), -1);
			assert_false(done);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_end_behind_the_last_chunk),
		cmocka_unit_test(other_framing_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
