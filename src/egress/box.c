/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "egress/egress.h"
#include "io/timer.h"
#include "io/watch.h"
#include <errno.h>

/* Connections accepted in one turn, so that a box that floods does not keep others waiting. */
#define ACCEPT_TURN     16
#define ACCEPT_AGAIN_US (50 * USEC_PER_MS)

bool box_is_below_shared_limits(const struct box *box)
{
	const struct egress *e = box->egress;

	return account_has_connection(&box->tenant->account) &&
	       e->connections < e->connections_max &&
	       !budget_must_wait(&e->memory, &box->tenant->memory);
}

static bool may_accept(const struct box *box)
{
	return account_has_connection(&box->account) && box_is_below_shared_limits(box);
}

void box_pause(struct box *box)
{
	watch_set(box->watch, 0);
}

/* What is not accepted waits in the queue of the socket, which is short. */
void box_resume(struct box *box)
{
	watch_set(box->watch, may_accept(box) ? WATCH_READ : 0);
}

void box_resume_all(struct egress *e)
{
	struct box *box;

	LIST_FOREACH (box, &e->boxes, struct box, node)
		box_resume(box);
}

void box_accept_again(void *egress)
{
	box_resume_all(egress);
}

/* Each connection leaves a port of this host unusable for a minute. */
static bool is_within_rate(struct box *box)
{
	uint64_t now = clock_us();

	if (account_may_open(&box->account, now) && account_may_open(&box->tenant->account, now))
		return true;
	timer_start(box->egress->accept, ACCEPT_AGAIN_US);
	return false;
}

static void on_connection(void *ctx, int events)
{
	struct box *box = ctx;

	(void)events;
	for (int i = 0; i < ACCEPT_TURN && may_accept(box); i++) {
		int fd;

		if (!is_within_rate(box)) {
			box_pause(box);
			return;
		}
		fd = fd_accept(box->listener);

		if (fd < 0)
			break;
		client_start(box, fd);
	}
	box_resume(box);
}

static struct tenant *take_tenant(struct egress *e, const struct egress_order *order)
{
	struct tenant *t;

	LIST_FOREACH (t, &e->tenants, struct tenant, node)
		if (t->id == order->tenant)
			goto found;
	t = NEW(struct tenant);
	t->id = order->tenant;
	list_append(&e->tenants, &t->node);
	budget_join(&e->memory, &t->memory);
found:
	t->boxes++;
	t->account.limits = order->tenant_limits;
	return t;
}

static void drop_tenant(struct tenant *t)
{
	if (--t->boxes > 0)
		return;
	list_remove(&t->node);
	budget_leave(&t->memory);
	free(t);
}

struct box *box_new(struct egress *e, const struct egress_order *order, struct rules *rules,
                    struct vault *vault, int listener)
{
	struct box *box = NEW(struct box);

	*box = (struct box){
		.egress = e,
		.id = order->box,
		.rules = rules,
		.vault = vault,
		.listener = listener,
		.account = {.limits = order->limits, .bytes = order->used},
	};
	box->tenant = take_tenant(e, order);
	list_init(&box->clients);
	list_append(&e->boxes, &box->node);
	box->watch = watch_new(e->loop, listener, on_connection, box);
	box_resume(box);
	return box;
}

void box_free(struct box *box)
{
	struct client *c;

	if (!box)
		return;
	LIST_FOREACH (c, &box->clients, struct client, node)
		client_free(c);
	list_remove(&box->node);
	watch_free(box->watch);
	(void)fd_close(box->listener);
	rules_free(box->rules);
	vault_free(box->vault);
	free(box->unsent);
	drop_tenant(box->tenant);
	free(box);
}
