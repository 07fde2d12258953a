/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "egress/egress.h"
#include "io/loop.h"
#include "io/timer.h"
#include "io/watch.h"
#include "tls/authority.h"
#include "tls/session.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* How often the daemon learns what boxes have used. */
#define REPORT_US   USEC_PER_SEC
#define ORDERS_TURN 64
/* Distinct denials of a box that wait for room; further ones are only counted. */
#define UNSENT_MAX 8

struct message {
	struct egress_order order;
	char rules[EGRESS_MESSAGE_MAX - sizeof(struct egress_order)];
};
static_assert(sizeof(struct message) == EGRESS_MESSAGE_MAX, "no padding");

/* The proxy does not wait for a daemon that does not receive. */
static bool send_event(struct egress *e, const struct egress_event *event)
{
	return send(e->control_fd, event, sizeof(*event), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

static bool is_same_denial(const struct egress_event *a, const struct egress_event *b)
{
	return a->reason == b->reason && a->port == b->port && str_equal(a->host, b->host) &&
	       str_equal(a->detail, b->detail) && str_equal(a->request, b->request);
}

static void keep_denial(struct box *box, const struct egress_event *event)
{
	for (size_t i = 0; i < box->unsent_count; i++)
		if (is_same_denial(&box->unsent[i], event)) {
			box->unsent[i].count++;
			return;
		}
	if (!box->unsent)
		box->unsent = calloc(UNSENT_MAX, sizeof(*box->unsent));
	if (box->unsent && box->unsent_count < UNSENT_MAX)
		box->unsent[box->unsent_count++] = *event;
	watch_set(box->egress->control, WATCH_READ | WATCH_WRITE);
}

/* Return: whether none is left. */
static bool send_unsent(struct box *box)
{
	size_t sent = 0;

	while (sent < box->unsent_count && send_event(box->egress, &box->unsent[sent]))
		sent++;
	if (sent > 0) {
		box->unsent_count -= sent;
		memmove(box->unsent, box->unsent + sent, box->unsent_count * sizeof(*box->unsent));
	}
	return box->unsent_count == 0;
}

static void send_all_unsent(struct egress *e)
{
	struct box *box;

	LIST_FOREACH (box, &e->boxes, struct box, node)
		if (!send_unsent(box))
			return;
	watch_set(e->control, WATCH_READ);
}

void control_denied(struct client *c, enum egress_reason reason, const char *detail)
{
	struct box *box = c->box;
	const struct target *target = &c->target;
	struct egress_event event = {
		.op = EGRESS_DENIED,
		.box = box->id,
		.reason = reason,
		.count = 1,
		.port = target->port,
	};

	box->denied++;
	box->is_changed = true;
	static_assert(sizeof(event.host) == sizeof(target->host), "a host fits");
	memcpy(event.host, target->host, sizeof(event.host));
	(void)snprintf(event.detail, sizeof(event.detail), "%s", detail);
	if (!c->is_tunnel && c->path)
		(void)snprintf(event.request, sizeof(event.request), "%s %s", c->method, c->path);
	if (!send_unsent(box) || !send_event(box->egress, &event))
		keep_denial(box, &event);
}

void control_used(struct box *box, enum egress_op op)
{
	const struct egress_event event = {
		.op = op,
		.box = box->id,
		.sent = box->sent,
		.received = box->received,
		.connections = box->connections,
		.denied = box->denied,
	};

	box->is_changed = !send_unsent(box) || !send_event(box->egress, &event);
}

static void on_report(void *ctx)
{
	struct egress *e = ctx;
	struct box *box;

	LIST_FOREACH (box, &e->boxes, struct box, node)
		if (box->is_changed)
			control_used(box, EGRESS_USED);
	timer_start(e->report, REPORT_US);
}

static struct box *find_box(struct egress *e, uint32_t id)
{
	struct box *box;

	LIST_FOREACH (box, &e->boxes, struct box, node)
		if (box->id == id)
			return box;
	return NULL;
}

/* Return: the rules of a message, or NULL. @ret_rest: what follows them. */
static struct rules *take_rules(const struct message *m, size_t len, const char **ret_rest,
                                struct error *err)
{
	const char *texts[RULES_MAX];
	const char *at = m->rules, *end = (const char *)m + len;
	uint32_t count = m->order.rule_count;

	if (count > RULES_MAX) {
		error_set(err, ERR_INVALID, 0, "%u rules", count);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		const char *nul = memchr(at, '\0', (size_t)(end - at));

		if (!nul) {
			error_set(err, ERR_INVALID, 0, "rule %u is cut off", i);
			return NULL;
		}
		texts[i] = at;
		at = nul + 1;
	}
	*ret_rest = at;
	return rules_parse(texts, count, err);
}

static int take_grants(const struct message *m, size_t len, struct rules **ret_rules,
                       struct vault **ret_vault, struct error *err)
{
	const char *rest = NULL, *end = (const char *)m + len;

	*ret_rules = take_rules(m, len, &rest, err);
	if (!*ret_rules)
		return -1;
	*ret_vault = vault_parse(rest, (size_t)(end - rest), m->order.secret_count, err);
	if (*ret_vault)
		return 0;
	rules_free(*ret_rules);
	return -1;
}

static int open_box(struct egress *e, const struct message *m, size_t len, int listener,
                    struct error *err)
{
	cleanup_close int own = -1;
	struct rules *rules;
	struct vault *vault;

	if (listener < 0 || find_box(e, m->order.box))
		return error_set(err, ERR_INVALID, 0, "no socket, or the box is already open");
	own = fd_dup(listener);
	if (own < 0)
		return error_set(err, ERR_SYSTEM, -own, "keep the socket of a box");
	if (take_grants(m, len, &rules, &vault, err) < 0)
		return -1;
	(void)!box_new(e, &m->order, rules, vault, TAKE_FD(own));
	return 0;
}

static int change_box(struct egress *e, const struct message *m, size_t len, struct error *err)
{
	struct box *box = find_box(e, m->order.box);
	struct rules *rules;
	struct vault *vault;
	struct client *c;

	if (!box)
		return error_set(err, ERR_INVALID, 0, "no such box");
	if (take_grants(m, len, &rules, &vault, err) < 0)
		return -1;
	rules_free(box->rules);
	vault_free(box->vault);
	box->rules = rules;
	box->vault = vault;
	box->account.limits = m->order.limits;
	box->tenant->account.limits = m->order.tenant_limits;
	LIST_FOREACH (c, &box->clients, struct client, node)
		client_recheck(c);
	box_resume(box);
	return 0;
}

static void close_box(struct egress *e, uint32_t id)
{
	struct box *box = find_box(e, id);

	if (!box)
		return;
	box_pause(box);
	control_used(box, EGRESS_CLOSED);
	box_free(box);
}

static int take_authority(struct egress *e, const struct message *m, size_t len, struct error *err)
{
	struct egress_authority head;
	const char *key = m->rules + sizeof(head);
	struct authority *authority;

	len -= sizeof(m->order);
	if (len < sizeof(head))
		return error_set(err, ERR_INVALID, 0, "authority of %zu bytes", len);
	memcpy(&head, m->rules, sizeof(head));
	if (head.key_len > AUTHORITY_KEY_MAX || head.cert_len > AUTHORITY_CERT_MAX ||
	    len != sizeof(head) + head.key_len + head.cert_len)
		return error_set(err, ERR_INVALID, 0, "authority of %zu bytes", len);
	authority = authority_new(key, head.key_len, key + head.key_len, head.cert_len, err);
	if (!authority)
		return -1;
	authority_free(e->authority);
	e->authority = authority;
	return 0;
}

static void report_box(struct egress *e, uint32_t id)
{
	struct box *box = find_box(e, id);

	if (box)
		control_used(box, EGRESS_USED);
}

static void obey(struct egress *e, const struct message *m, size_t len, int fd)
{
	struct error err = {0};
	int r = 0;

	if (len >= sizeof(m->order) && m->order.op == EGRESS_AUTHORITY)
		r = take_authority(e, m, len, &err);
	else if (len < sizeof(m->order) || m->order.box == 0)
		r = error_set(&err, ERR_INVALID, 0, "order of %zu bytes", len);
	else if (m->order.op == EGRESS_OPEN)
		r = open_box(e, m, len, fd, &err);
	else if (m->order.op == EGRESS_RULES)
		r = change_box(e, m, len, &err);
	else if (m->order.op == EGRESS_CLOSE)
		close_box(e, m->order.box);
	else if (m->order.op == EGRESS_REPORT)
		report_box(e, m->order.box);
	else
		r = error_set(&err, ERR_INVALID, 0, "order %u", m->order.op);
	if (r < 0)
		log_error("the daemon's order", &err);
}

/* Return: whether there may be more. */
static bool take_order(struct egress *e)
{
	static struct message message;
	int fds[FD_PASS_MAX];
	size_t count = 0;
	ssize_t n = fd_recv(e->control_fd, &message, sizeof(message), fds, &count);

	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n <= 0) {
		/* Without its daemon the proxy has no clients. */
		loop_stop(e->loop);
		return false;
	}
	obey(e, &message, (size_t)n, count > 0 ? fds[0] : -1);
	explicit_bzero(&message, (size_t)n);
	for (size_t i = 0; i < count; i++)
		(void)fd_close(fds[i]);
	return true;
}

static void on_control(void *ctx, int events)
{
	if (events & WATCH_WRITE)
		send_all_unsent(ctx);
	for (int i = 0; i < ORDERS_TURN && take_order(ctx); i++)
		;
}

void control_open(struct egress *e, int fd)
{
	list_init(&e->boxes);
	list_init(&e->tenants);
	list_init(&e->paused);
	e->control_fd = fd;
	e->accept = timer_new(e->loop, box_accept_again, e);
	e->resume = timer_new(e->loop, relay_resume_paused, e);
	e->report = timer_new(e->loop, on_report, e);
	e->control = watch_new(e->loop, fd, on_control, e);
	timer_start(e->report, REPORT_US);
	watch_set(e->control, WATCH_READ);
}

void control_close(struct egress *e)
{
	struct box *box;

	LIST_FOREACH (box, &e->boxes, struct box, node)
		box_free(box);
	watch_free(e->control);
	timer_free(e->accept);
	timer_free(e->resume);
	timer_free(e->report);
	authority_free(e->authority);
	tls_trust_free(e->trust);
}
