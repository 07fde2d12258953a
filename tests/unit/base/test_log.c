/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"

/* What log_write wrote to stderr last, and how often. */
static char written[8192];
static size_t written_len;
static unsigned writes;
static bool interrupt_once;

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);

ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	if (fd != STDERR_FILENO)
		return __real_write(fd, data, len);
	if (interrupt_once) {
		interrupt_once = false;
		errno = EINTR;
		return -1;
	}
	assert_true(len < sizeof(written));
	memcpy(written, data, len);
	written[len] = '\0';
	written_len = len;
	writes++;
	errno = EIO; /* must be preserved */
	return (ssize_t)len;
}

static int reset(void **state)
{
	(void)state;
	written[0] = '\0';
	writes = 0;
	written_len = 0;
	return 0;
}

static int reset_text(void **state)
{
	log_setup("tester", LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	return reset(state);
}

static int reset_json(void **state)
{
	log_setup("tester", LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
	return reset(state);
}

/* The line after the time, which is the first pair and has a fixed length. */
static const char *after_time(void)
{
	bool json = written[0] == '{';
	size_t skip = json ? strlen("{\"time\":\"2026-11-15T04:19:36.123Z\",")
	                   : strlen("time=2026-11-15T04:19:36.123Z ");

	assert_true(written_len > skip);
	assert_int_equal(strncmp(written, json ? "{\"time\":\"2" : "time=2", json ? 10 : 6), 0);
	return written + skip;
}

static void a_text_line_is_pairs_with_the_message_last(void **state)
{
	(void)state;
	log_ctx(LOG_LEVEL_INFO, "box=b1 req=r2", "started in %d ms", 3);
	assert_string_equal(after_time(), "level=info program=tester box=b1 req=r2 "
	                                  "msg=\"started in 3 ms\"\n");
	assert_int_equal(writes, 1);
}

static void simple_values_stay_bare_and_others_are_quoted(void **state)
{
	(void)state;
	log_write(LOG_LEVEL_WARN, NULL, "ready");
	assert_string_equal(after_time(), "level=warn program=tester msg=ready\n");
	log_write(LOG_LEVEL_WARN, NULL, "a=b");
	assert_string_equal(after_time(), "level=warn program=tester msg=\"a=b\"\n");
	log_write(LOG_LEVEL_WARN, NULL, "%s", "");
	assert_string_equal(after_time(), "level=warn program=tester msg=\"\"\n");
}

static void a_json_line_is_one_object(void **state)
{
	(void)state;
	log_ctx(LOG_LEVEL_ERR, " box=b1  nonsense req=", "it's \"%s\"", "x");
	assert_string_equal(after_time(),
	                    "\"level\":\"error\",\"program\":\"tester\",\"box\":\"b1\","
	                    "\"req\":\"\",\"msg\":\"it's \\\"x\\\"\"}\n");
}

static void numbers_and_booleans_of_known_keys_are_bare_in_json(void **state)
{
	(void)state;
	log_ctx(LOG_LEVEL_ERR, "status=200 duration_ms=0.089 bytes=15 complete=true tenant=7", "x");
	assert_string_equal(after_time(),
	                    "\"level\":\"error\",\"program\":\"tester\",\"status\":200,"
	                    "\"duration_ms\":0.089,\"bytes\":15,\"complete\":true,"
	                    "\"tenant\":\"7\",\"msg\":\"x\"}\n");
}

static void what_is_no_number_stays_text_in_json(void **state)
{
	static const char *const values[] = {"",      "1.", ".5",  "01",    "1e3",  "-1", "nan",
	                                     "1.2.3", "1x", "tru", "truee", "null", "0x1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		char ctx[64], expected[96];

		(void)snprintf(ctx, sizeof(ctx), "status=%s", values[i]);
		(void)snprintf(expected, sizeof(expected), "\"status\":\"%s\",", values[i]);
		log_ctx(LOG_LEVEL_ERR, ctx, "x");
		if (!strstr(after_time(), expected))
			fail_msg("%s: %s", values[i], after_time());
	}
}

static void bytes_from_outside_cannot_leave_their_value(void **state)
{
	static const char nasty[] = "a\nlevel=info \"b\" \\ \x1b[2J \x7f \xC2\x9B \xFF \xC3\xA9";
	static const char escaped[] = "a\\u000alevel=info \\\"b\\\" \\\\ \\u001b[2J \\u007f "
				      "\\u009b \xEF\xBF\xBD \xC3\xA9";

	(void)state;
	log_write(LOG_LEVEL_INFO, NULL, "%s", nasty);
	assert_non_null(strstr(written, escaped));
	assert_ptr_equal(strchr(written, '\n'), written + written_len - 1);
}

/* 1000 bytes that need six each do not fit a line; the line is still well-formed. */
static void a_line_that_does_not_fit_is_cut_and_closed(void **state)
{
	char big[1000];

	(void)state;
	memset(big, 1, sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	log_write(LOG_LEVEL_INFO, NULL, "%s", big);
	assert_true(written_len <= 4096 && written_len > 4000);
	assert_non_null(strstr(written, "\\u0001...\""));
	assert_int_equal(written[written_len - 1], '\n');
}

static void a_json_line_that_does_not_fit_ends_as_an_object(void **state)
{
	char big[1000];

	(void)state;
	memset(big, 1, sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	log_write(LOG_LEVEL_INFO, NULL, "%s", big);
	assert_true(written_len <= 4096);
	assert_string_equal(written + written_len - 6, "...\"}\n");
}

static void a_context_that_does_not_fit_leaves_the_rest_out(void **state)
{
	static char ctx[8000];

	(void)state;
	memset(ctx, 'v', sizeof(ctx) - 1);
	memcpy(ctx, "a=b k=", 6);
	log_write(LOG_LEVEL_INFO, ctx, "lost");
	assert_true(written_len <= 4096);
	assert_non_null(strstr(written, "\"a\":\"b\",\"k\":\"vvv"));
	assert_string_equal(written + written_len - 6, "...\"}\n");
	assert_null(strstr(written, "lost"));
}

static void a_long_message_is_cut_at_a_character(void **state)
{
	char big[3000];

	(void)state;
	big[0] = 'x';
	for (size_t i = 1; i + 2 < sizeof(big); i += 2)
		memcpy(big + i, "\xC3\xA9", 3);
	log_write(LOG_LEVEL_INFO, NULL, "%s", big);
	assert_true(utf8_is_valid(written, written_len));
	assert_null(strstr(written, "\xEF\xBF\xBD"));
	assert_non_null(strstr(written, "\xC3\xA9...\"\n"));
}

static void a_key_without_end_is_left_out(void **state)
{
	char ctx[100];

	(void)state;
	memset(ctx, 'k', sizeof(ctx) - 1);
	memcpy(ctx + 90, "=v a=b", 7);
	log_write(LOG_LEVEL_INFO, ctx, "m");
	assert_string_equal(after_time(), "level=info program=tester a=b msg=m\n");
}

static void levels_below_the_chosen_one_are_off(void **state)
{
	(void)state;
	log_setup("tester", LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	assert_true(log_is_on(LOG_LEVEL_ERR));
	assert_true(log_is_on(LOG_LEVEL_WARN));
	assert_false(log_is_on(LOG_LEVEL_INFO));
	log_err("%d", 1);
	log_warn("%d", 2);
	log_info("%d", 3);
	log_debug("%d", 4);
	assert_int_equal(writes, 2);
}

static void errno_is_preserved_and_interruption_retried(void **state)
{
	(void)state;
	errno = EBADF;
	interrupt_once = true;
	log_info("x");
	assert_int_equal(errno, EBADF);
	assert_int_equal(writes, 1);
}

static void an_unknown_level_is_shown_as_such(void **state)
{
	(void)state;
	log_write((enum log_level)99, NULL, "m");
	assert_string_equal(after_time(), "level=? program=tester msg=m\n");
}

static void a_logged_error_has_its_whole_chain(void **state)
{
	struct error err = {0};

	(void)state;
	(void)error_set(&err, ERR_SYSTEM, ENOENT, "open 'x'");
	errno = EBADF;
	log_error("start", &err);
	assert_int_equal(errno, EBADF);
	assert_string_equal(after_time(), "level=error program=tester error=SYSTEM "
	                                  "msg=\"start: open 'x' (No such file or directory)\"\n");
	error_clear(&err);
	(void)error_field(&err, "timeout", "too long");
	log_error("request", &err);
	assert_string_equal(after_time(), "level=error program=tester error=INVALID "
	                                  "msg=\"request: timeout: too long\"\n");
}

static void names_of_levels_and_formats_are_parsed(void **state)
{
	(void)state;
	assert_int_equal(log_level_parse("error"), LOG_LEVEL_ERR);
	assert_int_equal(log_level_parse("warn"), LOG_LEVEL_WARN);
	assert_int_equal(log_level_parse("info"), LOG_LEVEL_INFO);
	assert_int_equal(log_level_parse("debug"), LOG_LEVEL_DEBUG);
	assert_int_equal(log_level_parse("DEBUG"), -EINVAL);
	assert_int_equal(log_format_parse("text"), LOG_FORMAT_TEXT);
	assert_int_equal(log_format_parse("json"), LOG_FORMAT_JSON);
	assert_int_equal(log_format_parse(""), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_text_line_is_pairs_with_the_message_last, reset_text),
		cmocka_unit_test_setup(simple_values_stay_bare_and_others_are_quoted, reset_text),
		cmocka_unit_test_setup(a_json_line_is_one_object, reset_json),
		cmocka_unit_test_setup(numbers_and_booleans_of_known_keys_are_bare_in_json,
	                               reset_json),
		cmocka_unit_test_setup(what_is_no_number_stays_text_in_json, reset_json),
		cmocka_unit_test_setup(bytes_from_outside_cannot_leave_their_value, reset_text),
		cmocka_unit_test_setup(a_line_that_does_not_fit_is_cut_and_closed, reset_text),
		cmocka_unit_test_setup(a_json_line_that_does_not_fit_ends_as_an_object, reset_json),
		cmocka_unit_test_setup(a_context_that_does_not_fit_leaves_the_rest_out, reset_json),
		cmocka_unit_test_setup(a_long_message_is_cut_at_a_character, reset_text),
		cmocka_unit_test_setup(a_key_without_end_is_left_out, reset_text),
		cmocka_unit_test_setup(levels_below_the_chosen_one_are_off, reset),
		cmocka_unit_test_setup(errno_is_preserved_and_interruption_retried, reset_text),
		cmocka_unit_test_setup(an_unknown_level_is_shown_as_such, reset_text),
		cmocka_unit_test_setup(a_logged_error_has_its_whole_chain, reset_text),
		cmocka_unit_test_setup(names_of_levels_and_formats_are_parsed, reset_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
