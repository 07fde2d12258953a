/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/egress_link.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "egress/order.h"
#include "io/watch.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

/* Distinct denials that a port keeps until they are taken. */
#define DENIALS_MAX 32
/* Events received at once; more than the socket holds. */
#define EVENTS_MAX 1024

static_assert(EGRESS_HOST_LEN == BOX_HOST_LEN && EGRESS_RULE_LEN == BOX_DETAIL_LEN, "texts fit");

struct tenant_number {
	uint32_t number;
	uint32_t ports;
};

struct egress_link {
	struct loop *loop;
	int starter; /* owned; -1: gone, there will be no other proxy */
	struct watch *starter_watch;
	int proxy; /* owned; -1: none now */
	struct watch *proxy_watch;
	struct list ports;
	struct map *tenants; /* by name: struct tenant_number, owned */
	uint32_t last_port, last_tenant;
	void (*on_lost)(void *ctx);
	void *ctx;
};

struct egress_port {
	struct egress_link *link;
	struct list node;
	uint32_t number;
	int listener; /* borrowed */
	char tenant[BOX_TENANT_LEN];
	struct box_rules *rules;
	enum egress_op due; /* order that waits for room in the socket; EGRESS_OP_NONE: none */
	bool is_closed;     /* only its CLOSE is due */
	struct box_denial denials[DENIALS_MAX];
	size_t denials_count;
	/* Of the present proxy, and of those that died. */
	struct box_network_usage usage, before;
};

static void free_port(struct egress_port *p);

static void drop_proxy(struct egress_link *l)
{
	struct egress_port *p;

	watch_free(l->proxy_watch);
	l->proxy_watch = NULL;
	l->proxy = fd_close(l->proxy);
	LIST_FOREACH (p, &l->ports, struct egress_port, node) {
		egress_port_usage(p, &p->before);
		p->usage = (struct box_network_usage){0};
		p->due = EGRESS_OP_NONE;
		if (p->is_closed)
			free_port(p);
	}
}

static struct egress_limits limits_of(const struct box_network_limits *limits)
{
	return (struct egress_limits){
		.connections = limits->connections,
		.idle_ms = limits->idle_ms,
		.opened = limits->opened,
		.bytes = limits->bytes,
		.rate = limits->rate,
	};
}

static void take_tenant(struct egress_link *l, const char *name)
{
	struct tenant_number *t = map_get(l->tenants, name);

	if (!t) {
		t = NEW(struct tenant_number);
		t->number = ++l->last_tenant;
		(void)!map_put(l->tenants, name, t); /* was not there */
	}
	t->ports++;
}

static void drop_tenant(struct egress_link *l, const char *name)
{
	struct tenant_number *t = map_get(l->tenants, name);

	if (--t->ports == 0)
		free(map_remove(l->tenants, name));
}

static uint32_t number_of(const struct egress_port *p)
{
	const struct tenant_number *t = map_get(p->link->tenants, p->tenant);

	return t->number;
}

static int send_order(const struct egress_port *p)
{
	const struct box_rules *rules = p->due == EGRESS_CLOSE ? NULL : p->rules;
	struct egress_order order = {.op = p->due, .box = p->number, .tenant = number_of(p)};
	cleanup_buf struct buf message = BUF_INIT(EGRESS_MESSAGE_MAX);
	int r;

	if (rules) {
		order.rule_count = (uint32_t)rules->count;
		order.limits = limits_of(&rules->limits);
		order.tenant_limits = limits_of(&rules->tenant_limits);
		order.used = p->before.sent + p->before.received;
	}
	r = buf_add(&message, &order, sizeof(order));
	for (size_t i = 0; rules && i < rules->count && r >= 0; i++)
		r = buf_add(&message, rules->texts[i], strlen(rules->texts[i]) + 1);
	return r < 0 ? r
	             : fd_send(p->link->proxy, message.data, message.len, &p->listener,
	                       p->due == EGRESS_OPEN ? 1 : 0);
}

static void free_port(struct egress_port *p)
{
	list_remove(&p->node);
	drop_tenant(p->link, p->tenant);
	box_rules_unref(p->rules);
	free(p);
}

/* The orders of one port never overtake each other: only the latest is due. */
static void send_due(struct egress_link *l)
{
	struct egress_port *p;
	bool is_full = false;

	LIST_FOREACH (p, &l->ports, struct egress_port, node) {
		int r;

		if (p->due == EGRESS_OP_NONE || l->proxy < 0)
			continue;
		r = send_order(p);
		is_full = r == -EAGAIN;
		if (is_full)
			break;
		/* Its end of the socket is closed: the next proxy gets everything again. */
		if (r < 0)
			log_warn("order to millibox-egress: %s, ignoring", strerror(-r));
		p->due = EGRESS_OP_NONE;
		if (p->is_closed)
			free_port(p);
	}
	if (l->proxy_watch)
		watch_set(l->proxy_watch, is_full ? WATCH_READ | WATCH_WRITE : WATCH_READ);
}

static void order(struct egress_port *p, enum egress_op op)
{
	/* A port that the proxy does not know yet is opened with its latest rules. */
	if (p->due != EGRESS_OPEN)
		p->due = op;
	send_due(p->link);
}

static struct egress_port *find_port(struct egress_link *l, uint32_t number)
{
	struct egress_port *p;

	LIST_FOREACH (p, &l->ports, struct egress_port, node)
		if (p->number == number)
			return p;
	return NULL;
}

static bool is_same(const struct box_denial *a, const struct box_denial *b)
{
	return a->reason == b->reason && a->port == b->port && str_equal(a->host, b->host) &&
	       str_equal(a->detail, b->detail);
}

