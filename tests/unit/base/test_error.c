/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

static void setting_fills_everything_and_returns_failure(void **state)
{
	struct error err = {0};

	(void)state;
	assert_false(error_is_set(&err));
	assert_int_equal(error_set(&err, ERR_NOT_FOUND, ENOENT, "open '%s'", "x"), -1);
	assert_true(error_is_set(&err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(err.sys, ENOENT);
	assert_string_equal(err.field, "");
	assert_string_equal(err.msg, "open 'x'");
}

static void a_bad_field_is_named(void **state)
{
	struct error err = {0};

	(void)state;
	assert_int_equal(error_field(&err, "resources.memory", "must be at least %d", 4), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(err.sys, 0);
	assert_string_equal(err.field, "resources.memory");
	assert_string_equal(err.msg, "must be at least 4");
}

static void context_goes_in_front(void **state)
{
	struct error err = {0};

	(void)state;
	(void)error_set(&err, ERR_SYSTEM, EIO, "read");
	assert_int_equal(error_wrap(&err, "file %d", 3), -1);
	assert_int_equal(error_wrap(&err, "box %s", "b1"), -1);
	assert_string_equal(err.msg, "box b1: file 3: read");
	assert_int_equal(err.code, ERR_SYSTEM);
	assert_int_equal(err.sys, EIO);
}

static void a_wait_is_rounded_up_and_bounded(void **state)
{
	static const struct {
		uint64_t wait_us;
		unsigned seconds;
	} list[] = {
		{0, 1},
		{1, 1},
		{1000000, 1},
		{1000001, 2},
		{59500000, 60},
		{3600000000, 3600},
		{UINT64_MAX, 3600},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		struct error err = {0};

		assert_int_equal(error_later(&err, ERR_BUSY, list[i].wait_us, "%d wait", 3), -1);
		assert_int_equal(err.code, ERR_BUSY);
		assert_string_equal(err.msg, "3 wait");
		assert_int_equal(err.retry_s, list[i].seconds);
	}
}

static void nothing_is_repeated_unless_its_error_says_so(void **state)
{
	struct error err = {.retry_s = 7};

	(void)state;
	(void)error_set(&err, ERR_BUSY, 0, "busy");
	assert_int_equal(err.retry_s, 0);
	(void)error_retry(&err, 5000000);
	(void)error_wrap(&err, "session");
	assert_int_equal(err.retry_s, 5);
	error_clear(&err);
	assert_int_equal(err.retry_s, 0);
	err.retry_s = 7;
	(void)error_field(&err, "code", "is missing");
	assert_int_equal(err.retry_s, 0);
}

static void long_texts_are_cut_at_a_character(void **state)
{
	struct error err = {0};
	char text[600];

	(void)state;
	/* Two-byte characters after one byte: no even length ends between characters. */
	text[0] = 'x';
	for (size_t i = 1; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xC3\xA9", 3);
	(void)error_field(&err, text, "%s", text);
	assert_int_equal(strlen(err.field), sizeof(err.field) - 1);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	(void)error_wrap(&err, "ab");
	assert_true(utf8_is_valid(err.msg, strlen(err.msg)));
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);

	error_clear(&err);
	(void)error_field(&err, text + 1, "%s", text + 1);
	assert_int_equal(strlen(err.field), sizeof(err.field) - 2);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 2);
}

static void context_that_fills_everything_leaves_no_room(void **state)
{
	struct error err = {0};
	char text[600];

	(void)state;
	memset(text, 'c', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	(void)error_set(&err, ERR_SYSTEM, 0, "lost");
	(void)error_wrap(&err, "%s", text);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	assert_null(strstr(err.msg, "lost"));
}

static void clearing_makes_it_usable_again(void **state)
{
	struct error err = {0};

	(void)state;
	(void)error_field(&err, "f", "m");
	error_clear(&err);
	assert_false(error_is_set(&err));
	assert_int_equal(error_set(&err, ERR_BUSY, 0, "x"), -1);
	assert_string_equal(err.field, "");
}

static void set_twice(void *arg)
{
	struct error err = {0};

	(void)arg;
	(void)error_set(&err, ERR_BUSY, 0, "first");
	(void)error_set(&err, ERR_BUSY, 0, "second");
}

static void set_field_twice(void *arg)
{
	struct error err = {0};

	(void)arg;
	(void)error_field(&err, "a", "first");
	(void)error_field(&err, "b", "second");
}

static void set_nothing(void *arg)
{
	struct error err = {0};

	(void)arg;
	(void)error_set(&err, ERR_NONE, 0, "nothing");
}

static void wrap_nothing(void *arg)
{
	struct error err = {0};

	(void)arg;
	(void)error_wrap(&err, "nothing");
}

static void losing_or_inventing_an_error_is_a_bug(void **state)
{
	(void)state;
	assert_true(unit_aborts(set_twice, NULL));
	assert_true(unit_aborts(set_field_twice, NULL));
	assert_true(unit_aborts(set_nothing, NULL));
	assert_true(unit_aborts(wrap_nothing, NULL));
}

static void the_columns_of_the_list_are_served(void **state)
{
	(void)state;
	assert_string_equal(error_text(ERR_INVALID), "Sandbox.InvalidParameter");
	assert_string_equal(error_name(ERR_INVALID), "INVALID");
	assert_non_null(strstr(error_solution(ERR_INVALID), "field"));
	assert_int_equal(error_http(ERR_BUSY), 429);
	assert_int_equal(error_jsonrpc(ERR_BAD_JSON), -32700);
	assert_int_equal(error_http(ERR_NONE), 200);
}

static void every_code_is_complete_and_its_text_unique_in_its_status(void **state)
{
	(void)state;
	for (int i = ERR_NONE + 1; i < ERR_COUNT; i++) {
		assert_true(error_http(i) >= 400 && error_http(i) < 600);
		assert_true(error_jsonrpc(i) < 0);
		assert_true(strlen(error_describe(i)) > 0);
		assert_true(strlen(error_solution(i)) > 0);
		/* For callers of REST, who have no command line. */
		assert_null(strstr(error_solution(i), "millibox"));
		assert_null(strstr(error_solution(i), "--"));
		for (int other = 0; other < i; other++)
			assert_string_not_equal(error_text(i), error_text(other));
	}
}

static void an_unknown_code_counts_as_our_own_failure(void **state)
{
	(void)state;
	assert_string_equal(error_name((enum error_code)ERR_COUNT), "SYSTEM");
	assert_int_equal(error_http((enum error_code) - 1), 500);
	assert_int_equal(error_jsonrpc((enum error_code)9999), error_jsonrpc(ERR_SYSTEM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(setting_fills_everything_and_returns_failure),
		cmocka_unit_test(a_bad_field_is_named),
		cmocka_unit_test(context_goes_in_front),
		cmocka_unit_test(a_wait_is_rounded_up_and_bounded),
		cmocka_unit_test(nothing_is_repeated_unless_its_error_says_so),
		cmocka_unit_test(long_texts_are_cut_at_a_character),
		cmocka_unit_test(context_that_fills_everything_leaves_no_room),
		cmocka_unit_test(clearing_makes_it_usable_again),
		cmocka_unit_test(losing_or_inventing_an_error_is_a_bug),
		cmocka_unit_test(the_columns_of_the_list_are_served),
		cmocka_unit_test(every_code_is_complete_and_its_text_unique_in_its_status),
		cmocka_unit_test(an_unknown_code_counts_as_our_own_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
