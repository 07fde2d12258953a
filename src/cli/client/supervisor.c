/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "base/systemd.h"
#include "cli/client/tree.h"

/*
 * Theory of operation. An ordinary user has no control groups of its own. Where the user's systemd
 * delegates them, the daemon starts in a scope: systemd-run makes one, enters it and becomes the
 * daemon, so that there is one process to wait for and to stop. If it cannot, it exits before that,
 * and the daemon starts without.
 */

#define COMM_LEN 32

/* The first SIGTERM drains boxes, the second kills them; SIGKILL is for a hung daemon. */
static const struct {
	int signal;
	int wait_ms;
} stop_steps[] = {
	{SIGTERM, 5000},
	{SIGTERM, 2000},
	{SIGKILL, -1},
};

/* MILLIBOX_* are the daemon's settings. */
static const char *const kept_variables[] = {"HOME=", "XDG_RUNTIME_DIR=", "MILLIBOX_"};

/* Only their owner is a client of it: unless the environment names a policy. */
#define OWNER_POLICY "MILLIBOX_POLICY_DEFAULT=owner"

/* No later daemon reads this one's state. */
static const char *const set_variables[] = {
	"MILLIBOX_SESSIONS_SURVIVE=0",
	"MILLIBOX_STORE_VOLATILE=true",
	"MILLIBOX_AUDIT_ENABLED=false",
	"MILLIBOX_POOLS_ENABLED=false",
};

static bool is_kept(const char *variable)
{
	/* The daemon must not see the client's key. */
	if (str_has_prefix(variable, "MILLIBOX_API_KEY"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(set_variables); i++) {
		size_t name = strcspn(set_variables[i], "=") + 1;

		if (strncmp(variable, set_variables[i], name) == 0)
			return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(kept_variables); i++) {
		if (str_has_prefix(variable, kept_variables[i]))
			return true;
	}
	return false;
}

/* @runtime_dir: where the user's systemd is; NULL: it is not needed. */
static char **make_environment(char *runtime_dir)
{
	size_t count = str_list_count(environ);
	char **list = xcalloc(count + ARRAY_SIZE(set_variables) + 4, sizeof(*list));
	size_t n = 0;

	list[n++] = xstrdup("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	for (size_t i = 0; i < count; i++) {
		if (is_kept(environ[i]))
			list[n++] = environ[i];
	}
	if (runtime_dir && !getenv("XDG_RUNTIME_DIR"))
		list[n++] = runtime_dir;
	for (size_t i = 0; i < ARRAY_SIZE(set_variables); i++)
		list[n++] = xstrdup(set_variables[i]);
	if (!getenv("MILLIBOX_POLICY_DEFAULT"))
		list[n++] = xstrdup(OWNER_POLICY);
	return list;
}

static attr_noreturn void exec_daemon(const struct supervisor_job *job, bool in_scope,
                                      pid_t supervisor)
{
	cleanup_free char *state = xasprintf("%s/state", job->dir);
	char **environment = make_environment(in_scope ? systemd_runtime_dir() : NULL);
	const char *const words[] = {SYSTEMD_SCOPE_WORDS,
	                             job->program,
	                             "--listen",
	                             "",
	                             "--socket",
	                             job->socket,
	                             "--state-dir",
	                             state,
	                             "--log-level",
	                             "warn",
	                             job->isolation ? "--isolation" : NULL,
	                             job->isolation,
	                             NULL};
	const char *const *argv = words + (in_scope ? 0 : SYSTEMD_SCOPE_COUNT);
	sigset_t none;

	(void)sigemptyset(&none);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* The supervisor may be dead already. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != supervisor)
		_exit(1);
	if (dup2(job->log, STDERR_FILENO) >= 0)
		(void)execve(argv[0], (char *const *)argv, environment);
	(void)dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
	_exit(1);
}

/* It has ended before it became the daemon: a dead process keeps the name of its last program. */
static bool is_still_systemd_run(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/comm", pid);
	char name[COMM_LEN];

	return file_read_text_at(AT_FDCWD, path, name, sizeof(name)) >= 0 &&
	       str_equal(name, strrchr(SYSTEMD_RUN, '/') + 1);
}

/* All above stderr except two. */
static void close_others(int a, int b)
{
	unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);

	if (low > STDERR_FILENO + 1)
		(void)close_range(STDERR_FILENO + 1, low - 1, 0);
	if (high > low + 1)
		(void)close_range(low + 1, high - 1, 0);
	(void)close_range(high + 1, ~0U, 0);
}

/* The command's streams, held open, would keep pipes alive after it exits. */
static int detach_process(const struct supervisor_job *job)
{
	int null = fd_open("/dev/null", O_RDWR, 0); /* close_others closes it */
	sigset_t all;

	(void)setsid();
	(void)sigfillset(&all);
	if (null < 0 || chdir("/") < 0 || sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return -1;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (dup2(null, fd) < 0)
			return -1;
	}
	close_others(job->link, job->log);
	return 0;
}

/* Return: the wait status. */
static int stop_daemon(pid_t daemon, int pidfd)
{
	int status = 0;
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};

	for (size_t i = 0; i < ARRAY_SIZE(stop_steps); i++) {
		if (poll(&ended, 1, 0) == 1)
			break;
		(void)fd_pidfd_kill(pidfd, stop_steps[i].signal);
		if (poll(&ended, 1, stop_steps[i].wait_ms) == 1)
			break;
	}
	while (waitpid(daemon, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Until the command or the daemon has exited, and the daemon is stopped. *ret_again: systemd-run
 * could not make a scope. Return: the daemon's wait status; -1: it was not started. */
static int run_daemon(const struct supervisor_job *job, bool in_scope, bool *ret_again)
{
	struct pollfd ready[] = {{.fd = job->link, .events = POLLIN}, {.events = POLLIN}};
	pid_t self = getpid(), daemon = fork();
	cleanup_close int pidfd = -1;

	if (daemon == 0)
		exec_daemon(job, in_scope, self);
	pidfd = daemon > 0 ? fd_pidfd_open(daemon) : -1;
	ready[1].fd = pidfd;
	while (pidfd >= 0 && poll(ready, ARRAY_SIZE(ready), -1) < 0 && errno == EINTR)
		;
	*ret_again = in_scope && ready[1].revents && is_still_systemd_run(daemon);
	return daemon > 0 ? stop_daemon(daemon, pidfd) : -1;
}

void supervisor_main(const struct supervisor_job *job)
{
	bool in_scope = geteuid() != 0 && systemd_delegation() == SYSTEMD_DELEGATES;
	unsigned char code;
	bool again = false;
	int status;

	if (detach_process(job) < 0)
		_exit(1);
	status = run_daemon(job, in_scope, &again);
	if (again) {
		/* Why there is no scope is of no use where the daemon starts without. */
		(void)!ftruncate(job->log, 0);
		(void)lseek(job->log, 0, SEEK_SET);
		status = run_daemon(job, false, &again);
	}
	if (status >= 0) {
		code = WIFEXITED(status) ? (unsigned char)WEXITSTATUS(status) : 0;
		/* For the command, if it still runs. */
		(void)send(job->link, &code, 1, MSG_NOSIGNAL);
	}
	_exit(tree_remove(job->dir) < 0);
}
