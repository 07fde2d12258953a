/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/buf.h"
#include "base/clock.h"
#include "io/loop.h"
#include <string.h>

struct fixture {
	struct loop *loop;
	struct buf seen;
	int rounds;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){.loop = loop_new(), .seen = BUF_INIT(1000)};
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	loop_free(f->loop);
	buf_done(&f->seen);
	return 0;
}

static void add(struct fixture *f, const char *text)
{
	assert_int_equal(buf_add_str(&f->seen, text), 0);
}

static void say_a(void *arg)
{
	add(arg, "a");
}

static void say_b(void *arg)
{
	add(arg, "b");
}

static void say_again(void *arg)
{
	struct fixture *f = arg;

	add(f, "x");
	if (++f->rounds < 3)
		loop_defer(f->loop, say_again, f);
}

static void stop(void *arg)
{
	loop_stop(((struct fixture *)arg)->loop);
}

static void cancel_b(void *arg)
{
	struct fixture *f = arg;

	loop_cancel(f->loop, say_b, f);
}

static void deferred_work_does_not_run_inside_the_call(void **state)
{
	struct fixture *f = *state;

	loop_defer(f->loop, say_a, f);
	assert_int_equal(f->seen.len, 0);
	loop_run_once(f->loop, false);
	assert_string_equal(f->seen.data, "a");
}

static void deferred_work_runs_in_order_and_once(void **state)
{
	struct fixture *f = *state;

	loop_defer(f->loop, say_a, f);
	loop_defer(f->loop, say_b, f);
	loop_defer(f->loop, say_a, f);
	loop_run_once(f->loop, true); /* must not block either */
	loop_run_once(f->loop, false);
	assert_string_equal(f->seen.data, "aba");
}

static void work_that_defers_itself_gets_one_turn_per_round(void **state)
{
	struct fixture *f = *state;

	loop_defer(f->loop, say_again, f);
	loop_run_once(f->loop, false);
	assert_string_equal(f->seen.data, "x");
	loop_run_once(f->loop, true);
	assert_string_equal(f->seen.data, "xx");
	loop_run_once(f->loop, true);
	loop_run_once(f->loop, false);
	assert_string_equal(f->seen.data, "xxx");
}

static void cancelled_work_does_not_run(void **state)
{
	struct fixture *f = *state;

	loop_defer(f->loop, say_a, f);
	loop_defer(f->loop, say_b, f);
	loop_defer(f->loop, say_a, f);
	loop_cancel(f->loop, say_a, f);
	loop_cancel(f->loop, say_b, NULL); /* another argument: other work */
	loop_run_once(f->loop, false);
	assert_string_equal(f->seen.data, "b");
}

static void work_can_be_cancelled_by_work_before_it_in_the_same_round(void **state)
{
	struct fixture *f = *state;

	loop_defer(f->loop, cancel_b, f);
	loop_defer(f->loop, say_b, f);
	loop_defer(f->loop, say_a, f);
	loop_run_once(f->loop, false);
	assert_string_equal(f->seen.data, "a");
}

static void run_lasts_until_stop(void **state)
{
	struct fixture *f = *state;
	struct timer *t = timer_new(f->loop, stop, f);
	uint64_t start = clock_us();

	timer_start(t, 20 * USEC_PER_MS);
	loop_run(f->loop);
	assert_true(clock_us() - start >= 20 * USEC_PER_MS);
	timer_free(t);
}

static void free_runs_what_is_still_deferred(void **state)
{
	struct fixture *f = *state;
	struct loop *other = loop_new();

	loop_defer(other, say_a, f);
	loop_free(other);
	assert_string_equal(f->seen.data, "a");
	loop_free(NULL);
}

static void never(void *ctx)
{
	(void)ctx;
}

static void free_with_a_timer_left(void *arg)
{
	struct loop *loop = loop_new();

	(void)arg;
	timer_start(timer_new(loop, never, NULL), USEC_PER_SEC);
	loop_free(loop);
}

static void a_loop_that_is_still_used_is_not_freed(void **state)
{
	(void)state;
	assert_true(unit_aborts(free_with_a_timer_left, NULL));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(deferred_work_does_not_run_inside_the_call),
		TEST(deferred_work_runs_in_order_and_once),
		TEST(work_that_defers_itself_gets_one_turn_per_round),
		TEST(cancelled_work_does_not_run),
		TEST(work_can_be_cancelled_by_work_before_it_in_the_same_round),
		TEST(run_lasts_until_stop),
		TEST(free_runs_what_is_still_deferred),
		TEST(a_loop_that_is_still_used_is_not_freed),
	};

	return cmocka_run_group_tests_name("io/loop", tests, NULL, NULL);
}
