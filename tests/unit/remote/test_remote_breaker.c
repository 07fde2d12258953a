/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/breaker.h"
#include "unit.h"

#define SECOND 1000000ULL

static void fail_times(struct breaker *b, unsigned times, uint64_t now)
{
	for (unsigned i = 0; i < times; i++) {
		assert_true(breaker_allows(b, now));
		breaker_failed(b, now);
	}
}

static void it_opens_after_failures_in_a_row(void **state)
{
	struct breaker b = {0};

	(void)state;
	fail_times(&b, BREAKER_FAILURES_MAX - 1, 0);
	breaker_succeeded(&b);
	fail_times(&b, BREAKER_FAILURES_MAX - 1, 0);
	assert_true(breaker_allows(&b, 0));
	assert_int_equal(breaker_wait_us(&b, 0), 0);
	breaker_failed(&b, 0);
	assert_false(breaker_allows(&b, 0));
	assert_int_equal(breaker_wait_us(&b, 0), BREAKER_WAIT_US);
}

static void one_call_tries_and_its_success_closes_it(void **state)
{
	struct breaker b = {0};
	uint64_t now = BREAKER_WAIT_US;

	(void)state;
	fail_times(&b, BREAKER_FAILURES_MAX, 0);
	assert_false(breaker_allows(&b, now - 1));
	assert_true(breaker_allows(&b, now));
	assert_false(breaker_allows(&b, now));
	breaker_succeeded(&b);
	assert_true(breaker_allows(&b, now));
	assert_true(breaker_allows(&b, now));
}

static void each_failed_attempt_doubles_the_wait_up_to_a_bound(void **state)
{
	struct breaker b = {0};
	uint64_t now = 0, wait = BREAKER_WAIT_US;

	(void)state;
	fail_times(&b, BREAKER_FAILURES_MAX, now);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(breaker_wait_us(&b, now), wait);
		now += wait;
		assert_true(breaker_allows(&b, now));
		breaker_failed(&b, now);
		wait = wait * 2 > BREAKER_WAIT_MAX_US ? BREAKER_WAIT_MAX_US : wait * 2;
	}
	assert_int_equal(wait, BREAKER_WAIT_MAX_US);
}

static void calls_that_began_before_it_opened_are_one_failure(void **state)
{
	struct breaker b = {0};

	(void)state;
	fail_times(&b, BREAKER_FAILURES_MAX, SECOND);
	for (int i = 0; i < 50; i++)
		breaker_failed(&b, SECOND + 1);
	assert_int_equal(breaker_wait_us(&b, SECOND), BREAKER_WAIT_US);
}

static void an_abandoned_attempt_lets_another_try(void **state)
{
	struct breaker b = {0};
	uint64_t now = BREAKER_WAIT_US;

	(void)state;
	fail_times(&b, BREAKER_FAILURES_MAX, 0);
	assert_true(breaker_allows(&b, now));
	breaker_abandoned(&b);
	assert_true(breaker_allows(&b, now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_opens_after_failures_in_a_row),
		cmocka_unit_test(one_call_tries_and_its_success_closes_it),
		cmocka_unit_test(each_failed_attempt_doubles_the_wait_up_to_a_bound),
		cmocka_unit_test(calls_that_began_before_it_opened_are_one_failure),
		cmocka_unit_test(an_abandoned_attempt_lets_another_try),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
