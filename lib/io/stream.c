/* SPDX-License-Identifier: Apache-2.0 */
#include "io/stream.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "io/loop.h"
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>

#define STREAM_READ_BYTES 16384
/* Reads before other streams get a turn. */
#define STREAM_READ_ROUNDS   8
#define STREAM_COMPACT_BYTES (1024 * 1024)

struct stream {
	struct loop *loop;
	struct stream_events events;
	struct watch *watch; /* owned; NULL until opened and after EOF */
	int fd;              /* owned */
	struct buf in;
	struct buf out;
	size_t sent;   /* bytes of @out already sent */
	bool mute;     /* peer does not read: drop writes */
	bool closed;   /* no event may follow */
	bool in_event; /* on_data is being called */
};

static void update_events(struct stream *s)
{
	if (s->watch)
		watch_set(s->watch, WATCH_READ | (stream_pending(s) ? WATCH_WRITE : 0));
}

static void drop_queue(struct stream *s)
{
	buf_done(&s->out);
	buf_init(&s->out, s->out.max);
	s->sent = 0;
}

static void mark_sent(struct stream *s, size_t len)
{
	s->sent += len;
	if (s->sent == s->out.len) {
		buf_reset(&s->out);
		s->sent = 0;
	} else if (s->sent >= STREAM_COMPACT_BYTES && s->sent >= s->out.len / 2) {
		buf_consume(&s->out, s->sent);
		s->sent = 0;
	}
}

static void write_some(struct stream *s)
{
	while (stream_pending(s)) {
		ssize_t n = send(s->fd, s->out.data + s->sent, stream_pending(s),
		                 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n < 0) {
			/* Write side failed; read to EOF. */
			s->mute = true;
			drop_queue(s);
			return;
		}
		mark_sent(s, (size_t)n);
	}
}

static void end_stream(struct stream *s, int sys)
{
	stream_close(s);
	s->events.on_end(s->events.ctx, sys);
}

/* Return: false: closed meanwhile. */
static bool deliver_input(struct stream *s)
{
	size_t used;

	s->in_event = true;
	used = s->events.on_data(s->events.ctx, s->in.data, s->in.len);
	s->in_event = false;
	if (s->closed)
		return false;
	assert(used <= s->in.len);
	buf_consume(&s->in, used);
	return true;
}

/* Return: whether to read again at once. */
static bool read_some(struct stream *s)
{
	size_t left = s->in.max - s->in.len;
	size_t room = left < STREAM_READ_BYTES ? left : STREAM_READ_BYTES;
	ssize_t n;

	if (room == 0 || buf_reserve(&s->in, room) < 0) {
		end_stream(s, ENOBUFS);
		return false;
	}
	do
		n = recv(s->fd, s->in.data + s->in.len, room, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return false;
	if (n <= 0) {
		end_stream(s, n < 0 ? errno : 0);
		return false;
	}
	s->in.len += (size_t)n;
	return deliver_input(s) && (size_t)n == room;
}

static void on_ready(void *ctx, int events)
{
	struct stream *s = ctx;

	if (events & WATCH_WRITE)
		write_some(s);
	update_events(s);
	if (events & WATCH_READ)
		for (int i = 0; i < STREAM_READ_ROUNDS && read_some(s); i++)
			;
}

struct stream *stream_new(struct loop *loop, const struct stream_limits *limits,
                          const struct stream_events *events)
{
	struct stream *s = NEW(struct stream);

	s->loop = loop;
	s->events = *events;
	s->fd = -1;
	buf_init(&s->in, limits->read_max);
	buf_init(&s->out, limits->write_max);
	return s;
}

void stream_open(struct stream *s, int fd)
{
	assert(s->fd < 0 && !s->closed);
	s->fd = fd;
	s->watch = watch_new(s->loop, fd, on_ready, s);
	write_some(s);
	update_events(s);
}

void stream_close(struct stream *s)
{
	s->closed = true;
	s->mute = true;
	watch_free(TAKE_PTR(s->watch));
	s->fd = fd_close(s->fd);
	drop_queue(s);
}

static void free_now(void *arg)
{
	struct stream *s = arg;

	buf_done(&s->in);
	buf_done(&s->out);
	free(s);
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	stream_close(s);
	/* on_data's bytes are in our buffer. */
	loop_defer(s->loop, free_now, s);
}

int stream_write(struct stream *s, const void *data, size_t len)
{
	int r;

	if (s->mute)
		return -EPIPE;
	r = buf_add(&s->out, data, len);
	if (r < 0)
		return r;
	stream_flush(s);
	return s->mute ? -EPIPE : 0;
}

struct buf *stream_queue(struct stream *s)
{
	return &s->out;
}

void stream_flush(struct stream *s)
{
	if (s->fd >= 0) {
		write_some(s);
		update_events(s);
	}
	if (s->mute)
		drop_queue(s);
}

size_t stream_pending(const struct stream *s)
{
	return s->out.len - s->sent;
}

void stream_drain(struct stream *s)
{
	assert(!s->in_event);
	while (s->fd >= 0 && read_some(s))
		;
}
