/* SPDX-License-Identifier: Apache-2.0 */
#include "base/budget.h"
#include "unit.h"

struct shared {
	struct budget budget;
	struct budget_holder one, two;
	size_t first, second; /* costs of an object of each */
};

static struct shared *open_shared(struct shared *s)
{
	*s = (struct shared){.first = 0};
	budget_init(&s->budget, 1000);
	budget_join(&s->budget, &s->one);
	budget_join(&s->budget, &s->two);
	return s;
}

static void costs_are_counted_once(void **state)
{
	struct shared s;
	size_t more = 0;

	(void)state;
	open_shared(&s);
	budget_set(&s.budget, &s.one, &s.first, 100);
	budget_set(&s.budget, &s.one, &more, 50);
	budget_set(&s.budget, &s.one, &s.first, 30);
	assert_int_equal(s.first, 30);
	assert_int_equal(s.one.used, 80);
	assert_int_equal(s.budget.used, 80);
	budget_set(&s.budget, &s.one, &s.first, 0);
	budget_set(&s.budget, &s.one, &more, 0);
	assert_int_equal(s.budget.used, 0);
	budget_leave(&s.one);
	assert_null(budget_largest(&s.budget));
}

static void only_the_largest_waits(void **state)
{
	struct shared s;

	(void)state;
	open_shared(&s);
	budget_set(&s.budget, &s.one, &s.first, 700);
	assert_false(budget_must_wait(&s.budget, &s.one));
	budget_set(&s.budget, &s.one, &s.first, 701);
	assert_true(budget_must_wait(&s.budget, &s.one));
	assert_false(budget_must_wait(&s.budget, &s.two));
	/* Whoever has overtaken it waits in its place; of equals both wait. */
	budget_set(&s.budget, &s.one, &s.first, 350);
	budget_set(&s.budget, &s.two, &s.second, 360);
	assert_false(budget_must_wait(&s.budget, &s.one));
	assert_true(budget_must_wait(&s.budget, &s.two));
	budget_set(&s.budget, &s.one, &s.first, 360);
	assert_true(budget_must_wait(&s.budget, &s.one));
	assert_true(budget_must_wait(&s.budget, &s.two));
}

static void the_largest_loses_when_it_is_full(void **state)
{
	struct shared s;

	(void)state;
	open_shared(&s);
	budget_set(&s.budget, &s.one, &s.first, 500);
	budget_set(&s.budget, &s.two, &s.second, 350);
	assert_true(budget_is_short(&s.budget));
	assert_false(budget_is_full(&s.budget));
	budget_set(&s.budget, &s.two, &s.second, 351);
	assert_true(budget_is_full(&s.budget));
	assert_ptr_equal(budget_largest(&s.budget), &s.one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_are_counted_once),
		cmocka_unit_test(only_the_largest_waits),
		cmocka_unit_test(the_largest_loses_when_it_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
