/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/clock.h"
#include "io/loop.h"
#include "loop_pass.h"

struct fixture {
	struct loop *loop;
	struct timer *timer;
	int fired;
};

static void on_timer(void *ctx)
{
	struct fixture *f = ctx;

	f->fired++;
}

static void free_itself(void *ctx)
{
	struct fixture *f = ctx;

	f->fired++;
	timer_free(f->timer);
}

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){.loop = loop_new()};
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	loop_free(((struct fixture *)*state)->loop);
	return 0;
}

static void a_timer_fires_once_and_never_early(void **state)
{
	struct fixture *f = *state;

	f->timer = timer_new(f->loop, on_timer, f);
	for (uint64_t delay_us = 1; delay_us <= 3001; delay_us += 1000) {
		uint64_t start = clock_us();

		f->fired = 0;
		timer_start(f->timer, delay_us);
		while (!f->fired)
			loop_run_once(f->loop, true);
		assert_true(clock_us() - start >= delay_us);
		loop_run_once(f->loop, false);
		assert_int_equal(f->fired, 1);
	}
	timer_free(f->timer);
}

static void a_stopped_timer_does_not_fire(void **state)
{
	struct fixture *f = *state;

	f->timer = timer_new(f->loop, on_timer, f);
	timer_start(f->timer, 1);
	timer_stop(f->timer);
	loop_pass(f->loop, 10 * USEC_PER_MS);
	assert_int_equal(f->fired, 0);
	timer_free(f->timer);
}

static void starting_again_replaces_the_deadline(void **state)
{
	struct fixture *f = *state;
	uint64_t start = clock_us();

	f->timer = timer_new(f->loop, on_timer, f);
	timer_start(f->timer, 3600 * USEC_PER_SEC);
	timer_start(f->timer, 1000);
	while (!f->fired)
		loop_run_once(f->loop, true);
	assert_true(clock_us() - start < 60 * USEC_PER_SEC);
	timer_free(f->timer);
}

static void a_timer_may_be_freed_by_its_own_callback(void **state)
{
	struct fixture *f = *state;

	f->timer = timer_new(f->loop, free_itself, f);
	timer_start(f->timer, 0);
	while (!f->fired)
		loop_run_once(f->loop, true);
	timer_free(NULL);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_timer_fires_once_and_never_early),
		TEST(a_stopped_timer_does_not_fire),
		TEST(starting_again_replaces_the_deadline),
		TEST(a_timer_may_be_freed_by_its_own_callback),
	};

	return cmocka_run_group_tests_name("io/timer", tests, NULL, NULL);
}
