/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/background.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/client/own_daemon.h"
#include "daemon/exit_status.h"

/*
 * Theory of operation. The daemon reports to us as to a service manager (NOTIFY_SOCKET, sd_notify):
 * READY=1 when it serves. The name of the socket is abstract and the kernel's choice, so nothing is
 * left of it; a datagram of somebody else can only end the wait early.
 */

/* For sanitizers and emulated processors; a daemon that cannot start exits much sooner. */
#define READY_TIMEOUT_US (60 * USEC_PER_SEC)
#define STOP_TIMEOUT_MS  10000
#define LOG_SHOWN_MAX    8192
#define READY            "READY=1"

struct launch {
	const struct background_job *job;
	int log;
	off_t log_start; /* what is before it is of earlier daemons */
	int notify;
	char *notify_name; /* owned: "NOTIFY_SOCKET=@..." */
	pid_t pid;         /* 0: none to end */
	int pidfd;
};

char **background_environment(const char *more)
{
	char **list = xcalloc(str_list_count(environ) + 2, sizeof(*list));
	size_t n = 0, len = more ? strcspn(more, "=") + 1 : 0;

	for (char **e = environ; *e; e++)
		if (!str_has_prefix(*e, "MILLIBOX_API_KEY") &&
		    (!more || strncmp(*e, more, len) != 0))
			list[n++] = *e;
	list[n] = (char *)(uintptr_t)more;
	return list;
}

/* Root appends to it: neither through a link nor to another name of a file of somebody else. */
static int open_log(struct launch *l, struct error *err)
{
	const char *path = l->job->log;

	l->log = fd_open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (l->log < 0)
		return error_set(err, ERR_UNAVAILABLE, -l->log, "open the log %s", path);
	if (!file_is_sole(l->log))
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "the log %s is not a regular file with one name", path);
	l->log_start = lseek(l->log, 0, SEEK_END);
	return l->log_start < 0 ? error_set(err, ERR_UNAVAILABLE, errno, "seek in %s", path) : 0;
}

static int open_notify(struct launch *l, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(address.sun_family);
	int name_len;

	l->notify = fd_socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (l->notify < 0)
		return error_set(err, ERR_UNAVAILABLE, -l->notify, "create a socket");
	if (bind(l->notify, (const struct sockaddr *)&address, len) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "name a socket");
	len = sizeof(address);
	if (getsockname(l->notify, (struct sockaddr *)&address, &len) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "read the name of a socket");
	/* The name begins with NUL. */
	name_len = (int)(len - offsetof(struct sockaddr_un, sun_path)) - 1;
	l->notify_name = xasprintf("NOTIFY_SOCKET=@%.*s", name_len, address.sun_path + 1);
	return 0;
}

static attr_noreturn void exec_daemon(const struct launch *l)
{
	cleanup_free char **environment = background_environment(l->notify_name);
	const char *program = l->job->argv[0];
	int null = fd_open("/dev/null", O_RDWR, 0);
	sigset_t none;

	(void)setsid();
	(void)sigemptyset(&none);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0 && chdir("/") == 0 && dup2(null, STDIN_FILENO) >= 0 &&
	    dup2(l->log, STDOUT_FILENO) >= 0 && dup2(l->log, STDERR_FILENO) >= 0 &&
	    close_range(STDERR_FILENO + 1, ~0U, 0) == 0)
		(void)execve(program, (char *const *)l->job->argv, environment);
	(void)dprintf(STDERR_FILENO, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

static int start_process(struct launch *l, struct error *err)
{
	l->pid = fork();
	if (l->pid == 0)
		exec_daemon(l);
	if (l->pid < 0) {
		l->pid = 0;
		return error_set(err, ERR_UNAVAILABLE, errno, "fork");
	}
	l->pidfd = fd_pidfd_open(l->pid);
	return l->pidfd < 0 ? error_set(err, ERR_UNAVAILABLE, -l->pidfd, "open a pidfd") : 0;
}

static bool is_ready(const struct launch *l)
{
	char text[256];
	ssize_t n = fd_recv_plain(l->notify, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return str_has_prefix(text, READY);
}

static void show_log(const struct launch *l)
{
	char text[LOG_SHOWN_MAX];
	struct stat st;
	off_t start = l->log_start;
	ssize_t n;

	if (fstat(l->log, &st) == 0 && st.st_size - start > (off_t)sizeof(text))
		start = st.st_size - (off_t)sizeof(text);
	n = pread(l->log, text, sizeof(text), start);
	if (n > 0)
		(void)fwrite(text, 1, (size_t)n, stderr);
}

static int wait_for_end(struct launch *l)
{
	int status = 0;

	while (waitpid(l->pid, &status, 0) < 0 && errno == EINTR)
		;
	l->pid = 0;
	return status;
}

static int report_exit(struct launch *l, struct error *err)
{
	int status = wait_for_end(l), code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

	show_log(l);
	if (code == DAEMON_NOT_STRICT)
		return error_set(err, ERR_UNAVAILABLE, 0, DAEMON_NOT_STRICT_REMEDY);
	return error_set(err, ERR_UNAVAILABLE, 0, "milliboxd did not start%s",
	                 code == DAEMON_NO_ENGINE
	                         ? "; run 'millibox doctor' to see what the host lacks"
	                         : "");
}

static int wait_until_ready(struct launch *l, struct error *err)
{
	uint64_t deadline = clock_us() + READY_TIMEOUT_US;
	struct pollfd ready[] = {
		{.fd = l->notify, .events = POLLIN},
		{.fd = l->pidfd, .events = POLLIN},
		{.fd = l->job->interrupt_fd, .events = POLLIN},
	};

	for (;;) {
		uint64_t now = clock_us();
		int timeout_ms = now < deadline ? (int)((deadline - now) / USEC_PER_MS) + 1 : 0;

		if (now >= deadline)
			return error_set(err, ERR_UNAVAILABLE, 0,
			                 "milliboxd is not ready after %llu seconds; its log is %s",
			                 READY_TIMEOUT_US / USEC_PER_SEC, l->job->log);
		if (poll(ready, ARRAY_SIZE(ready), timeout_ms) < 0 && errno != EINTR)
			return error_set(err, ERR_UNAVAILABLE, errno, "poll");
		if (ready[2].revents)
			return error_set(err, ERR_UNAVAILABLE, ECANCELED, "interrupted");
		if (ready[1].revents)
			return report_exit(l, err);
		if (ready[0].revents && is_ready(l))
			return 0;
	}
}

/* One that does not start may not stop either. */
static void end_process(struct launch *l)
{
	struct pollfd ended = {.fd = l->pidfd, .events = POLLIN};

	(void)kill(l->pid, SIGTERM); /* not reaped: the number is its own */
	if (poll(&ended, 1, STOP_TIMEOUT_MS) != 1)
		(void)kill(l->pid, SIGKILL);
	(void)wait_for_end(l);
}

static void launch_done(struct launch *l)
{
	if (l->pid > 0)
		end_process(l);
	(void)fd_close(l->log);
	(void)fd_close(l->notify);
	(void)fd_close(l->pidfd);
	free(l->notify_name);
}

int background_start(const struct background_job *job, struct error *err)
{
	struct launch l = {.job = job, .log = -1, .notify = -1, .pidfd = -1};
	int r = open_log(&l, err);

	if (r == 0)
		r = open_notify(&l, err);
	if (r == 0)
		r = start_process(&l, err);
	if (r == 0)
		r = wait_until_ready(&l, err);
	if (r == 0)
		l.pid = 0; /* it stays */
	launch_done(&l);
	return r;
}
