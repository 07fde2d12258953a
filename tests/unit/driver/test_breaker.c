/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/breaker.h"
#include "unit.h"

#include <string.h>

#include "base/clock.h"

#define SEC USEC_PER_SEC

static void a_new_one_lets_everything_through(void **state)
{
	struct breaker b = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(breaker_check(&b, "x", 5 * SEC, &err), 0);
	assert_int_equal(breaker_retry_s(&b, 5 * SEC), 0);
	assert_string_equal(breaker_state_name(b.state), "closed");
}

static void an_open_one_refuses_with_reason_and_time(void **state)
{
	struct breaker b = {0};
	struct error err = {0};
	uint64_t delay;

	(void)state;
	breaker_close(&b, SEC);
	delay = breaker_open(&b, 10 * SEC, "it died");
	assert_true(delay > 0 && b.next_us == 10 * SEC + delay);
	assert_int_equal(breaker_check(&b, "second", 10 * SEC, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "engine 'second' is not available: it died"));
	assert_int_equal(err.retry_s, 1);
	assert_int_equal(b.trips, 1);
}

static void each_failure_doubles_the_wait_up_to_a_bound(void **state)
{
	struct breaker b = {0};
	uint64_t last = 0, now = SEC;

	(void)state;
	breaker_close(&b, now);
	for (int i = 0; i < 20; i++) {
		uint64_t delay = breaker_open(&b, now, "again");

		assert_true(delay >= last && delay <= 30 * SEC);
		assert_true(i == 0 || last == 30 * SEC || delay == 2 * last || delay == 30 * SEC);
		last = delay;
		now += delay;
		breaker_try(&b);
	}
	assert_true(last == 30 * SEC);
	assert_int_equal(b.trips, 1); /* it never worked in between */
}

static void a_short_life_does_not_forget_a_long_one_does(void **state)
{
	struct breaker b = {0};
	uint64_t first, second, third;

	(void)state;
	breaker_close(&b, SEC);
	first = breaker_open(&b, 2 * SEC, "a");
	breaker_try(&b);
	breaker_close(&b, 3 * SEC);
	second = breaker_open(&b, 4 * SEC, "b");
	assert_true(second == 2 * first);
	breaker_try(&b);
	breaker_close(&b, 5 * SEC);
	third = breaker_open(&b, 500 * SEC, "c");
	assert_true(third == first);
}

static void a_half_open_one_still_refuses(void **state)
{
	struct breaker b = {0};
	struct error err = {0};

	(void)state;
	(void)breaker_open(&b, SEC, "it died");
	breaker_try(&b);
	assert_int_equal(breaker_check(&b, "x", 2 * SEC, &err), -1);
	assert_non_null(strstr(err.msg, "being started again"));
	breaker_close(&b, 3 * SEC);
	error_clear(&err);
	assert_int_equal(breaker_check(&b, "x", 3 * SEC, &err), 0);
	assert_string_equal(b.why, "");
}

static void one_that_gave_up_promises_nothing(void **state)
{
	struct breaker b = {0};
	struct error err = {0};

	(void)state;
	breaker_give_up(&b, "the starter has ended");
	assert_int_equal(breaker_check(&b, "x", SEC, &err), -1);
	assert_int_equal(err.retry_s, 0);
	assert_non_null(strstr(err.msg, "until the daemon is restarted"));
}

static void a_long_reason_is_cut(void **state)
{
	char why[2 * BREAKER_WHY_LEN];
	struct breaker b = {0};

	(void)state;
	memset(why, 'a', sizeof(why));
	why[sizeof(why) - 1] = '\0';
	(void)breaker_open(&b, SEC, why);
	assert_int_equal(strlen(b.why), BREAKER_WHY_LEN - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_one_lets_everything_through),
		cmocka_unit_test(an_open_one_refuses_with_reason_and_time),
		cmocka_unit_test(each_failure_doubles_the_wait_up_to_a_bound),
		cmocka_unit_test(a_short_life_does_not_forget_a_long_one_does),
		cmocka_unit_test(a_half_open_one_still_refuses),
		cmocka_unit_test(one_that_gave_up_promises_nothing),
		cmocka_unit_test(a_long_reason_is_cut),
	};

	return cmocka_run_group_tests_name("driver/breaker", tests, NULL, NULL);
}
