/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cancel_io.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

static int wait_or_cancel(int cancel_fd, int other, short events)
{
	struct pollfd ready[] = {
		{.fd = cancel_fd, .events = POLLIN},
		{.fd = other, .events = events},
	};

	while (poll(ready, ARRAY_SIZE(ready), -1) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return ready[0].revents ? -ECANCELED : 0;
}

/* How much @out takes without blocking once it is writable: a file all, a pipe PIPE_BUF bytes. */
static size_t piece_max(int out, size_t len)
{
	struct stat st;

	return fstat(out, &st) == 0 && S_ISREG(st.st_mode) ? len : PIPE_BUF;
}

int cancel_write(int cancel_fd, int out, const char *data, size_t len)
{
	size_t most = piece_max(out, len);

	while (len > 0) {
		size_t piece = len < most ? len : most;
		int r = wait_or_cancel(cancel_fd, out, POLLOUT);
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

ssize_t cancel_read(int cancel_fd, int in, char *data, size_t size)
{
	for (;;) {
		int r = wait_or_cancel(cancel_fd, in, POLLIN);
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
