/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "gateway/gateway.h"
#include "io/loop.h"
#include "io/watch.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define ORDERS_TURN 64
#define TEXTS_MAX   4096

struct message {
	struct gateway_order order;
	char texts[GATEWAY_MESSAGE_MAX - sizeof(struct gateway_order)];
};
static_assert(sizeof(struct message) == GATEWAY_MESSAGE_MAX, "no padding");

/* An event that the socket had no room for. */
struct unsent {
	struct list node;
	struct gateway_event event;
	int fd; /* owned; -1: none */
};

/* Return: 0 or a negative errno. */
static int send_event(struct gateway *g, const struct gateway_event *event, int fd)
{
	return fd_send(g->control_fd, event, sizeof(*event), &fd, fd < 0 ? 0 : 1);
}

static void drop_unsent(struct unsent *u)
{
	list_remove(&u->node);
	(void)fd_close(u->fd);
	free(u);
}

/* Of its server; calls are all kept. */
static void drop_older(struct gateway *g, const struct gateway_event *event)
{
	struct unsent *u;

	if (event->op == GATEWAY_CALLED)
		return;
	LIST_FOREACH (u, &g->unsent, struct unsent, node)
		if (u->event.op == event->op && str_equal(u->event.server, event->server))
			drop_unsent(u);
}

static void keep_event(struct gateway *g, const struct gateway_event *event, int fd)
{
	struct unsent *u = NEW(struct unsent);

	drop_older(g, event);
	*u = (struct unsent){.event = *event, .fd = fd < 0 ? -1 : fd_dup(fd)};
	list_append(&g->unsent, &u->node);
	/* Each call is one event, so what waits is bounded by the calls in progress and the
	 * servers. */
	box_resume_all(g);
	watch_set(g->control, WATCH_READ | WATCH_WRITE);
}

void control_send(struct gateway *g, const struct gateway_event *event, int fd)
{
	int r = list_is_empty(&g->unsent) ? send_event(g, event, fd) : -EAGAIN;

	if (r == -EAGAIN)
		keep_event(g, event, fd);
	else if (r < 0)
		log_debug("event %u: %s, ignoring", event->op, strerror(-r));
}

static void send_unsent(struct gateway *g)
{
	struct unsent *u;

	LIST_FOREACH (u, &g->unsent, struct unsent, node) {
		if (send_event(g, &u->event, u->fd) == -EAGAIN)
			return;
		drop_unsent(u);
	}
	watch_set(g->control, WATCH_READ);
	box_resume_all(g);
}

static struct box *find_box(struct gateway *g, uint32_t id)
{
	struct box *box;

	LIST_FOREACH (box, &g->boxes, struct box, node)
		if (box->id == id)
			return box;
	return NULL;
}

/* Return: what the box may call, owned, or NULL. */
static char **take_texts(const struct message *m, size_t len, struct error *err)
{
	const char *at = m->texts, *end = (const char *)m + len;
	uint32_t count = m->order.text_count;
	cleanup_str_list char **texts = NULL;

	if (count > TEXTS_MAX) {
		error_set(err, ERR_INVALID, 0, "%u texts", count);
		return NULL;
	}
	texts = xcalloc((size_t)count + 1, sizeof(*texts));
	for (uint32_t i = 0; i < count; i++) {
		const char *nul = memchr(at, '\0', (size_t)(end - at));

		if (!nul) {
			error_set(err, ERR_INVALID, 0, "text %u is cut off", i);
			return NULL;
		}
		texts[i] = xstrdup(at);
		at = nul + 1;
	}
	return TAKE_PTR(texts);
}

static int open_box(struct gateway *g, const struct message *m, size_t len, int listener,
                    struct error *err)
{
	cleanup_close int own = -1;
	char **allowed;

	if (listener < 0 || find_box(g, m->order.box))
		return error_set(err, ERR_INVALID, 0, "no socket, or the box is already open");
	own = fd_dup(listener);
	if (own < 0)
		return error_set(err, ERR_SYSTEM, -own, "keep the socket of a box");
	allowed = take_texts(m, len, err);
	if (!allowed)
		return -1;
	(void)!box_new(g, &m->order, allowed, TAKE_FD(own));
	return 0;
}

static int change_box(struct gateway *g, const struct message *m, size_t len, struct error *err)
{
	struct box *box = find_box(g, m->order.box);
	char **allowed = box ? take_texts(m, len, err) : NULL;

	if (!allowed)
		return box ? -1 : error_set(err, ERR_INVALID, 0, "no such box");
	str_list_free(box->allowed);
	box->allowed = allowed;
	box->limits = m->order.limits;
	box->tenant->limits = m->order.tenant_limits;
	box_resume_all(g);
	return 0;
}

/* Its places are free for others of its tenant. */
static void close_box(struct gateway *g, uint32_t id)
{
	box_free(find_box(g, id));
	box_resume_all(g);
}

static void obey(struct gateway *g, const struct message *m, size_t len, int fd)
{
	struct error err = {0};
	int r = 0;

	if (len < sizeof(m->order) || m->order.box == 0)
		r = error_set(&err, ERR_INVALID, 0, "order of %zu bytes", len);
	else if (m->order.op == GATEWAY_OPEN)
		r = open_box(g, m, len, fd, &err);
	else if (m->order.op == GATEWAY_ALLOW)
		r = change_box(g, m, len, &err);
	else if (m->order.op == GATEWAY_CLOSE)
		close_box(g, m->order.box);
	else
		r = error_set(&err, ERR_INVALID, 0, "order %u", m->order.op);
	if (r < 0)
		log_error("the daemon's order", &err);
}

/* Return: whether there may be more. */
static bool take_order(struct gateway *g)
{
	static struct message message;
	int fds[FD_PASS_MAX];
	size_t count = 0;
	ssize_t n = fd_recv(g->control_fd, &message, sizeof(message), fds, &count);

	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n <= 0) {
		/* Without its daemon the gateway has no box to serve. */
		loop_stop(g->loop);
		return false;
	}
	obey(g, &message, (size_t)n, count > 0 ? fds[0] : -1);
	for (size_t i = 0; i < count; i++)
		(void)fd_close(fds[i]);
	return true;
}

static void on_control(void *ctx, int events)
{
	if (events & WATCH_WRITE)
		send_unsent(ctx);
	for (int i = 0; i < ORDERS_TURN && take_order(ctx); i++)
		;
}

void control_open(struct gateway *g, int fd)
{
	list_init(&g->boxes);
	list_init(&g->tenants);
	list_init(&g->unsent);
	g->control_fd = fd;
	g->control = watch_new(g->loop, fd, on_control, g);
	watch_set(g->control, WATCH_READ);
}

void control_close(struct gateway *g)
{
	struct unsent *u;
	struct box *box;

	LIST_FOREACH (box, &g->boxes, struct box, node)
		box_free(box);
	LIST_FOREACH (u, &g->unsent, struct unsent, node)
		drop_unsent(u);
	watch_free(g->control);
}
