/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/egress.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/*
 * Each attempt runs in a child, once confined and once not: the second shows that the confinement
 * refuses, not that the attempt is broken.
 */

#define CANNOT_CONFINE 99

/* Return: 0, or an errno. */
static int attempt(int (*fn)(void), bool confined)
{
	struct error err = {0};
	uint32_t files = 0;
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		if (confined &&
		    (confine(NULL, EGRESS_MEMORY_BYTES, &files, &err) < 0 || files == 0))
			_exit(CANNOT_CONFINE);
		_exit(fn() < 0 ? errno : 0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int read_users(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int read_process(void)
{
	return open("/proc/self/status", O_RDONLY | O_CLOEXEC);
}

static int list_root(void)
{
	return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int write_file(void)
{
	return open("/tmp", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

static int run_program(void)
{
	char *const argv[] = {(char[]){"true"}, NULL};

	return execv("/bin/true", argv);
}

static int make_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid;
}

static int signal_parent(void)
{
	return kill(getppid(), 0);
}

static int signal_thread_of_parent(void)
{
	pid_t parent = getppid();

	return (int)syscall(SYS_tgkill, parent, parent, 0);
}

static int trace(void)
{
	return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static int open_unix(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int open_netlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
}

static int make_namespace(void)
{
	return unshare(CLONE_FILES); /* of those that need no privilege */
}

static int become_dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static int listen_to_others(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : listen(fd, 1);
}

static void what_the_proxy_does_not_need_is_refused(void **state)
{
	static const struct {
		int (*fn)(void);
		int error;
	} rows[] = {
		{read_users, EACCES},     {read_process, EACCES},
		{list_root, EACCES},      {write_file, EACCES},
		{run_program, EPERM},     {make_process, EPERM},
		{signal_parent, EPERM},   {signal_thread_of_parent, EPERM},
		{trace, EPERM},           {open_unix, EPERM},
		{open_netlink, EPERM},    {make_namespace, EPERM},
		{become_dumpable, EPERM}, {listen_to_others, EPERM},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(attempt(rows[i].fn, false), 0);
		assert_int_equal(attempt(rows[i].fn, true), rows[i].error);
	}
}

static int open_tcp(void)
{
	return socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int open_udp(void)
{
	return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static int read_hosts(void)
{
	int fd = open("/etc/hosts", O_RDONLY | O_CLOEXEC);

	return fd < 0 && errno == ENOENT ? 0 : fd;
}

static void what_it_needs_is_allowed(void **state)
{
	(void)state;
	assert_int_equal(attempt(open_tcp, true), 0);
	assert_int_equal(attempt(open_udp, true), 0);
	assert_int_equal(attempt(read_hosts, true), 0);
}

/* Not unit_aborts(), whose limit on core files confine() cannot raise. */
static void it_can_still_abort(void **state)
{
	struct error err = {0};
	uint32_t files;
	int status = 0;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		if (confine(NULL, EGRESS_MEMORY_BYTES, &files, &err) < 0)
			_exit(CANNOT_CONFINE);
		abort();
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_proxy_does_not_need_is_refused),
		cmocka_unit_test(what_it_needs_is_allowed),
		cmocka_unit_test(it_can_still_abort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
