/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "core/tenant/bucket.h"

#define SECOND 1000000ULL

static void burst_then_the_rate(void **state)
{
	const struct bucket_rate rate = {2, 3};
	struct bucket b = {0};
	uint64_t now = 1000 * SECOND;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(bucket_take(&b, &rate, now), 0);
	assert_int_equal(bucket_take(&b, &rate, now), SECOND / 2);
	assert_int_equal(bucket_take(&b, &rate, now + SECOND / 2 - 1), 1);
	assert_int_equal(bucket_take(&b, &rate, now + SECOND / 2), 0);
	assert_int_equal(bucket_take(&b, &rate, now + SECOND / 2), SECOND / 2);
}

static void pause_gives_back_no_more_than_the_burst(void **state)
{
	const struct bucket_rate rate = {1000, 2};
	struct bucket b = {0};

	(void)state;
	assert_int_equal(bucket_take(&b, &rate, 5), 0);
	assert_false(bucket_is_full(&b, &rate, 5));
	assert_true(bucket_is_full(&b, &rate, 5 + SECOND));
	assert_int_equal(bucket_take(&b, &rate, UINT64_MAX / 2), 0);
	assert_int_equal(bucket_take(&b, &rate, UINT64_MAX / 2), 0);
	assert_int_not_equal(bucket_take(&b, &rate, UINT64_MAX / 2), 0);
}

static void clock_that_goes_back_gives_nothing(void **state)
{
	const struct bucket_rate rate = {1, 1};
	struct bucket b = {0};

	(void)state;
	assert_int_equal(bucket_take(&b, &rate, 100 * SECOND), 0);
	assert_int_equal(bucket_take(&b, &rate, 1), SECOND);
	assert_int_equal(bucket_take(&b, &rate, 101 * SECOND), 0);
}

static void average_is_the_rate(void **state)
{
	const struct bucket_rate rate = {7, 3};
	struct bucket b = {0};
	unsigned taken = 0;

	(void)state;
	for (uint64_t now = 1; now < 100 * SECOND; now += 1000)
		taken += bucket_take(&b, &rate, now) == 0;
	assert_in_range(taken, 700, 703);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(burst_then_the_rate),
		cmocka_unit_test(pause_gives_back_no_more_than_the_burst),
		cmocka_unit_test(clock_that_goes_back_gives_nothing),
		cmocka_unit_test(average_is_the_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
