/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/own_daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/client/daemon.h"
#include "cli/client/program.h"
#include "cli/client/supervisor.h"
#include "client/endpoint.h"
#include "daemon/exit_status.h"

/*
 * Theory of operation
 *
 *   millibox ──socket── supervisor ──pidfd── milliboxd
 *
 * The supervisor is a fork of millibox in its own session, out of reach of Ctrl-C. When millibox
 * exits, even by SIGKILL, its socket closes; the supervisor then stops the daemon and removes the
 * directory. A parent-death signal is not enough: the kernel clears it when the daemon changes its
 * user id.
 */

/* For sanitizers and emulated processors; a daemon that cannot start exits much sooner. */
#define READY_TIMEOUT_US (60 * USEC_PER_SEC)
#define LOG_SHOWN_MAX    8192
#define SOCKET_NAME      "/sock"

struct own_daemon {
	char *dir;        /* owned */
	char *socket;     /* owned */
	int link;         /* to the supervisor */
	int log;          /* memfd: the daemon's stderr */
	pid_t supervisor; /* 0: not started */
	enum own_daemon_lack lack;
};

static char *make_directory(struct error *err)
{
	static const char name[] = "/millibox-XXXXXX";
	const char *base = getenv("TMPDIR");
	cleanup_free char *path = NULL;

	/* It must fit into sun_path. */
	if (!base || base[0] != '/' ||
	    strlen(base) + strlen(name) + sizeof(SOCKET_NAME) >
	            sizeof(((struct sockaddr_un *)NULL)->sun_path))
		base = "/tmp";
	path = xasprintf("%s%s", base, name);
	if (!mkdtemp(path)) {
		(void)error_set(err, ERR_UNAVAILABLE, errno, "create a directory in %s", base);
		return NULL;
	}
	return TAKE_PTR(path);
}

static int fork_supervisor(struct own_daemon *d, const char *program, const char *isolation,
                           struct error *err)
{
	struct supervisor_job job = {
		.program = program, .dir = d->dir, .socket = d->socket, .isolation = isolation};
	int ends[2] = {-1, -1};
	int r = fd_socketpair(SOCK_STREAM, ends);

	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "create a socket pair");
	d->link = ends[0];
	job.link = ends[1];
	job.log = d->log;
	d->supervisor = fork();
	if (d->supervisor == 0)
		supervisor_main(&job);
	(void)fd_close(ends[1]);
	if (d->supervisor > 0)
		return 0;
	d->supervisor = 0;
	return error_set(err, ERR_UNAVAILABLE, errno, "fork");
}

static int report_exit(struct own_daemon *d, struct error *err)
{
	unsigned char code = 0;

	if (recv(d->link, &code, 1, 0) == 1 && code == DAEMON_NO_ENGINE)
		d->lack = OWN_DAEMON_LACKS_ALL;
	else if (code == DAEMON_NOT_STRICT)
		d->lack = OWN_DAEMON_LACKS_STRICT;
	own_daemon_show_log(d);
	return error_set(err, ERR_UNAVAILABLE, 0, "milliboxd did not start");
}

/* @watch: inotify descriptor for the socket's directory. */
static int wait_until_ready(struct own_daemon *d, int watch, int interrupt_fd, struct error *err)
{
	uint64_t deadline = clock_us() + READY_TIMEOUT_US;
	struct pollfd ready[] = {
		{.fd = watch, .events = POLLIN},
		{.fd = d->link, .events = POLLIN},
		{.fd = interrupt_fd, .events = POLLIN},
	};

	for (;;) {
		char events[1024];
		uint64_t now = clock_us();
		int timeout_ms = now < deadline ? (int)((deadline - now) / USEC_PER_MS) + 1 : 0;
		int r = endpoint_connect(d->socket);

		if (r == 0)
			return 0;
		/* listen() after bind() causes no inotify event: poll. */
		if (r == -ECONNREFUSED && timeout_ms > 1)
			timeout_ms = 1;
		if (now >= deadline)
			return error_set(err, ERR_UNAVAILABLE, -r,
			                 "milliboxd does not accept connections");
		if (poll(ready, ARRAY_SIZE(ready), timeout_ms) < 0 && errno != EINTR)
			return error_set(err, ERR_UNAVAILABLE, errno, "poll");
		if (ready[2].revents)
			return error_set(err, ERR_UNAVAILABLE, ECANCELED, "interrupted");
		if (ready[1].revents)
			return report_exit(d, err);
		if (ready[0].revents && read(watch, events, sizeof(events)) < 0 && errno != EAGAIN)
			return error_set(err, ERR_UNAVAILABLE, errno, "read from inotify");
	}
}

static int start_daemon(struct own_daemon *d, const char *isolation, int interrupt_fd,
                        struct error *err)
{
	cleanup_free char *program = program_find("milliboxd", err);
	cleanup_close int watch = fd_inotify();

	if (!program)
		return -1;
	if (watch < 0)
		return error_set(err, ERR_UNAVAILABLE, -watch, "create an inotify descriptor");
	d->dir = make_directory(err);
	if (!d->dir)
		return -1;
	d->socket = xasprintf("%s" SOCKET_NAME, d->dir);
	d->log = fd_memfd("milliboxd.log", 0);
	if (d->log < 0)
		return error_set(err, ERR_UNAVAILABLE, -d->log, "create a memory file");
	if (inotify_add_watch(watch, d->dir, IN_CREATE | IN_MOVED_TO | IN_ATTRIB) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "watch %s", d->dir);
	if (fork_supervisor(d, program, isolation, err) < 0)
		return -1;
	return wait_until_ready(d, watch, interrupt_fd, err);
}

static void stop_daemon(struct own_daemon *d)
{
	d->link = fd_close(d->link);
	if (d->supervisor > 0) {
		while (waitpid(d->supervisor, NULL, 0) < 0 && errno == EINTR)
			;
	} else if (d->dir) {
		/* Without a supervisor it is still empty. */
		(void)rmdir(d->dir);
	}
	(void)fd_close(d->log);
	free(d->dir);
	free(d->socket);
}

void own_daemon_end(struct own_daemon *d)
{
	if (!d)
		return;
	stop_daemon(d);
	free(d);
}

struct own_daemon *own_daemon_start(const char *isolation, int interrupt_fd,
                                    enum own_daemon_lack *ret_lack, struct error *err)
{
	struct own_daemon *d = NEW(struct own_daemon);

	d->link = -1;
	d->log = -1;
	if (start_daemon(d, isolation, interrupt_fd, err) == 0)
		return d;
	*ret_lack = d->lack;
	stop_daemon(d);
	free(d);
	return NULL;
}

void own_daemon_endp(struct own_daemon **d)
{
	own_daemon_end(*d);
}

const char *own_daemon_socket(const struct own_daemon *d)
{
	return d->socket;
}

void own_daemon_show_log(const struct own_daemon *d)
{
	char text[LOG_SHOWN_MAX];
	ssize_t n = pread(d->log, text, sizeof(text), 0);

	if (n > 0)
		(void)fwrite(text, 1, (size_t)n, stderr);
}
