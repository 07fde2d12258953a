/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

#define FFFD "\xEF\xBF\xBD"

struct row {
	const char *in, *out;
};

/* A macro, because aligned columns of such strings cannot be read. */
#define BECOMES(in_, out_)                                                                         \
	{                                                                                          \
		.in = (in_), .out = (out_)                                                         \
	}
#define STAYS(in_) BECOMES(in_, in_)

static const struct row rows[] = {
	STAYS(""),
	STAYS("plain"),
	STAYS("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"),
	/* the first and the last of each form */
	STAYS("\xC2\x80\xDF\xBF"),
	STAYS("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"),
	STAYS("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"),
	/* a continuation without a start; bytes that never occur */
	BECOMES("a\x80z", "a" FFFD "z"),
	BECOMES("\xFE\xFF", FFFD FFFD),
	BECOMES("\xF5\x80", FFFD FFFD),
	/* overlong forms: every byte is a part of its own, because the second one cannot follow */
	BECOMES("\xC0\xAF", FFFD FFFD),
	BECOMES("\xC1\xBF", FFFD FFFD),
	BECOMES("\xE0\x9F\xBF", FFFD FFFD FFFD),
	BECOMES("\xF0\x8F\xBF\xBF", FFFD FFFD FFFD FFFD),
	/* surrogates and what is above the last character */
	BECOMES("\xED\xA0\x80", FFFD FFFD FFFD),
	BECOMES("\xF4\x90\x80\x80", FFFD FFFD FFFD FFFD),
	/* truncated sequences are one part each */
	BECOMES("a\xC3", "a" FFFD),
	BECOMES("a\xE2\x82", "a" FFFD),
	BECOMES("a\xF0\x9F\x98", "a" FFFD),
	BECOMES("\xF0\x9F\x98z", FFFD "z"),
	BECOMES("\xE2\x82\xC3\xA9", FFFD "\xC3\xA9"),
	/* the bytes that the standard's section on replacement uses as its example */
	BECOMES("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64",
                "a" FFFD FFFD FFFD "b" FFFD "c" FFFD FFFD "d"),
};

static void every_maximal_invalid_part_is_replaced(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = 0;
		cleanup_free char *out = utf8_sanitize(rows[i].in, strlen(rows[i].in), &len);

		assert_string_equal(out, rows[i].out);
		assert_int_equal(len, strlen(rows[i].out));
	}
}

static void valid_is_what_needs_no_replacement(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(utf8_is_valid(rows[i].in, strlen(rows[i].in)),
		                 strcmp(rows[i].in, rows[i].out) == 0);
}

static void a_nul_is_a_character(void **state)
{
	size_t len = 0;
	cleanup_free char *out = utf8_sanitize("a\0b", 3, &len);

	(void)state;
	assert_int_equal(len, 3);
	assert_memory_equal(out, "a\0b\0", 4);
	assert_true(utf8_is_valid("\0", 1));
}

static void the_next_character_has_a_length(void **state)
{
	bool valid = false;

	(void)state;
	assert_int_equal(utf8_next("\xE2\x82\xACx", 4, &valid), 3);
	assert_true(valid);
	assert_int_equal(utf8_next("\xE2\x82\xACx", 2, &valid), 2);
	assert_false(valid);
	assert_int_equal(utf8_next("\xFFx", 2, &valid), 1);
	assert_false(valid);
}

static void a_cut_is_moved_before_a_character_that_is_not_whole(void **state)
{
	const char *text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
	static const size_t cuts[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};

	(void)state;
	for (size_t len = 0; len < ARRAY_SIZE(cuts); len++)
		assert_int_equal(utf8_cut(text, len), cuts[len]);
}

static void a_cut_leaves_alone_what_no_byte_could_complete(void **state)
{
	(void)state;
	assert_int_equal(utf8_cut("a\x80", 2), 2);
	assert_int_equal(utf8_cut("\x80\x80\x80\x80", 4), 4);
	assert_int_equal(utf8_cut("\xE0\x80", 2), 2);
	assert_int_equal(utf8_cut("\xFF", 1), 1);
	assert_int_equal(utf8_cut(NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_maximal_invalid_part_is_replaced),
		cmocka_unit_test(valid_is_what_needs_no_replacement),
		cmocka_unit_test(a_nul_is_a_character),
		cmocka_unit_test(the_next_character_has_a_length),
		cmocka_unit_test(a_cut_is_moved_before_a_character_that_is_not_whole),
		cmocka_unit_test(a_cut_leaves_alone_what_no_byte_could_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
