/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/relay.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "io/watch.h"
#include "remote/remote.h"

#define PIPE_BYTES (64 * 1024)
/* Rounds before other boxes get a turn. */
#define ROUNDS 16

/* Filled when empty, emptied before it is filled again: the parts that pass through are large. */
struct pipe {
	char data[PIPE_BYTES];
	size_t off, len;
	bool has_ended; /* its source */
};

struct relay {
	int near;                  /* owned */
	struct remote_stream *far; /* owned */
	struct watch *near_watch, *far_watch;
	struct pipe up, down; /* to the agent, to the daemon */
	relay_end_fn *on_end;
	void *ctx;
};

static ssize_t negative(ssize_t n)
{
	return n < 0 ? -errno : n;
}

static ssize_t read_near(struct relay *r, char *data, size_t size)
{
	return negative(recv(r->near, data, size, MSG_DONTWAIT));
}

static ssize_t write_near(struct relay *r, const char *data, size_t len)
{
	return negative(send(r->near, data, len, MSG_DONTWAIT | MSG_NOSIGNAL));
}

static ssize_t read_far(struct relay *r, char *data, size_t size)
{
	return r->far->read(r->far, data, size);
}

static bool is_later(ssize_t n)
{
	return n == -EAGAIN || n == -EINTR;
}

/* An agent that does not listen any more may still have said something: its end is read. */
static ssize_t write_far(struct relay *r, const char *data, size_t len)
{
	ssize_t n = r->far->write(r->far, data, len);

	return n < 0 && !is_later(n) ? (ssize_t)len : n;
}

/* Return: bytes moved, or a negative errno. */
static ssize_t pump(struct relay *r, struct pipe *p,
                    ssize_t (*source)(struct relay *r, char *data, size_t size),
                    ssize_t (*target)(struct relay *r, const char *data, size_t len))
{
	ssize_t moved = 0, n;

	if (p->off == p->len && !p->has_ended) {
		n = source(r, p->data, sizeof(p->data));
		if (n < 0 && !is_later(n))
			return n;
		p->has_ended = n == 0;
		p->off = 0;
		p->len = n > 0 ? (size_t)n : 0;
		moved = n > 0 ? n : 0;
	}
	if (p->off == p->len)
		return moved;
	n = target(r, p->data + p->off, p->len - p->off);
	if (n < 0)
		return is_later(n) ? moved : n;
	p->off += (size_t)n;
	return moved + n;
}

static bool is_empty(const struct pipe *p)
{
	return p->off == p->len;
}

static void set_watches(struct relay *r)
{
	bool up = is_empty(&r->up), down = is_empty(&r->down);

	watch_set(r->near_watch,
	          (up && !r->up.has_ended ? WATCH_READ : 0) | (down ? 0 : WATCH_WRITE));
	watch_set(r->far_watch,
	          (down && !r->down.has_ended ? WATCH_READ : 0) | (up ? 0 : WATCH_WRITE));
}

/* The far end decides: what it sent before its end is passed on first. When the daemon leaves,
 * there is nobody to pass anything on to. */
static void on_ready(void *ctx, int events)
{
	struct relay *r = ctx;
	ssize_t up = 1, down = 1;

	(void)events;
	for (int i = 0; i < ROUNDS && up >= 0 && down >= 0 && up + down > 0; i++) {
		down = pump(r, &r->down, read_far, write_near);
		up = pump(r, &r->up, read_near, write_far);
	}
	if (down < 0 || up < 0)
		r->on_end(r->ctx, (int)-(down < 0 ? down : up));
	else if (r->up.has_ended || (r->down.has_ended && is_empty(&r->down)))
		r->on_end(r->ctx, 0);
	else
		set_watches(r);
}

struct relay *relay_new(struct loop *loop, int near, struct remote_stream *far,
                        relay_end_fn *on_end, void *ctx)
{
	struct relay *r = NEW(struct relay);

	r->near = near;
	r->far = far;
	r->on_end = on_end;
	r->ctx = ctx;
	r->near_watch = watch_new(loop, near, on_ready, r);
	r->far_watch = watch_new(loop, far->fd, on_ready, r);
	/* The stream may already have bytes of its own; writing is possible at once. */
	watch_set(r->near_watch, WATCH_READ);
	watch_set(r->far_watch, WATCH_READ | WATCH_WRITE);
	return r;
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	watch_free(r->near_watch);
	watch_free(r->far_watch);
	(void)fd_close(r->near);
	r->far->free(r->far);
	free(r);
}
