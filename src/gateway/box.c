/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "gateway/gateway.h"
#include "io/watch.h"

/* Connections accepted in one turn, so that a box that floods does not keep others waiting. */
#define ACCEPT_TURN 16

static bool may_accept(const struct box *box)
{
	return list_is_empty(&box->gateway->unsent) && box->calls < box->limits.calls &&
	       box->tenant->calls < box->tenant->limits.calls &&
	       box->gateway->clients < box->gateway->clients_max && client_has_memory(box);
}

/* What is not accepted waits in the queue of the socket, which is short. */
void box_resume(struct box *box)
{
	watch_set(box->watch, may_accept(box) ? WATCH_READ : 0);
}

void box_resume_all(struct gateway *g)
{
	struct box *box;

	LIST_FOREACH (box, &g->boxes, struct box, node)
		box_resume(box);
}

static void on_connection(void *ctx, int events)
{
	struct box *box = ctx;

	(void)events;
	for (int i = 0; i < ACCEPT_TURN && may_accept(box); i++) {
		int fd = fd_accept(box->listener);

		if (fd < 0)
			break;
		client_start(box, fd);
	}
	box_resume(box);
}

static struct tenant *find_tenant(struct gateway *g, uint32_t id)
{
	struct tenant *t;

	LIST_FOREACH (t, &g->tenants, struct tenant, node)
		if (t->id == id)
			return t;
	t = NEW(struct tenant);
	t->id = id;
	list_append(&g->tenants, &t->node);
	budget_join(&g->memory, &t->memory);
	return t;
}

struct box *box_new(struct gateway *g, const struct gateway_order *order, char **allowed,
                    int listener)
{
	struct box *box = NEW(struct box);

	*box = (struct box){
		.gateway = g,
		.id = order->box,
		.allowed = allowed,
		.limits = order->limits,
		.listener = listener,
		.tenant = find_tenant(g, order->tenant),
	};
	box->tenant->boxes++;
	box->tenant->limits = order->tenant_limits;
	list_init(&box->clients);
	list_append(&g->boxes, &box->node);
	box->watch = watch_new(g->loop, listener, on_connection, box);
	box_resume(box);
	return box;
}

void box_free(struct box *box)
{
	if (!box)
		return;
	client_free_all(box);
	list_remove(&box->node);
	watch_free(box->watch);
	(void)fd_close(box->listener);
	str_list_free(box->allowed);
	if (--box->tenant->boxes == 0) {
		list_remove(&box->tenant->node);
		budget_leave(&box->tenant->memory);
		free(box->tenant);
	}
	free(box);
}
