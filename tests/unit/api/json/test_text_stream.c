/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json/text_stream.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/utf8.h"
#include <string.h>

static void feed(struct text_stream *s, const char *data, size_t len, const char *expected)
{
	size_t text_len;
	cleanup_free char *text = text_stream_feed(s, data, len, &text_len);

	assert_int_equal(text_len, strlen(expected));
	assert_memory_equal(text, expected, text_len);
}

static void split_character_is_held_back(void **state)
{
	struct text_stream s = {0};

	(void)state;
	feed(&s, "a\xe2", 2, "a");
	feed(&s, "\x82", 1, "");
	feed(&s,
	     "\xac"
	     "b",
	     2,
	     "\xe2\x82\xac"
	     "b");
	feed(&s, "\xf0\x9f\x98", 3, "");
	feed(&s, "\x80", 1, "\xf0\x9f\x98\x80");
}

static void invalid_sequences_are_replaced(void **state)
{
	struct text_stream s = {0};
	size_t len;
	char *rest;

	(void)state;
	feed(&s,
	     "\xff"
	     "a\xe2\x82",
	     4,
	     "\xef\xbf\xbd"
	     "a");
	feed(&s, "x", 1, "\xef\xbf\xbdx");
	feed(&s, "\xe2\x82", 2, "");
	rest = text_stream_rest(&s, &len);
	assert_int_equal(len, 2);
	assert_memory_equal(rest, "\xe2\x82", 2);
	free(rest);
	rest = text_stream_rest(&s, &len);
	assert_int_equal(len, 0);
	free(rest);
}

/* However it is cut, the pieces make the same bytes as the whole, and no character is cut. */
static void cuts_do_not_change_the_bytes(void **state)
{
	static const char data[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xff\xe2\x82z\xf0\x9f\xc3";
	size_t len = sizeof(data) - 1, whole_len;
	cleanup_free char *whole = utf8_sanitize(data, len, &whole_len);

	(void)state;
	for (size_t step = 1; step <= len; step++) {
		struct text_stream s = {0};
		cleanup_buf struct buf b = BUF_INIT(1000), text = BUF_INIT(1000);
		size_t n, text_len;
		char *piece, *clean;

		for (size_t i = 0; i < len; i += step) {
			piece = text_stream_take(&s, data + i, step < len - i ? step : len - i, &n);
			clean = utf8_sanitize(piece, n, &text_len);
			assert_int_equal(buf_add(&b, piece, n), 0);
			assert_int_equal(buf_add(&text, clean, text_len), 0);
			free(piece);
			free(clean);
		}
		piece = text_stream_rest(&s, &n);
		clean = utf8_sanitize(piece, n, &text_len);
		assert_int_equal(buf_add(&b, piece, n), 0);
		assert_int_equal(buf_add(&text, clean, text_len), 0);
		free(piece);
		free(clean);
		assert_int_equal(b.len, len);
		assert_memory_equal(b.data, data, len);
		assert_int_equal(text.len, whole_len);
		assert_memory_equal(text.data, whole, whole_len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(split_character_is_held_back),
		cmocka_unit_test(invalid_sequences_are_replaced),
		cmocka_unit_test(cuts_do_not_change_the_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
