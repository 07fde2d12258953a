/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/interrupt.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"

int interrupt_open(struct error *err)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	int fd;

	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return error_set(err, ERR_SYSTEM, errno, "ignore SIGPIPE");
	fd = fd_signalfd(signals, ARRAY_SIZE(signals));
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, -fd, "create a signal descriptor");
	return fd;
}

int interrupt_taken(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	struct signalfd_siginfo info;

	if (poll(&ready, 1, 0) != 1 || read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	return (int)info.ssi_signo;
}

static int wait_or_cancel(int fd, int other, short events)
{
	struct pollfd ready[] = {
		{.fd = fd, .events = POLLIN},
		{.fd = other, .events = events},
	};

	while (poll(ready, ARRAY_SIZE(ready), -1) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return ready[0].revents ? -ECANCELED : 0;
}

int interrupt_write(int fd, int out, const char *data, size_t len)
{
	while (len > 0) {
		/* A pipe that polls writable accepts PIPE_BUF bytes at once. */
		size_t piece = len < PIPE_BUF ? len : PIPE_BUF;
		int r = wait_or_cancel(fd, out, POLLOUT);
		ssize_t n;

		if (r < 0)
			return r;
		n = write(out, data, piece);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

ssize_t interrupt_read(int fd, int in, char *data, size_t size)
{
	for (;;) {
		int r = wait_or_cancel(fd, in, POLLIN);
		ssize_t n;

		if (r < 0)
			return r;
		n = read(in, data, size);
		if (n >= 0)
			return n;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
}
