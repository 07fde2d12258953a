/* SPDX-License-Identifier: Apache-2.0 */
#include "service/service_link.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "io/watch.h"
#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <string.h>

/* Events received at once; more than the socket holds. */
#define EVENTS_MAX 1024

struct tenant_number {
	uint32_t number;
	uint32_t ports;
};

static void take_tenant(struct service_link *l, const char *name)
{
	struct tenant_number *t = map_get(l->tenants, name);

	if (!t) {
		t = NEW(struct tenant_number);
		t->number = ++l->last_tenant;
		(void)!map_put(l->tenants, name, t); /* was not there */
	}
	t->ports++;
}

static void drop_tenant(struct service_link *l, const char *name)
{
	struct tenant_number *t = map_get(l->tenants, name);

	if (--t->ports == 0)
		free(map_remove(l->tenants, name));
}

uint32_t service_port_tenant(const struct service_port *p)
{
	const struct tenant_number *t = map_get(p->link->tenants, p->tenant);

	return t->number;
}

static void free_port(struct service_port *p)
{
	list_remove(&p->node);
	drop_tenant(p->link, p->tenant);
	p->link->ops->free_port(p);
}

static void drop_process(struct service_link *l)
{
	struct service_port *p;

	watch_free(l->process_watch);
	l->process_watch = NULL;
	l->process = fd_close(l->process);
	LIST_FOREACH (p, &l->ports, struct service_port, node) {
		p->due = 0;
		if (l->ops->on_forgotten)
			l->ops->on_forgotten(p);
		if (p->is_closed)
			free_port(p);
	}
}

void service_link_send(struct service_link *l)
{
	struct service_port *p;
	bool is_full = false;

	LIST_FOREACH (p, &l->ports, struct service_port, node) {
		int r;

		if (p->due == 0 || l->process < 0)
			continue;
		r = l->ops->send(p);
		is_full = r == -EAGAIN;
		if (is_full)
			break;
		/* Its end of the socket is closed: the next process gets everything again. */
		if (r < 0)
			log_warn("order to %s: %s, ignoring", l->ops->program, strerror(-r));
		p->due = 0;
		if (p->is_closed)
			free_port(p);
	}
	if (l->process_watch)
		watch_set(l->process_watch, is_full ? WATCH_READ | WATCH_WRITE : WATCH_READ);
}

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)fd_close(fds[i]);
}

bool service_link_receive(struct service_link *l)
{
	alignas(8) char event[SERVICE_EVENT_MAX];
	int fds[FD_PASS_MAX];
	size_t count = 0;
	ssize_t n = l->process < 0 ? -EAGAIN
	                           : fd_recv(l->process, event, l->ops->event_size, fds, &count);

	if (n == -EAGAIN)
		return false;
	if (n == -EINTR)
		return true;
	if (n == (ssize_t)l->ops->event_size)
		l->ops->on_event(l, event, count > 0 ? fds[0] : -1);
	close_all(fds, count);
	if (n == (ssize_t)l->ops->event_size)
		return true;
	log_warn("%s has ended%s", l->ops->program, l->starter < 0 ? "" : ", starting another");
	drop_process(l);
	l->ops->on_ended(l, l->starter < 0);
	return false;
}

void service_link_receive_all(struct service_link *l)
{
	for (int i = 0; i < EVENTS_MAX && service_link_receive(l); i++)
		;
}

static void on_process_event(void *ctx, int events)
{
	struct service_link *l = ctx;

	if (events & WATCH_WRITE)
		service_link_send(l);
	if (events & WATCH_READ)
		(void)service_link_receive(l);
}

static void lose_starter(struct service_link *l)
{
	log_err("%s has ended; boxes have no %s until a restart", l->ops->program, l->ops->loss);
	watch_free(l->starter_watch);
	l->starter_watch = NULL;
	l->starter = fd_close(l->starter);
	l->ops->on_ended(l, true);
}

static void on_starter(void *ctx, int events)
{
	struct service_link *l = ctx;
	struct service_port *p;
	int fds[FD_PASS_MAX];
	size_t count = 0;
	char byte;
	ssize_t n = fd_recv(l->starter, &byte, sizeof(byte), fds, &count);

	(void)events;
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n != sizeof(byte) || count != 1) {
		close_all(fds, count);
		lose_starter(l);
		return;
	}
	service_link_receive_all(l); /* the last events of the process before it */
	drop_process(l);
	l->process = fds[0];
	l->generation++;
	l->process_watch = watch_new(l->loop, l->process, on_process_event, l);
	watch_set(l->process_watch, WATCH_READ);
	LIST_FOREACH (p, &l->ports, struct service_port, node)
		p->due = l->ops->open;
	service_link_send(l);
}

void service_link_init(struct service_link *l, const struct service_ops *ops, struct loop *loop,
                       int starter)
{
	assert(ops->event_size <= SERVICE_EVENT_MAX);
	*l = (struct service_link){.ops = ops, .loop = loop, .starter = starter, .process = -1};
	l->tenants = map_new();
	list_init(&l->ports);
	l->starter_watch = watch_new(loop, starter, on_starter, l);
	watch_set(l->starter_watch, WATCH_READ);
}

void service_link_done(struct service_link *l)
{
	drop_process(l);
	assert(list_is_empty(&l->ports));
	watch_free(l->starter_watch);
	(void)fd_close(l->starter);
	map_free(l->tenants);
}

struct service_port *service_link_find(const struct service_link *l, uint32_t number)
{
	struct service_port *p;

	LIST_FOREACH (p, &l->ports, struct service_port, node)
		if (p->number == number)
			return p;
	return NULL;
}

void service_port_open(struct service_port *p, struct service_link *l, int listener,
                       const char *tenant)
{
	*p = (struct service_port){.link = l, .listener = listener, .number = ++l->last_port};
	(void)!str_copy(p->tenant, sizeof(p->tenant), tenant); /* a tenant of a box_spec */
	take_tenant(l, p->tenant);
	list_append(&l->ports, &p->node);
	service_port_order(p, l->ops->open);
}

void service_port_order(struct service_port *p, uint32_t op)
{
	/* A port that the process does not know yet is opened with its latest rules. */
	if (p->due != p->link->ops->open)
		p->due = op;
	service_link_send(p->link);
}

void service_port_close(struct service_port *p)
{
	if (p->link->process < 0 || p->due == p->link->ops->open) { /* no process knows it */
		free_port(p);
		return;
	}
	p->is_closed = true;
	p->listener = -1; /* the caller's, who closes it */
	service_port_order(p, p->link->ops->close);
}
