/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/report.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

#define BACKLOG 1

static int listen_at(int fd, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int r = str_format(addr.sun_path, sizeof(addr.sun_path), "%s/%s", path, REPORT_NAME);

	if (r < 0)
		return r;
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	/* Connecting needs write permission; the directory protects the name. */
	if (chmod(addr.sun_path, 0666) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return 0;
}

int report_open(struct report *rep, const char *path, int dir, uint32_t max)
{
	cleanup_close int fd = fd_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int r = 0;

	if (fd < 0)
		return fd;
	/* Left over or planted. */
	(void)unlinkat(dir, REPORT_NAME, 0);
	r = listen_at(fd, path);
	if (r < 0)
		return r;
	*rep = (struct report){.listener = TAKE_FD(fd), .conn = -1, .dir = dir, .left = max};
	return 0;
}

void report_close(struct report *rep)
{
	if (rep->listener >= 0)
		(void)unlinkat(rep->dir, REPORT_NAME, 0);
	rep->listener = fd_close(rep->listener);
	rep->conn = fd_close(rep->conn);
	rep->left = 0;
}

int report_fd(const struct report *rep, const struct channel *ch)
{
	if (rep->conn >= 0)
		return channel_is_full(ch) ? -1 : rep->conn;
	return rep->left > 0 ? rep->listener : -1;
}

/* A process that has exited has no session: its pid is compared, too. */
static bool may_report(const struct report *rep, int conn)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	if (rep->session == 0)
		return true;
	if (getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid <= 0)
		return false;
	return peer.pid == rep->session || getsid(peer.pid) == rep->session;
}

/* Return: a connection, or -1. Those of strangers are closed, as many as can wait at a time. */
static int accept_report(const struct report *rep)
{
	for (int i = 0; i < BACKLOG + 2 && rep->listener >= 0; i++) {
		cleanup_close int fd = fd_accept(rep->listener);

		if (fd < 0)
			return -1;
		if (may_report(rep, fd))
			return TAKE_FD(fd);
	}
	return -1;
}

static void finish_report(struct report *rep)
{
	report_close(rep);
}

int report_pump(struct report *rep, struct channel *ch, uint32_t id)
{
	struct msg_report msg = {0};
	ssize_t n = 0;
	int r = 0;

	if (rep->conn < 0) {
		int fd = accept_report(rep);

		if (fd < 0)
			return 0;
		rep->conn = fd;
	}
	/* A plain read makes the kernel drop descriptors. */
	n = read(rep->conn, ch->scratch, sizeof(ch->scratch));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		finish_report(rep);
		return 0;
	}
	msg.data = (struct wire_bytes){ch->scratch, n > rep->left ? rep->left : (uint32_t)n};
	r = msg_report_encode(&ch->out, id, &msg);
	rep->left -= msg.data.len;
	if (rep->left == 0)
		finish_report(rep);
	return r < 0 ? r : (int)msg.data.len;
}
