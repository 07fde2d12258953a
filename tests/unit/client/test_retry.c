/* SPDX-License-Identifier: Apache-2.0 */
#include "client/retry.h"

#include "unit.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define LATER (clock_us() + 60 * USEC_PER_SEC)

static int refuse(struct retry *retry, const char *text, struct error *err)
{
	json_auto_t *problem = json_loads(text, 0, NULL);

	assert_non_null(problem);
	return retry_refused(retry, problem, err);
}

static void only_what_was_not_begun_is_sent_again(void **state)
{
	struct retry retry = {.until_us = LATER};
	struct error err = {0};

	(void)state;
	assert_int_equal(refuse(&retry, "{\"retry_after\": 0}", &err), 1);
	assert_int_equal(refuse(&retry, "{\"retry_after\": null}", &err), 0);
	assert_int_equal(refuse(&retry, "{}", &err), 0);
	assert_int_equal(refuse(&retry, "{\"retry_after\": \"1\"}", &err), 0);
	assert_int_equal(refuse(&retry, "{\"retry_after\": -1}", &err), 0);
	assert_int_equal(refuse(&retry, "{\"retry_after\": 4000000000}", &err), 0);
}

static void no_wait_ends_after_the_time_of_the_caller(void **state)
{
	struct retry retry = {.until_us = LATER}, over = {.until_us = clock_us()};
	struct retry soon = {.until_us = clock_us() + 50 * USEC_PER_MS};
	struct error err = {0};

	(void)state;
	assert_int_equal(refuse(&retry, "{\"retry_after\": 61}", &err), 0);
	assert_int_equal(refuse(&over, "{\"retry_after\": 1}", &err), 0);
	/* Not even one that is told to be none: it would be a loop without a pause. */
	assert_int_equal(refuse(&soon, "{\"retry_after\": 0}", &err), 0);
	(void)error_set(&err, ERR_UNAVAILABLE, EAGAIN, "the queue is full");
	assert_int_equal(retry_unreached(&over, &err), 0);
	assert_int_equal(err.sys, EAGAIN);
}

static void a_refused_connection_is_tried_three_times(void **state)
{
	struct retry retry = {.until_us = LATER};
	struct error err = {0};

	(void)state;
	for (int i = 0; i < 3; i++) {
		(void)error_set(&err, ERR_UNAVAILABLE, ECONNREFUSED, "nothing listens");
		assert_int_equal(retry_unreached(&retry, &err), 1);
		assert_false(error_is_set(&err));
	}
	(void)error_set(&err, ERR_UNAVAILABLE, ECONNREFUSED, "nothing listens");
	assert_int_equal(retry_unreached(&retry, &err), 0);
	assert_int_equal(err.sys, ECONNREFUSED);
}

/* The daemon may have begun it. */
static void other_failures_are_final(void **state)
{
	static const struct {
		enum error_code code;
		int sys;
	} rows[] = {
		{ERR_UNAVAILABLE, 0},         {ERR_UNAVAILABLE, ECONNRESET},
		{ERR_UNAVAILABLE, ECANCELED}, {ERR_UNAVAILABLE, ENOENT},
		{ERR_PROTOCOL, ECONNREFUSED}, {ERR_TIMEOUT, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct retry retry = {.until_us = LATER};
		struct error err = {0};

		(void)error_set(&err, rows[i].code, rows[i].sys, "x");
		assert_int_equal(retry_unreached(&retry, &err), 0);
		assert_true(error_is_set(&err));
	}
}

static void count(void *ctx)
{
	++*(int *)ctx;
}

static void a_cancelled_wait_ends_at_once_and_was_announced_once(void **state)
{
	cleanup_close int fd = fd_eventfd();
	int told = 0;
	struct retry retry = {.until_us = LATER, .cancel_fd = fd, .on_busy = count, .ctx = &told};
	const uint64_t one = 1;
	struct error err = {0};

	(void)state;
	assert_int_equal(refuse(&retry, "{\"retry_after\": 0}", &err), 1);
	assert_int_equal(told, 0);
	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
	for (int i = 0; i < 2; i++) {
		error_clear(&err);
		assert_int_equal(refuse(&retry, "{\"retry_after\": 30}", &err), -1);
		assert_int_equal(err.sys, ECANCELED);
	}
	assert_int_equal(told, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_was_not_begun_is_sent_again),
		cmocka_unit_test(no_wait_ends_after_the_time_of_the_caller),
		cmocka_unit_test(a_refused_connection_is_tried_three_times),
		cmocka_unit_test(other_failures_are_final),
		cmocka_unit_test(a_cancelled_wait_ends_at_once_and_was_announced_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
