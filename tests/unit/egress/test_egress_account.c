/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/account.h"
#include "unit.h"

#define SECOND 1000000ULL

static void connections_are_counted(void **state)
{
	struct account a = {.limits = {.connections = 2}};

	(void)state;
	for (a.connections = 0; a.connections < 2; a.connections++)
		assert_true(account_has_connection(&a));
	assert_false(account_has_connection(&a));
	a.connections--;
	assert_true(account_has_connection(&a));
}

static void without_limits_there_is_room(void **state)
{
	struct account a = {.limits = {.connections = 1}};

	(void)state;
	account_add(&a, SIZE_MAX / 2);
	assert_false(account_is_used_up(&a));
	assert_true(account_room(&a, 0) >= 1u << 20);
}

static void bytes_end(void **state)
{
	struct account a = {.limits = {.bytes = 1000}};

	(void)state;
	assert_int_equal(account_room(&a, 0), 1000);
	account_add(&a, 999);
	assert_false(account_is_used_up(&a));
	assert_int_equal(account_room(&a, 0), 1);
	account_add(&a, 5);
	assert_true(account_is_used_up(&a));
	assert_int_equal(account_room(&a, 100 * SECOND), 0);
}

static void a_rate_pays_back(void **state)
{
	struct account a = {.limits = {.rate = 1000}};
	uint64_t now = 7 * SECOND;

	(void)state;
	assert_int_equal(account_room(&a, now), 1000);
	account_add(&a, 1000);
	assert_int_equal(account_room(&a, now), 0);
	assert_false(account_is_used_up(&a));
	assert_int_equal(account_room(&a, now + SECOND / 2), 500);
	account_add(&a, 500);
	assert_int_equal(account_room(&a, now + SECOND / 2), 0);
	/* One second's worth is the most, however long nothing was used. */
	assert_int_equal(account_room(&a, now + 100 * SECOND), 1000);
}

/* Many small steps pay what one large step does. */
static void a_rate_loses_nothing_to_rounding(void **state)
{
	struct account a = {.limits = {.rate = 3}};
	uint64_t now = SECOND;
	size_t total = 0;

	(void)state;
	(void)account_room(&a, now);
	account_add(&a, 3);
	for (int i = 0; i < 10000; i++) {
		size_t room = account_room(&a, now += 1000);

		total += room;
		account_add(&a, room);
	}
	assert_in_range(total, 29, 30);
}

/* What came in with a request may exceed the rate: it is paid back before more is given. */
static void a_debt_beyond_the_burst_is_paid_first(void **state)
{
	struct account a = {.limits = {.rate = 1000}};
	uint64_t now = SECOND;

	(void)state;
	(void)account_room(&a, now);
	account_add(&a, 5000);
	for (int i = 0; i < 4; i++)
		assert_int_equal(account_room(&a, now += SECOND), 0);
	assert_int_equal(account_room(&a, now + SECOND), 1000);
}

static void the_largest_rate_does_not_overflow(void **state)
{
	struct account a = {.limits = {.rate = 1ULL << 40}};

	(void)state;
	assert_true(account_room(&a, SECOND) > 0);
	account_add(&a, 1u << 30);
	assert_true(account_room(&a, 2 * SECOND) > 0);
}

static void new_connections_have_a_rate(void **state)
{
	struct account a = {.limits = {.connections = 1000, .opened = 5}};
	uint64_t now = SECOND;
	int opened = 0;

	(void)state;
	while (account_may_open(&a, now) && opened < 1000) {
		account_open(&a);
		opened++;
	}
	assert_int_equal(opened, 50); /* ten seconds' worth */
	assert_false(account_may_open(&a, now + SECOND / 10));
	assert_true(account_may_open(&a, now + SECOND / 5 + SECOND / 10));
	a.limits.opened = 0;
	assert_true(account_may_open(&a, now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_are_counted),
		cmocka_unit_test(without_limits_there_is_room),
		cmocka_unit_test(bytes_end),
		cmocka_unit_test(a_rate_pays_back),
		cmocka_unit_test(a_rate_loses_nothing_to_rounding),
		cmocka_unit_test(a_debt_beyond_the_burst_is_paid_first),
		cmocka_unit_test(the_largest_rate_does_not_overflow),
		cmocka_unit_test(new_connections_have_a_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
