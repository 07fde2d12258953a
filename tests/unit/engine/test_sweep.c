/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "engine/internal.h"

/* What readings of the list find, in turn. */
static const char *lists[2];
static size_t readings;

int __wrap_file_read_at(int dir, const char *path, struct buf *b);
int __wrap_file_read_at(int dir, const char *path, struct buf *b)
{
	const char *text = lists[readings++ % 2];

	assert_int_equal(dir, -1);
	assert_string_equal(path, "cgroup.procs");
	return buf_add(b, text, strlen(text) + 1) < 0 ? -1 : 0;
}

static pid_t fork_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	return pid;
}

static void a_process_of_the_group_is_killed(void **state)
{
	pid_t pid = fork_sleeper();
	int status = 0;
	char text[64];

	(void)state;
	(void)snprintf(text, sizeof(text), "0\n%d\nrubbish\n", (int)pid);
	lists[0] = lists[1] = text;
	assert_int_equal(group_kill_listed(-1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Its number is another process's by now. */
static void a_process_that_is_no_longer_listed_is_left_alone(void **state)
{
	pid_t pid = fork_sleeper();
	siginfo_t info = {0};
	char before[64], now[64];

	(void)state;
	(void)snprintf(before, sizeof(before), "%d\n", (int)pid);
	/* Longer numbers with the same digits are other processes. */
	(void)snprintf(now, sizeof(now), "%d1\n1%d\n", (int)pid, (int)pid);
	lists[0] = before;
	lists[1] = now;
	assert_int_equal(group_kill_listed(-1), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	assert_int_equal(info.si_pid, 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void more_processes_than_fit_at_once_are_all_killed(void **state)
{
	pid_t pids[150];
	char text[4096];
	size_t len = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork_sleeper();
		assert_true(pids[i] > 0);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%d\n", (int)pids[i]);
	}
	lists[0] = lists[1] = text;
	assert_int_equal(group_kill_listed(-1), ARRAY_SIZE(pids));
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_of_the_group_is_killed),
		cmocka_unit_test(a_process_that_is_no_longer_listed_is_left_alone),
		cmocka_unit_test(more_processes_than_fit_at_once_are_all_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
