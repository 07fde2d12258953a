/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/size.h"
#include "egress/egress.h"
#include "io/loop.h"
#include <assert.h>

/*
 * Theory of operation. All tenants share the memory of the proxy, and a box decides what its
 * connections hold. Each connection has a cost: that of its kind, and its buffers as they are now.
 * While memory is short, the tenant that holds most opens no connection. When it is full,
 * connections of that tenant end, the most costly first, and nobody's buffers grow by more than a
 * little. So no allocation fails: libraries that the proxy uses would end it.
 */

/* Of one connection, with its watches, its timer and its lookup. */
#define PLAIN_BYTES (4 * KIB)
/* Two ends of TLS, each with its state and its longest record, and what a handshake needs. */
#define TLS_BYTES (2 * 48 * KIB)

static size_t cost_of(const struct client *c)
{
	const struct scrub *scrub = c->scrub ? c->scrub : c->down.scrub;

	return PLAIN_BYTES + (c->is_intercepted ? TLS_BYTES : 0) + c->input.cap +
	       c->up.waiting.cap + c->down.waiting.cap + scrub_bytes(scrub);
}

static struct client *most_costly_of(const struct box *box, struct client *most)
{
	struct client *c;

	LIST_FOREACH (c, &box->clients, struct client, node)
		if (!most || c->cost > most->cost)
			most = c;
	return most;
}

static struct client *most_costly(const struct egress *e, const struct tenant *t)
{
	struct client *most = NULL;
	struct box *box;

	LIST_FOREACH (box, &e->boxes, struct box, node)
		if (box->tenant == t)
			most = most_costly_of(box, most);
	return most;
}

static void shed(void *egress)
{
	struct egress *e = egress;

	e->is_shedding = false;
	while (budget_is_full(&e->memory)) {
		struct tenant *t = CONTAINER_OF(budget_largest(&e->memory), struct tenant, memory);
		struct client *c = most_costly(e, t);

		assert(c); /* the tenant holds most */
		log_debug("memory is short: ending a connection of box %u", c->box->id);
		control_denied(c, EGRESS_MEMORY, "");
		client_free(c);
	}
}

void cost_count(struct client *c)
{
	struct egress *e = c->box->egress;
	bool was_short = budget_is_short(&e->memory);

	budget_set(&e->memory, &c->box->tenant->memory, &c->cost, cost_of(c));
	if (was_short && !budget_is_short(&e->memory))
		box_resume_all(e);
	/* Its connections may be in use by whoever called this. */
	if (budget_is_full(&e->memory) && !TAKE(e->is_shedding, true))
		loop_defer(e->loop, shed, e);
}

void cost_drop(struct client *c)
{
	budget_set(&c->box->egress->memory, &c->box->tenant->memory, &c->cost, 0);
}
