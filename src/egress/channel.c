/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/channel.h"

#include "base/fd.h"
#include "tls/session.h"
#include <errno.h>
#include <sys/socket.h>

void channel_close(struct channel *c)
{
	tls_session_free(c->tls);
	c->tls = NULL;
	c->fd = fd_close(c->fd);
}

ssize_t channel_recv(struct channel *c, void *data, size_t len)
{
	ssize_t n;

	if (c->tls)
		return tls_session_recv(c->tls, data, len);
	n = recv(c->fd, data, len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	return n;
}

ssize_t channel_send(struct channel *c, const void *data, size_t len)
{
	ssize_t n;

	if (c->tls) {
		n = tls_session_send(c->tls, data, len);
		return n == -EAGAIN ? 0 : n;
	}
	n = send(c->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n;
}

int channel_end(struct channel *c)
{
	int r = c->tls ? tls_session_end(c->tls) : 0;

	if (r == -EAGAIN)
		return r;
	(void)shutdown(c->fd, SHUT_WR);
	return 0;
}

bool channel_has_more(const struct channel *c)
{
	return c->tls && tls_session_has_more(c->tls);
}

bool channel_was_cut(const struct channel *c)
{
	return c->tls && tls_session_was_cut(c->tls);
}
