/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "io/timer.h"
#include "io/watch.h"
#include "remote/demux.h"
#include "remote/docker.h"

/*
 * Theory of operation. /attach turns its connection into a stream: what is written there is the
 * agent's input, what comes back are frames (demux.h). libcurl can't do that beside other transfers
 * on the loop, so the head of the request is written here, and of the answer only the status and
 * the end of the head are read.
 */

#define HEAD_MAX   8192
#define RAW_BYTES  (32 * 1024)
#define TIMEOUT_US (10 * USEC_PER_SEC)
/* What an agent writes there is a bug of ours or a sanitizer's report. */
#define STDERR_LINES 8

struct docker_stream {
	struct remote_stream base;
	struct demux demux;
	unsigned lines; /* of stderr, logged */
	bool has_ended;
	size_t off, len;
	char raw[RAW_BYTES];
};

static void log_stderr(struct docker_stream *s, const char *data, size_t len)
{
	if (s->lines++ < STDERR_LINES)
		log_warn("an agent says: %.*s", len < 512 ? (int)len : 512, data);
}

/* Return: 1: @raw has something, 0: the end, or a negative errno. */
static ssize_t fill(struct docker_stream *s)
{
	ssize_t n;

	if (s->off < s->len)
		return 1;
	if (s->has_ended)
		return 0;
	n = recv(s->base.fd, s->raw, sizeof(s->raw), MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	s->has_ended = n == 0;
	s->off = 0;
	s->len = (size_t)n;
	return n > 0;
}

/* Return: bytes of the agent in @data; 0: the input had none. */
static ssize_t take_piece(struct docker_stream *s, char *data, size_t size)
{
	struct demux_piece piece;
	int r = demux_next(&s->demux, s->raw + s->off, s->len - s->off, &piece);
	size_t len;

	if (r < 0)
		return r;
	s->off += piece.skip;
	len = piece.len < size ? piece.len : size;
	if (piece.stream == DEMUX_STDOUT)
		memcpy(data, s->raw + s->off, len);
	else if (len > 0)
		log_stderr(s, s->raw + s->off, len);
	demux_take(&s->demux, len);
	s->off += len;
	return piece.stream == DEMUX_STDOUT ? (ssize_t)len : 0;
}

static ssize_t read_agent(struct remote_stream *base, char *data, size_t size)
{
	struct docker_stream *s = CONTAINER_OF(base, struct docker_stream, base);
	ssize_t n = 0;

	while (n == 0) {
		n = fill(s);
		if (n <= 0)
			return n;
		n = take_piece(s, data, size);
	}
	return n;
}

static ssize_t write_agent(struct remote_stream *base, const char *data, size_t len)
{
	ssize_t n = send(base->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	return n < 0 ? -errno : n;
}

static void free_stream(struct remote_stream *base)
{
	struct docker_stream *s = CONTAINER_OF(base, struct docker_stream, base);

	(void)fd_close(base->fd);
	free(s);
}

static struct remote_stream *new_stream(int fd, const char *early, size_t len)
{
	struct docker_stream *s = NEW(struct docker_stream);

	static_assert(HEAD_MAX <= RAW_BYTES, "what came with the head has room");
	s->base = (struct remote_stream){fd, read_agent, write_agent, free_stream};
	memcpy(s->raw, early, len);
	s->len = len;
	return &s->base;
}

struct docker_attach {
	struct docker *docker;
	int fd; /* owned */
	struct watch *watch;
	struct timer *timer;
	size_t len;
	char head[HEAD_MAX + 1];
	docker_attached_fn *on_done;
	void *ctx;
};

void docker_attach_cancel(struct docker_attach *a)
{
	if (!a)
		return;
	watch_free(a->watch);
	timer_free(a->timer);
	(void)fd_close(a->fd);
	free(a);
}

static void finish(struct docker_attach *a, struct remote_stream *far, const struct error *err)
{
	docker_attached_fn *on_done = a->on_done;
	void *ctx = a->ctx;

	docker_attach_cancel(a);
	on_done(ctx, far, err);
}

static void fail(struct docker_attach *a, int sys, const char *what)
{
	struct error err = {0};

	(void)error_set(&err, ERR_UNAVAILABLE, sys, "stream of the container: %s", what);
	finish(a, NULL, &err);
}

/* Return: whether the answer turns the connection into a stream. Podman says 200. */
static bool is_upgrade(const char *head)
{
	static const char raw[] = "application/vnd.docker.raw-stream";

	if (!str_has_prefix(head, "HTTP/1.1 ") && !str_has_prefix(head, "HTTP/1.0 "))
		return false;
	return str_has_prefix(head + 9, "101 ") ||
	       (str_has_prefix(head + 9, "200 ") && strstr(head, raw) != NULL);
}

static void take_head(struct docker_attach *a, char *end)
{
	size_t size = (size_t)(end - a->head) + 4;
	char status[64];

	*end = '\0';
	if (is_upgrade(a->head)) {
		/* One watch per descriptor: the relay makes its own. */
		watch_free(TAKE_PTR(a->watch));
		finish(a, new_stream(TAKE_FD(a->fd), a->head + size, a->len - size), NULL);
		return;
	}
	(void)snprintf(status, sizeof(status), "%.*s", (int)strcspn(a->head, "\r\n"), a->head);
	fail(a, 0, status);
}

static void on_head(void *ctx, int events)
{
	struct docker_attach *a = ctx;
	ssize_t n = recv(a->fd, a->head + a->len, HEAD_MAX - a->len, MSG_DONTWAIT);
	char *end;

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		fail(a, n < 0 ? errno : 0, "no answer");
		return;
	}
	a->len += (size_t)n;
	a->head[a->len] = '\0';
	end = strstr(a->head, "\r\n\r\n");
	if (end)
		take_head(a, end);
	else if (a->len == HEAD_MAX)
		fail(a, 0, "its head does not end");
}

static void on_overdue(void *ctx)
{
	fail(ctx, ETIMEDOUT, "no answer");
}

/* What docker_attach cannot begin fails later, as everything else. */
static void on_broken(void *ctx)
{
	struct docker_attach *a = ctx;
	struct error err = {0};
	cleanup_close int again = docker_connect(a->docker, &err);

	if (again >= 0)
		fail(a, ECONNRESET, "Docker does not read");
	else
		finish(a, NULL, &err);
}

static int send_head(const struct docker_attach *a, const char *container)
{
	cleanup_free char *head = xasprintf(
		"POST %s/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1 HTTP/1.1\r\n"
		"Host: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n",
		a->docker->version, container);
	size_t len = strlen(head);

	return send(a->fd, head, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len ? 0 : -EPIPE;
}

struct docker_attach *docker_attach(struct docker *d, const char *container,
                                    docker_attached_fn *on_done, void *ctx)
{
	struct docker_attach *a = NEW(struct docker_attach);
	struct error err = {0};

	a->docker = d;
	a->on_done = on_done;
	a->ctx = ctx;
	a->fd = docker_connect(d, &err);
	if (a->fd >= 0 && send_head(a, container) == 0) {
		a->watch = watch_new(d->loop, a->fd, on_head, a);
		watch_set(a->watch, WATCH_READ);
		a->timer = timer_new(d->loop, on_overdue, a);
		timer_start(a->timer, TIMEOUT_US);
	} else {
		a->timer = timer_new(d->loop, on_broken, a);
		timer_start(a->timer, 0);
	}
	return a;
}
