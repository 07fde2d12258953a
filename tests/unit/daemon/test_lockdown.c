/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "daemon/lockdown.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/*
 * Each attempt runs in a child, once with the filter and once without: the second shows that the
 * filter refuses, not that the attempt is broken.
 */

#define CANNOT_SEAL 99

static int leave_open(struct error *err)
{
	(void)err;
	return 0;
}

/* Return: the attempt's result: 0, an errno, or 1000 + a signal. */
static int attempt_after(int (*fn)(void), int (*seal)(struct error *err))
{
	struct error err = {0};
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		if (seal(&err) < 0)
			_exit(CANNOT_SEAL);
		_exit(fn() < 0 ? errno : 0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int attempt(int (*fn)(void), bool sealed)
{
	return attempt_after(fn, sealed ? lockdown_seal : leave_open);
}

static int run_program(void)
{
	char *const argv[] = {(char[]){"true"}, NULL};

	return execv("/bin/true", argv);
}

static int make_namespace(void)
{
	return unshare(CLONE_FILES); /* of those that need no privilege */
}

static int mount_something(void)
{
	return mount(NULL, "/nonexistent", NULL, 0, NULL);
}

static int make_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid;
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int write_file(void)
{
	return open("/dev/null", O_WRONLY | O_CLOEXEC);
}

static int create_file(void)
{
	return open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
}

static int run_memory(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	                       MAP_FAILED
	               ? -1
	               : 0;
}

static int undo(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

static void calls_only_an_intruder_makes_end_the_process(void **state)
{
	int (*const deeds[])(void) = {run_program, make_namespace, mount_something};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		assert_int_equal(attempt(deeds[i], true), 1000 + SIGSYS);
		assert_true(attempt(deeds[i], false) < 1000);
	}
}

static void calls_the_daemon_does_not_need_fail(void **state)
{
	int (*const deeds[])(void) = {open_socket, write_file,   create_file,
	                              run_memory,  make_process, undo};
	/* The leak check of sanitizers needs some of them. */
	size_t count = SANITIZED ? 1 : ARRAY_SIZE(deeds);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(attempt(deeds[i], true), ENOSYS);
		assert_int_equal(attempt(deeds[i], false), 0);
	}
}

static int use_what_is_needed(void)
{
	char *memory = malloc(1 << 20);
	int ends[2];

	if (!memory || pipe2(ends, O_CLOEXEC) < 0 || write(ends[1], "x", 1) != 1)
		return -1;
	free(memory);
	return epoll_create1(EPOLL_CLOEXEC) < 0 || eventfd(0, EFD_CLOEXEC) < 0 ||
	                       open("/dev/null", O_RDONLY | O_CLOEXEC) < 0
	               ? -1
	               : 0;
}

static int accept_somebody(void)
{
	errno = 0;
	return accept4(-1, NULL, NULL, 0) < 0 && errno == ENOSYS ? -1 : 0;
}

static int send_something(void)
{
	errno = 0;
	return send(-1, "", 0, 0) < 0 && errno == ENOSYS ? -1 : 0;
}

/* The database thread has no sockets and opens nothing for writing. */
static void calls_the_store_does_not_need_fail(void **state)
{
	int (*const deeds[])(void) = {open_socket, accept_somebody, send_something, write_file,
	                              create_file, run_memory,      make_process,   undo};
	size_t count = SANITIZED ? 3 : ARRAY_SIZE(deeds);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(attempt_after(deeds[i], lockdown_seal_store), ENOSYS);
		assert_int_equal(attempt_after(deeds[i], leave_open), 0);
	}
	assert_int_equal(attempt_after(run_program, lockdown_seal_store), 1000 + SIGSYS);
}

static int write_page(void)
{
	return pwrite(-1, "", 1, 0) < 0 && errno == EBADF ? 0 : -1;
}

static int make_durable(void)
{
	return fdatasync(-1) < 0 && errno == EBADF ? 0 : -1;
}

/* And the loop's thread writes no page of it. */
static void calls_only_the_store_needs_are_its_alone(void **state)
{
	int (*const deeds[])(void) = {write_page, make_durable};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		assert_int_equal(attempt_after(deeds[i], lockdown_seal_store), 0);
		assert_int_equal(attempt_after(deeds[i], lockdown_seal), ENOSYS);
	}
}

static void calls_the_daemon_needs_work(void **state)
{
	(void)state;
	assert_int_equal(attempt(use_what_is_needed, true), 0);
}

/* The filter refuses prctl itself: read the kernel's own report. */
static int read_status(void)
{
	char text[4096];
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return -1;
	text[n] = '\0';
	errno = EPERM;
	return strstr(text, "NoNewPrivs:\t1") && strstr(text, "Seccomp:\t2") &&
	                       strstr(text, "CapPrm:\t0000000000000000") &&
	                       strstr(text, "CapEff:\t0000000000000000")
	               ? 0
	               : -1;
}

static void nothing_is_left_to_regain(void **state)
{
	(void)state;
	assert_int_equal(attempt(read_status, true), 0);
	assert_int_equal(attempt_after(read_status, lockdown_seal_store), 0);
	assert_int_equal(attempt(read_status, false), EPERM);
}

static int become_another(void)
{
	struct error err = {0};

	if (lockdown_drop_ids(12345, 23456, &err) < 0)
		return -1;
	errno = EPERM;
	return getuid() == 12345 && getgid() == 23456 && getgroups(0, NULL) == 0 && setuid(0) < 0 &&
	                       prctl(PR_CAPBSET_READ, 0, 0, 0, 0) == 0
	               ? 0
	               : -1;
}

static void root_becomes_another_for_good(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(attempt(become_another, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_only_an_intruder_makes_end_the_process),
		cmocka_unit_test(calls_the_daemon_does_not_need_fail),
		cmocka_unit_test(calls_the_store_does_not_need_fail),
		cmocka_unit_test(calls_only_the_store_needs_are_its_alone),
		cmocka_unit_test(calls_the_daemon_needs_work),
		cmocka_unit_test(nothing_is_left_to_regain),
		cmocka_unit_test(root_becomes_another_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
