/* SPDX-License-Identifier: Apache-2.0 */
#include "http/internal.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/size.h"
#include "io/loop.h"
#include <errno.h>

/*
 * Theory of operation. A request rejected by its header is answered before its body is read.
 * Closing a socket with unread input sends a reset, which makes most clients discard the
 * response: "connection reset" instead of the 413. So a duplicate of the socket stays open briefly,
 * and its input is discarded. Bounded in number (the oldest ends), time and bytes.
 */

#define LINGER_TIME_US 3000000
#define LINGER_BYTES   (64 * MIB)
#define LINGER_CHUNK   32768

struct linger_conn {
	struct list node;
	struct http_server *server;
	struct watch *watch;
	struct timer *timer;
	size_t bytes;
	int fd; /* owned */
};

static void linger_free(struct linger_conn *l)
{
	list_remove(&l->node);
	l->server->lingering_count--;
	watch_free(l->watch);
	timer_free(l->timer);
	fd_close(l->fd);
	free(l);
}

static void on_timeout(void *ctx)
{
	linger_free(ctx);
}

static void on_readable(void *ctx, int events)
{
	struct linger_conn *l = ctx;
	char sink[LINGER_CHUNK];
	ssize_t n;

	(void)events;
	n = recv(l->fd, sink, sizeof(sink), MSG_DONTWAIT);
	if (n > 0)
		l->bytes += (size_t)n;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || l->bytes > LINGER_BYTES)
		linger_free(l);
}

void linger_start(struct http_server *s, int fd)
{
	struct linger_conn *l = LIST_FIRST(&s->lingering, struct linger_conn, node);
	int copy;

	if (l && s->lingering_count >= s->refused_max)
		linger_free(l);
	copy = fd_dup(fd);
	if (copy < 0)
		return; /* no descriptor left: the client gets a reset */
	/* EOF tells the client that the response is complete. */
	(void)shutdown(copy, SHUT_WR);
	l = NEW(struct linger_conn);
	l->server = s;
	l->fd = copy;
	list_append(&s->lingering, &l->node);
	s->lingering_count++;
	l->watch = watch_new(s->config.loop, copy, on_readable, l);
	watch_set(l->watch, WATCH_READ);
	l->timer = timer_new(s->config.loop, on_timeout, l);
	timer_start(l->timer, LINGER_TIME_US);
}

void linger_end_all(struct http_server *s)
{
	struct linger_conn *l;

	LIST_FOREACH (l, &s->lingering, struct linger_conn, node)
		linger_free(l);
}
