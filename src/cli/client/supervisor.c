/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/client/tree.h"

/* What is sent to a daemon that has to end, and how long it is waited for: the first SIGTERM lets
 * it end its boxes, the second ends them at once, the third is for a daemon that is broken. */
struct knock {
	int signal;
	int wait_ms;
};

static const struct knock knocks[] = {
	{SIGTERM, 5000},
	{SIGTERM, 2000},
	{SIGKILL, -1},
};

/* Settings reach the daemon by MILLIBOX_*; the rest of it needs no more than this. */
static const char *const kept_variables[] = {"HOME=", "XDG_RUNTIME_DIR=", "MILLIBOX_"};

/* Nobody will come after a daemon that serves one command, and its directory goes with it. */
static const char *const own_variables[] = {
	"MILLIBOX_SESSIONS_SURVIVE=0",
	"MILLIBOX_STORE_VOLATILE=true",
	"MILLIBOX_AUDIT_ENABLED=false",
	"MILLIBOX_POOLS_ENABLED=false",
};

static bool is_own(const char *variable)
{
	for (size_t i = 0; i < ARRAY_SIZE(own_variables); i++) {
		size_t name = strcspn(own_variables[i], "=") + 1;

		if (strncmp(variable, own_variables[i], name) == 0)
			return true;
	}
	return false;
}

static bool is_kept(const char *variable)
{
	/* Of the command's; no daemon has a use for it. */
	if (str_has_prefix(variable, "MILLIBOX_API_KEY"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kept_variables); i++) {
		if (str_has_prefix(variable, kept_variables[i]))
			return true;
	}
	return false;
}

static char **make_environment(void)
{
	size_t count = str_list_count(environ);
	char **list = xcalloc(count + ARRAY_SIZE(own_variables) + 2, sizeof(*list));
	size_t n = 0;

	list[n++] = xstrdup("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	for (size_t i = 0; i < count; i++) {
		if (is_kept(environ[i]) && !is_own(environ[i]))
			list[n++] = environ[i];
	}
	for (size_t i = 0; i < ARRAY_SIZE(own_variables); i++)
		list[n++] = xstrdup(own_variables[i]);
	return list;
}

static attr_noreturn void exec_daemon(const struct supervisor_job *job, pid_t supervisor)
{
	cleanup_free char *state = xasprintf("%s/state", job->dir);
	char **environment = make_environment();
	const char *const argv[] = {job->program, "--listen",    "",    "--socket",
	                            job->socket,  "--state-dir", state, "--log-level",
	                            "warn",       NULL};
	sigset_t none;

	(void)sigemptyset(&none);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* For the case that the supervisor itself is killed; it may have been already. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != supervisor)
		_exit(1);
	if (dup2(job->log, STDERR_FILENO) >= 0)
		(void)execve(job->program, (char *const *)argv, environment);
	(void)dprintf(STDERR_FILENO, "%s: %s\n", job->program, strerror(errno));
	_exit(1);
}

/* Everything above stderr but two: whatever the command was started with is not ours to hold. */
static void close_others(int a, int b)
{
	unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);

	if (low > STDERR_FILENO + 1)
		(void)close_range(STDERR_FILENO + 1, low - 1, 0);
	if (high > low + 1)
		(void)close_range(low + 1, high - 1, 0);
	(void)close_range(high + 1, ~0U, 0);
}

/* The command's streams belong to whoever reads them: holding them open would keep pipes alive. */
static int detach(const struct supervisor_job *job)
{
	int null = fd_open("/dev/null", O_RDWR, 0); /* closed with the others */
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

/* Until the command has gone or the daemon has ended. */
static void wait_for_either(int link, int pidfd)
{
	struct pollfd ready[] = {
		{.fd = link, .events = POLLIN},
		{.fd = pidfd, .events = POLLIN},
	};

	while (poll(ready, ARRAY_SIZE(ready), -1) < 0 && errno == EINTR)
		;
}

/* Tells the command, if it is still there, how the daemon ended by itself. */
static void tell_end(int link, int status)
{
	unsigned char code = WIFEXITED(status) ? (unsigned char)WEXITSTATUS(status) : 0;

	(void)send(link, &code, 1, MSG_NOSIGNAL);
}

/* Return: its wait status. */
static int end_daemon(pid_t daemon, int pidfd)
{
	int status = 0;
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};

	for (size_t i = 0; i < ARRAY_SIZE(knocks); i++) {
		if (poll(&ended, 1, 0) == 1)
			break;
		/* It is our child and not yet waited for: the number cannot be another's. */
		(void)kill(daemon, knocks[i].signal);
		if (poll(&ended, 1, knocks[i].wait_ms) == 1)
			break;
	}
	while (waitpid(daemon, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

void supervisor_main(const struct supervisor_job *job)
{
	pid_t self, daemon;
	int pidfd;

	if (detach(job) < 0)
		_exit(1);
	self = getpid();
	daemon = fork();
	if (daemon == 0)
		exec_daemon(job, self);
	pidfd = daemon > 0 ? fd_pidfd_open(daemon) : -1;
	if (pidfd >= 0)
		wait_for_either(job->link, pidfd);
	if (daemon > 0)
		tell_end(job->link, end_daemon(daemon, pidfd));
	_exit(tree_remove(job->dir) < 0);
}
