/* SPDX-License-Identifier: Apache-2.0 */
#include "service/egress_link.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "egress/order.h"
#include "service/service_link.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

/* Distinct denials that a port keeps until they are taken. */
#define DENIALS_MAX 32
/* Room for the order with the authority. */
#define AUTHORITY_BYTES 8192

static_assert(EGRESS_HOST_LEN == BOX_HOST_LEN && EGRESS_RULE_LEN == BOX_DETAIL_LEN, "texts fit");
static_assert(EGRESS_REQUEST_LEN == BOX_DETAIL_LEN, "requests fit");

struct egress_link {
	struct service_link service;
	struct egress_source source; /* .write NULL: none */
	uint32_t informed;           /* generation of the proxy that has the authority */
	void (*on_lost)(void *ctx);
	void *ctx;
};

struct egress_port {
	struct service_port port;
	struct box_rules *rules;
	bool is_asked; /* its REPORT has no answer yet */
	struct box_denial denials[DENIALS_MAX];
	size_t denials_count;
	/* Of the present proxy, and of those that died. */
	struct box_network_usage usage, before;
};

static struct egress_link *link_of(const struct egress_port *p)
{
	return CONTAINER_OF(p->port.link, struct egress_link, service);
}

static void on_forgotten(struct service_port *port)
{
	struct egress_port *p = CONTAINER_OF(port, struct egress_port, port);

	egress_port_usage(p, &p->before);
	p->usage = (struct box_network_usage){0};
	p->is_asked = false;
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

static void wipe_message(struct buf *message)
{
	if (message->data)
		explicit_bzero(message->data, message->cap);
	buf_done(message);
}

/* Those that exist. */
static void add_secrets(const struct egress_port *p, const struct box_rules *rules,
                        struct buf *message)
{
	const struct egress_source *source = &link_of(p)->source;
	struct egress_order *order;
	uint32_t count = 0;

	for (char *const *name = rules->secrets; source->write && name && *name; name++)
		if (source->write(source->ctx, p->port.tenant, *name, message) > 0)
			count++;
	order = (struct egress_order *)message->data;
	order->secret_count = count;
}

/* Return: 0, or -EAGAIN: the socket is full. */
static int send_authority(struct egress_link *l)
{
	const struct egress_order order = {.op = EGRESS_AUTHORITY};
	attr_cleanup(wipe_message) struct buf message = BUF_INIT(EGRESS_MESSAGE_MAX);
	int r;

	if (l->informed == l->service.generation || !l->source.write_authority)
		return 0;
	if (buf_reserve(&message, AUTHORITY_BYTES) < 0 ||
	    buf_add(&message, &order, sizeof(order)) < 0 ||
	    l->source.write_authority(l->source.ctx, &message) <= 0)
		return 0;
	r = fd_send(l->service.process, message.data, message.len, NULL, 0);
	if (r >= 0)
		l->informed = l->service.generation;
	return r == -EAGAIN ? r : 0;
}

/* Return: 0 or a negative errno. */
static int add_rules(const struct egress_port *p, const struct box_rules *rules,
                     struct buf *message)
{
	int r = 0;

	for (size_t i = 0; i < rules->count && r >= 0; i++)
		r = buf_add(message, rules->texts[i], strlen(rules->texts[i]) + 1);
	if (r >= 0)
		add_secrets(p, rules, message);
	return r;
}

static int send_order(const struct service_port *port)
{
	const struct egress_port *p = CONTAINER_OF(port, struct egress_port, port);
	const struct box_rules *rules = port->due == EGRESS_CLOSE ? NULL : p->rules;
	struct egress_order order = {
		.op = port->due, .box = port->number, .tenant = service_port_tenant(port)};
	attr_cleanup(wipe_message) struct buf message = BUF_INIT(EGRESS_MESSAGE_MAX);
	int r = 0;

	if (rules) {
		order.rule_count = (uint32_t)rules->count;
		order.limits = limits_of(&rules->limits);
		order.tenant_limits = limits_of(&rules->tenant_limits);
		order.used = p->before.sent + p->before.received;
	}
	/* What the proxy must know before a secret. */
	if (rules && rules->bundle)
		r = send_authority(link_of(p));
	/* All at once: growing would leave copies of secrets behind. */
	if (r >= 0 && rules && rules->secrets)
		r = buf_reserve(&message, EGRESS_MESSAGE_MAX);
	if (r >= 0)
		r = buf_add(&message, &order, sizeof(order));
	if (r >= 0 && rules)
		r = add_rules(p, rules, &message);
	return r < 0 ? r
	             : fd_send(port->link->process, message.data, message.len, &port->listener,
	                       port->due == EGRESS_OPEN ? 1 : 0);
}

static void free_port(struct service_port *port)
{
	struct egress_port *p = CONTAINER_OF(port, struct egress_port, port);

	box_rules_unref(p->rules);
	free(p);
}

static bool is_same(const struct box_denial *a, const struct box_denial *b)
{
	return a->reason == b->reason && a->port == b->port && str_equal(a->host, b->host) &&
	       str_equal(a->detail, b->detail) && str_equal(a->request, b->request);
}

static void add_denial(struct egress_port *p, const struct egress_event *event)
{
	struct box_denial denial = {
		.reason = event->reason, .port = event->port, .count = event->count};

	if (event->reason >= EGRESS_REASON_COUNT)
		return;
	memcpy(denial.host, event->host, sizeof(denial.host) - 1);
	memcpy(denial.detail, event->detail, sizeof(denial.detail) - 1);
	/* Other refusals do not depend on it: they count together. */
	if (event->reason == EGRESS_METHOD || event->reason == EGRESS_PATH)
		memcpy(denial.request, event->request, sizeof(denial.request) - 1);
	for (size_t i = 0; i < p->denials_count; i++)
		if (is_same(&p->denials[i], &denial)) {
			p->denials[i].count += denial.count;
			return;
		}
	if (p->denials_count < DENIALS_MAX)
		p->denials[p->denials_count++] = denial;
}

static struct egress_port *find_port(const struct service_link *l, uint32_t number)
{
	struct service_port *port = service_link_find(l, number);

	return port ? CONTAINER_OF(port, struct egress_port, port) : NULL;
}

static void on_event(struct service_link *l, void *data, int fd attr_unused)
{
	const struct egress_event *event = data;
	struct egress_port *p = find_port(l, event->box);

	if (!p) /* closed meanwhile */
		return;
	if (event->op == EGRESS_DENIED)
		add_denial(p, event);
	else {
		p->is_asked = false;
		p->usage = (struct box_network_usage){.sent = event->sent,
		                                      .received = event->received,
		                                      .connections = event->connections,
		                                      .denied = event->denied};
	}
}

static void on_ended(struct service_link *service, bool is_last)
{
	const struct egress_link *l = CONTAINER_OF(service, struct egress_link, service);

	if (is_last)
		l->on_lost(l->ctx);
}

struct egress_link *egress_link_new(struct loop *loop, int starter, void (*on_lost)(void *ctx),
                                    void *ctx)
{
	static const struct service_ops ops = {
		.program = "millibox-egress",
		.loss = "network",
		.open = EGRESS_OPEN,
		.close = EGRESS_CLOSE,
		.event_size = sizeof(struct egress_event),
		.send = send_order,
		.on_event = on_event,
		.on_forgotten = on_forgotten,
		.on_ended = on_ended,
		.free_port = free_port,
	};
	struct egress_link *l = NEW(struct egress_link);

	*l = (struct egress_link){.on_lost = on_lost, .ctx = ctx};
	service_link_init(&l->service, &ops, loop, starter);
	return l;
}

void egress_link_free(struct egress_link *l)
{
	if (!l)
		return;
	service_link_done(&l->service);
	free(l);
}

void egress_link_set_source(struct egress_link *l, const struct egress_source *source)
{
	l->source = *source;
}

void egress_link_refresh(struct egress_link *l, const char *tenant)
{
	struct service_port *port;

	LIST_FOREACH (port, &l->service.ports, struct service_port, node) {
		const struct egress_port *p = CONTAINER_OF(port, struct egress_port, port);

		if (!port->is_closed && p->rules && p->rules->secrets &&
		    str_equal(port->tenant, tenant) && port->due == EGRESS_OP_NONE)
			port->due = EGRESS_RULES;
	}
	service_link_send(&l->service);
}

struct egress_port *egress_port_open(struct egress_link *l, int listener, const char *tenant,
                                     struct box_rules *rules)
{
	struct egress_port *p = NEW(struct egress_port);

	*p = (struct egress_port){.rules = box_rules_ref(rules)};
	service_port_open(&p->port, &l->service, listener, tenant);
	return p;
}

void egress_port_change(struct egress_port *p, struct box_rules *rules)
{
	struct box_rules *old = p->rules;

	p->rules = box_rules_ref(rules);
	box_rules_unref(old);
	service_port_order(&p->port, EGRESS_RULES);
}

void egress_port_close(struct egress_port *p)
{
	if (p)
		service_port_close(&p->port);
}

size_t egress_port_denials(struct egress_port *p, struct box_denial *ret, size_t max)
{
	size_t count;

	service_link_receive_all(p->port.link);
	count = p->denials_count < max ? p->denials_count : max;
	memcpy(ret, p->denials, count * sizeof(*ret));
	p->denials_count -= count;
	memmove(p->denials, p->denials + count, p->denials_count * sizeof(*p->denials));
	return count;
}

void egress_port_ask(struct egress_port *p)
{
	const struct egress_order report = {.op = EGRESS_REPORT, .box = p->port.number};
	struct service_link *l = p->port.link;

	service_link_receive_all(l); /* an older report is not the answer */
	/* While an order waits there is no room; the next report of the proxy comes anyway. */
	p->is_asked = l->process >= 0 && p->port.due == EGRESS_OP_NONE && !p->port.is_closed &&
	              fd_send(l->process, &report, sizeof(report), NULL, 0) >= 0;
}

static bool is_asked(const struct service_link *l, uint32_t number)
{
	const struct egress_port *p = find_port(l, number);

	return p && p->is_asked;
}

bool egress_port_settle(struct egress_port *p, uint64_t wait_us)
{
	struct service_link *l = p->port.link;
	uint64_t until = clock_us() + wait_us;
	uint32_t number = p->port.number;

	while (l->process >= 0 && is_asked(l, number) && clock_us() < until) {
		struct pollfd fd = {.fd = l->process, .events = POLLIN};

		if (poll(&fd, 1, 1) > 0)
			(void)service_link_receive(l);
	}
	return l->process < 0 || !is_asked(l, number);
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
