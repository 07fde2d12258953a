/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what every unit test includes instead of cmocka.h, which wants these headers before it, in
 * an order that sorting includes would break.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/** unit_aborts - whether fn(arg) ends in abort(), as a failed assertion does; tried in a child. */
static inline bool unit_aborts(void (*fn)(void *arg), void *arg)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		(void)close(STDERR_FILENO); /* the message is expected */
		fn(arg);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}
