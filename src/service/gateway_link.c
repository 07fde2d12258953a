/* SPDX-License-Identifier: Apache-2.0 */
#include "service/gateway_link.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "service/service_link.h"
#include <assert.h>
#include <string.h>

/* Distinct denials that a port keeps until they are taken. */
#define DENIALS_MAX 32

static_assert(GATEWAY_SERVER_LEN <= BOX_TOOL_LEN && GATEWAY_TOOL_LEN <= BOX_TOOL_LEN, "names fit");

struct gateway_link {
	struct service_link service;
	struct gateway_events events;
	void (*on_lost)(void *ctx);
	void *ctx;
};

struct gateway_port {
	struct service_port port;
	struct gateway_caller who; /* borrowed */
	struct box_rules *tools;   /* a reference; NULL: closed */
	struct box_tool_denial denials[DENIALS_MAX];
	size_t denials_count;
};

static struct gateway_limits limits_of(const struct box_network_limits *limits)
{
	return (struct gateway_limits){.calls = limits->connections, .bytes = limits->bytes};
}

static int send_order(const struct service_port *port)
{
	const struct gateway_port *p = CONTAINER_OF(port, struct gateway_port, port);
	const struct box_rules *tools = p->tools;
	struct gateway_order order = {
		.op = port->due, .box = port->number, .tenant = service_port_tenant(port)};
	cleanup_buf struct buf message = BUF_INIT(GATEWAY_MESSAGE_MAX);
	int r;

	if (tools) {
		order.text_count = (uint32_t)tools->count;
		order.limits = limits_of(&tools->limits);
		order.tenant_limits = limits_of(&tools->tenant_limits);
	}
	r = buf_add(&message, &order, sizeof(order));
	for (size_t i = 0; tools && i < tools->count && r >= 0; i++)
		r = buf_add(&message, tools->texts[i], strlen(tools->texts[i]) + 1);
	return r < 0 ? r
	             : fd_send(port->link->process, message.data, message.len, &port->listener,
	                       port->due == GATEWAY_OPEN ? 1 : 0);
}

static void free_port(struct service_port *port)
{
	struct gateway_port *p = CONTAINER_OF(port, struct gateway_port, port);

	box_rules_unref(p->tools);
	free(p);
}

static void add_denial(struct gateway_port *p, const struct gateway_event *event)
{
	struct box_tool_denial denial = {.count = 1};

	(void)!str_copy(denial.server, sizeof(denial.server), event->server);
	(void)!str_copy(denial.tool, sizeof(denial.tool), event->tool);
	(void)!str_copy(denial.rule, sizeof(denial.rule), event->detail);
	for (size_t i = 0; i < p->denials_count; i++)
		if (str_equal(p->denials[i].server, denial.server) &&
		    str_equal(p->denials[i].tool, denial.tool)) {
			p->denials[i].count++;
			return;
		}
	if (p->denials_count < DENIALS_MAX)
		p->denials[p->denials_count++] = denial;
}

static void take_call(struct gateway_link *l, const struct gateway_event *event)
{
	struct service_port *port = service_link_find(&l->service, event->box);
	struct gateway_port *p = port ? CONTAINER_OF(port, struct gateway_port, port) : NULL;

	if (!p || !p->tools || event->outcome >= GATEWAY_OUTCOME_COUNT) /* closed meanwhile */
		return;
	if (event->outcome == GATEWAY_DENIED)
		add_denial(p, event);
	l->events.on_called(l->events.ctx, &p->who, event);
}

static void on_event(struct service_link *service, void *data, int fd)
{
	struct gateway_link *l = CONTAINER_OF(service, struct gateway_link, service);
	struct gateway_event *event = data;

	event->server[sizeof(event->server) - 1] = '\0';
	event->tool[sizeof(event->tool) - 1] = '\0';
	event->detail[sizeof(event->detail) - 1] = '\0';
	if (event->op == GATEWAY_CALLED)
		take_call(l, event);
	else if (event->op == GATEWAY_STATE && event->state < GATEWAY_STATE_COUNT)
		l->events.on_state(l->events.ctx, event);
	else if (event->op == GATEWAY_CATALOG && fd >= 0)
		l->events.on_catalog(l->events.ctx, event, fd);
}

static void on_ended(struct service_link *service, bool is_last)
{
	const struct gateway_link *l = CONTAINER_OF(service, struct gateway_link, service);

	l->events.on_lost(l->events.ctx, is_last);
	if (is_last)
		l->on_lost(l->ctx);
}

struct gateway_link *gateway_link_new(struct loop *loop, int starter,
                                      const struct gateway_events *events,
                                      void (*on_lost)(void *ctx), void *ctx)
{
	static const struct service_ops ops = {
		.program = "millibox-gateway",
		.loss = "MCP tools",
		.open = GATEWAY_OPEN,
		.close = GATEWAY_CLOSE,
		.event_size = sizeof(struct gateway_event),
		.send = send_order,
		.on_event = on_event,
		.on_ended = on_ended,
		.free_port = free_port,
	};
	struct gateway_link *l = NEW(struct gateway_link);

	*l = (struct gateway_link){.events = *events, .on_lost = on_lost, .ctx = ctx};
	service_link_init(&l->service, &ops, loop, starter);
	return l;
}

void gateway_link_free(struct gateway_link *l)
{
	if (!l)
		return;
	service_link_done(&l->service);
	free(l);
}

int gateway_link_starter(const struct gateway_link *l)
{
	return l ? l->service.starter : -1;
}

struct gateway_port *gateway_port_open(struct gateway_link *l, int listener,
                                       const struct gateway_caller *who, struct box_rules *tools)
{
	struct gateway_port *p = NEW(struct gateway_port);

	*p = (struct gateway_port){.who = *who, .tools = box_rules_ref(tools)};
	service_port_open(&p->port, &l->service, listener, who->tenant);
	return p;
}

void gateway_port_change(struct gateway_port *p, struct box_rules *tools)
{
	struct box_rules *old = p->tools;

	p->tools = box_rules_ref(tools);
	box_rules_unref(old);
	service_port_order(&p->port, GATEWAY_ALLOW);
}

void gateway_port_close(struct gateway_port *p)
{
	if (!p)
		return;
	/* What it did is known before it is gone. */
	service_link_receive_all(p->port.link);
	box_rules_unref(TAKE_PTR(p->tools));
	service_port_close(&p->port);
}

size_t gateway_port_denials(struct gateway_port *p, struct box_tool_denial *ret, size_t max)
{
	size_t count;

	service_link_receive_all(p->port.link);
	count = p->denials_count < max ? p->denials_count : max;
	memcpy(ret, p->denials, count * sizeof(*ret));
	p->denials_count -= count;
	memmove(p->denials, p->denials + count, p->denials_count * sizeof(*p->denials));
	return count;
}
