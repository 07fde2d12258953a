/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/fd.h"
#include "io/loop.h"
#include <errno.h>
#include <sys/socket.h>

struct fixture {
	struct loop *loop;
	struct watch *watch;
	int ours, theirs;
	int count, events;
	ssize_t got; /* of the last read in read_all */
};

static void on_event(void *ctx, int events)
{
	struct fixture *f = ctx;

	f->count++;
	f->events = events;
}

static void read_byte(void *ctx, int events)
{
	struct fixture *f = ctx;
	char c;

	on_event(ctx, events);
	f->got = recv(f->ours, &c, 1, MSG_DONTWAIT);
	if (f->got < 0)
		f->got = -errno;
}

static void free_itself(void *ctx, int events)
{
	struct fixture *f = ctx;

	on_event(ctx, events);
	watch_free(f->watch);
	f->ours = fd_close(f->ours);
}

static int setup(void **state)
{
	static struct fixture f;
	int pair[2];

	f = (struct fixture){.loop = loop_new()};
	assert_int_equal(fd_socketpair(SOCK_STREAM, pair), 0);
	f.ours = pair[0];
	f.theirs = pair[1];
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	loop_free(f->loop);
	(void)fd_close(f->ours);
	(void)fd_close(f->theirs);
	return 0;
}

static void nothing_is_reported_until_watched(void **state)
{
	struct fixture *f = *state;

	f->watch = watch_new(f->loop, f->ours, on_event, f);
	assert_int_equal(fd_write_all(f->theirs, "x", 1), 0);
	loop_run_once(f->loop, false);
	assert_int_equal(f->count, 0);
	watch_set(f->watch, WATCH_READ);
	loop_run_once(f->loop, true);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->events, WATCH_READ);
	watch_free(f->watch);
}

static void readiness_is_reported_until_consumed(void **state)
{
	struct fixture *f = *state;

	f->watch = watch_new(f->loop, f->ours, read_byte, f);
	watch_set(f->watch, WATCH_READ);
	assert_int_equal(fd_write_all(f->theirs, "xy", 2), 0);
	loop_run_once(f->loop, true);
	loop_run_once(f->loop, true);
	loop_run_once(f->loop, false);
	assert_int_equal(f->count, 2);
	watch_free(f->watch);
}

static void a_paused_watch_is_silent(void **state)
{
	struct fixture *f = *state;

	f->watch = watch_new(f->loop, f->ours, on_event, f);
	watch_set(f->watch, WATCH_READ | WATCH_WRITE);
	loop_run_once(f->loop, true);
	assert_int_equal(f->events, WATCH_WRITE);
	watch_set(f->watch, 0);
	loop_run_once(f->loop, false);
	assert_int_equal(f->count, 1);
	watch_free(f->watch);
}

/* A peer that closes with unread bytes raises POLLERR, on which libuv stops the handle. */
static void bytes_before_an_error_are_not_lost(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fd_write_all(f->ours, "unread", 6), 0);
	assert_int_equal(fd_write_all(f->theirs, "x", 1), 0);
	f->theirs = fd_close(f->theirs);
	f->watch = watch_new(f->loop, f->ours, read_byte, f);
	watch_set(f->watch, WATCH_READ);
	loop_run_once(f->loop, true);
	assert_int_equal(f->got, 1);
	loop_run_once(f->loop, true);
	assert_int_equal(f->got, -ECONNRESET);
	assert_int_equal(f->count, 2);
	watch_free(f->watch);
}

static void a_watch_may_be_freed_and_its_fd_closed_by_its_own_callback(void **state)
{
	struct fixture *f = *state;

	f->watch = watch_new(f->loop, f->ours, free_itself, f);
	watch_set(f->watch, WATCH_WRITE);
	loop_run_once(f->loop, true);
	loop_run_once(f->loop, false);
	assert_int_equal(f->count, 1);
	watch_free(NULL);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_reported_until_watched),
		TEST(readiness_is_reported_until_consumed),
		TEST(a_paused_watch_is_silent),
		TEST(bytes_before_an_error_are_not_lost),
		TEST(a_watch_may_be_freed_and_its_fd_closed_by_its_own_callback),
	};

	return cmocka_run_group_tests_name("io/watch", tests, NULL, NULL);
}
