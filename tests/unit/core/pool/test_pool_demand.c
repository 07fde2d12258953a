/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pool/pool_demand.h"
#include "unit.h"

#define SEC (1000 * 1000ULL)

static void without_demand_the_floor_is_enough(void **state)
{
	struct pool_demand d = {0};

	(void)state;
	assert_int_equal(pool_demand_target(&d, 0, 16, 100 * SEC), 0);
	assert_int_equal(pool_demand_target(&d, 2, 16, 100 * SEC), 2);
}

static void every_miss_grows_the_reserve_and_calm_shrinks_it(void **state)
{
	struct pool_demand d = {0};
	size_t grown;

	(void)state;
	for (int i = 0; i < 4; i++)
		pool_demand_asked(&d, false, 100 * SEC);
	grown = pool_demand_target(&d, 1, 64, 100 * SEC);
	assert_true(grown > 4);
	assert_true(pool_demand_target(&d, 1, 64, 100 * SEC + 4 * POOL_CALM_US) < grown);
	assert_int_equal(pool_demand_target(&d, 1, 64, 100 * SEC + 40 * POOL_CALM_US), 1);
}

static void the_ceiling_holds_and_is_not_exceeded_in_secret(void **state)
{
	struct pool_demand d = {0};

	(void)state;
	for (int i = 0; i < 60; i++)
		pool_demand_asked(&d, false, 100 * SEC);
	assert_int_equal(pool_demand_target(&d, 1, 8, 100 * SEC), 8);
	/* However large the burst, the reserve shrinks from the ceiling. */
	assert_true(pool_demand_target(&d, 1, 64, 100 * SEC + 12 * POOL_CALM_US) <= 1);
}

static void demand_during_a_refill_is_covered(void **state)
{
	struct pool_demand d = {0};
	uint64_t now = 100 * SEC;

	(void)state;
	pool_demand_made(&d, 50 * 1000);
	/* 100 a second, all hits: 50 ms to make each, two at a time. */
	for (int i = 0; i < 1000; i++, now += 10 * 1000)
		pool_demand_asked(&d, true, now);
	assert_true(pool_demand_rate(&d, now) * 1e6 > 80 && pool_demand_rate(&d, now) * 1e6 < 120);
	assert_true(pool_demand_target(&d, 1, 64, now) >= 8);
	assert_true(pool_demand_target(&d, 1, 64, now) <= 12);
	assert_int_equal(pool_demand_target(&d, 1, 64, now + 20 * SEC), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_demand_the_floor_is_enough),
		cmocka_unit_test(every_miss_grows_the_reserve_and_calm_shrinks_it),
		cmocka_unit_test(the_ceiling_holds_and_is_not_exceeded_in_secret),
		cmocka_unit_test(demand_during_a_refill_is_covered),
	};

	return cmocka_run_group_tests_name("core/pool_demand", tests, NULL, NULL);
}