static void add_denial(struct egress_port *p, const struct egress_event *event)
{
	struct box_denial denial = {.reason = event->reason, .port = event->port, .count = 1};

	if (event->reason >= EGRESS_REASON_COUNT)
		return;
	memcpy(denial.host, event->host, sizeof(denial.host) - 1);
	memcpy(denial.detail, event->detail, sizeof(denial.detail) - 1);
	for (size_t i = 0; i < p->denials_count; i++)
		if (is_same(&p->denials[i], &denial)) {
			p->denials[i].count++;
			return;
		}
	if (p->denials_count < DENIALS_MAX)
		p->denials[p->denials_count++] = denial;
}

static void take_event(struct egress_link *l, const struct egress_event *event)
{
	struct egress_port *p = find_port(l, event->box);

	if (!p) /* closed meanwhile */
		return;
	if (event->op == EGRESS_DENIED)
		add_denial(p, event);
	else
		p->usage = (struct box_network_usage){.sent = event->sent,
		                                      .received = event->received,
		                                      .connections = event->connections,
		                                      .denied = event->denied};
}

/* Return: whether there may be more. */
static bool receive_event(struct egress_link *l)
{
	struct egress_event event;
	ssize_t n = l->proxy < 0 ? -EAGAIN : fd_recv(l->proxy, &event, sizeof(event), NULL, NULL);

	if (n == -EAGAIN)
		return false;
	if (n == -EINTR)
		return true;
	if (n == sizeof(event)) {
		take_event(l, &event);
		return true;
	}
	log_warn("millibox-egress has ended, starting another");
	drop_proxy(l);
	return false;
}

static void on_event(void *ctx, int events)
{
	struct egress_link *l = ctx;

	if (events & WATCH_WRITE)
		send_due(l);
	if (events & WATCH_READ)
		(void)receive_event(l);
}

static void on_proxy(void *ctx, int events)
{
	struct egress_link *l = ctx;
	struct egress_port *p;
	int fds[FD_PASS_MAX];
	size_t count = 0;
	char byte;
	ssize_t n = fd_recv(l->starter, &byte, sizeof(byte), fds, &count);

	(void)events;
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n != sizeof(byte) || count != 1) {
		for (size_t i = 0; i < count; i++)
			(void)fd_close(fds[i]);
		log_err("millibox-egress has ended; boxes have no network until a restart");
		watch_free(l->starter_watch);
		l->starter_watch = NULL;
		l->starter = fd_close(l->starter);
		l->on_lost(l->ctx);
		return;
	}
	drop_proxy(l);
	l->proxy = fds[0];
	l->proxy_watch = watch_new(l->loop, l->proxy, on_event, l);
	watch_set(l->proxy_watch, WATCH_READ);
	LIST_FOREACH (p, &l->ports, struct egress_port, node)
		p->due = EGRESS_OPEN;
	send_due(l);
}

struct egress_link *egress_link_new(struct loop *loop, int starter, void (*on_lost)(void *ctx),
                                    void *ctx)
{
	struct egress_link *l = NEW(struct egress_link);

	*l = (struct egress_link){
		.loop = loop, .starter = starter, .proxy = -1, .on_lost = on_lost, .ctx = ctx};
	l->tenants = map_new();
	list_init(&l->ports);
	l->starter_watch = watch_new(loop, starter, on_proxy, l);
	watch_set(l->starter_watch, WATCH_READ);
	return l;
}

void egress_link_free(struct egress_link *l)
{
	if (!l)
		return;
	drop_proxy(l);
	assert(list_is_empty(&l->ports));
	watch_free(l->starter_watch);
	(void)fd_close(l->starter);
	map_free(l->tenants);
	free(l);
}

struct egress_port *egress_port_open(struct egress_link *l, int listener, const char *tenant,
                                     struct box_rules *rules)
{
	struct egress_port *p = NEW(struct egress_port);

	*p = (struct egress_port){.link = l, .listener = listener, .number = ++l->last_port};
	(void)!str_copy(p->tenant, sizeof(p->tenant), tenant); /* a tenant of a box_spec */
	p->rules = box_rules_ref(rules);
	take_tenant(l, p->tenant);
	list_append(&l->ports, &p->node);
	order(p, EGRESS_OPEN);
	return p;
}

void egress_port_change(struct egress_port *p, struct box_rules *rules)
{
	struct box_rules *old = p->rules;

	p->rules = box_rules_ref(rules);
	box_rules_unref(old);
	order(p, EGRESS_RULES);
}

void egress_port_close(struct egress_port *p)
{
	if (!p)
		return;
	if (p->link->proxy < 0 || p->due == EGRESS_OPEN) { /* no proxy knows it */
		free_port(p);
		return;
	}
	p->is_closed = true;
	p->listener = -1; /* the caller's, who closes it */
	order(p, EGRESS_CLOSE);
}

size_t egress_port_denials(struct egress_port *p, struct box_denial *ret, size_t max)
{
	size_t count;

	for (int i = 0; i < EVENTS_MAX && receive_event(p->link); i++)
		;
	count = p->denials_count < max ? p->denials_count : max;
	memcpy(ret, p->denials, count * sizeof(*ret));
	p->denials_count -= count;
	memmove(p->denials, p->denials + count, p->denials_count * sizeof(*p->denials));
	return count;
}

void egress_port_usage(const struct egress_port *p, struct box_network_usage *ret)
{
	*ret = (struct box_network_usage){
		.sent = p->before.sent + p->usage.sent,
		.received = p->before.received + p->usage.received,
		.connections = p->before.connections + p->usage.connections,
		.denied = p->before.denied + p->usage.denied,
	};
}
