/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "io/loop.h"
#include <signal.h>

struct fixture {
	struct signal_watch *watch;
	int count, last;
};

static void on_signal(void *ctx, int signo)
{
	struct fixture *f = ctx;

	f->count++;
	f->last = signo;
}

static void free_itself(void *ctx, int signo)
{
	struct fixture *f = ctx;

	on_signal(ctx, signo);
	signal_watch_free(f->watch);
}

static void a_signal_becomes_an_event(void **state)
{
	struct loop *loop = loop_new();
	struct fixture f = {0};

	(void)state;
	f.watch = signal_watch_new(loop, SIGUSR1, on_signal, &f);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(f.count, 0);
	while (!f.count)
		loop_run_once(loop, true);
	assert_int_equal(f.last, SIGUSR1);
	signal_watch_free(f.watch);
	loop_free(loop);
}

static void a_watch_may_be_freed_by_its_own_callback(void **state)
{
	struct loop *loop = loop_new();
	struct fixture f = {0};

	(void)state;
	f.watch = signal_watch_new(loop, SIGUSR2, free_itself, &f);
	assert_int_equal(raise(SIGUSR2), 0);
	while (!f.count)
		loop_run_once(loop, true);
	assert_int_equal(f.count, 1);
	signal_watch_free(NULL);
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_becomes_an_event),
		cmocka_unit_test(a_watch_may_be_freed_by_its_own_callback),
	};

	return cmocka_run_group_tests_name("io/signal", tests, NULL, NULL);
}
