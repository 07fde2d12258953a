/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. Virtual time, for unit tests that only wait for their own timers. A program
 * that is linked with virtual_time_dep has it from start to end: clock_us() and the timers of a
 * loop stand still, and a round of the loop that would block jumps to the next timer at once. So
 * idle time-outs, deadlines and back-off take no time, and always come in the same order. The
 * product has no part in it: the program replaces the C library's clock_gettime() and
 * epoll_wait(), which lib/base/clock.c and libuv call.
 *
 * Not for tests with other threads (a store's), processes or TCP connections: what they do takes
 * real time, which a jump does not give them. A round that must not block moves no time: wait with
 * loop_run_once(loop, true) or loop_pass().
 */

#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SEC 1000000000ULL
#define NS_PER_MS  1000000ULL

/* Not 0: a time of 0 means "never" in many places. */
static uint64_t now_ns = 1000 * NS_PER_SEC;

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	if (id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_COARSE)
		return (int)syscall(SYS_clock_gettime, id, ret_time);
	ret_time->tv_sec = (time_t)(now_ns / NS_PER_SEC);
	ret_time->tv_nsec = (long)(now_ns % NS_PER_SEC);
	return 0;
}

int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
	/* Without a timer only an event can end the wait. */
	int real = timeout < 0 ? -1 : 0;
	int n = (int)syscall(SYS_epoll_pwait, epfd, events, max, real, mask, _NSIG / 8);

	if (n == 0 && timeout > 0)
		now_ns += (uint64_t)timeout * NS_PER_MS;
	return n;
}

int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	return epoll_pwait(epfd, events, max, timeout, NULL);
}
