/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/message_meter.h"

#include "api/internal.h"
#include "base/clock.h"
#include "core/tenant/tenant.h"
#include "io/loop.h"
#include <stdint.h>

/* Looked up for each: a tenant may be changed, or removed and made again. */
static void pay(struct message_meter *m)
{
	const struct tenants *all = m->router->parts.tenants;
	struct tenant *t = all ? tenants_find(all, m->tenant) : NULL;
	struct error ignored = {0};
	uint64_t wait_us = 0;

	while (m->owed > 0 && tenant_take_request(t, clock_us(), &wait_us, &ignored) == 0)
		m->owed--;
	if (m->owed > 0)
		timer_start(m->timer, wait_us);
}

static void on_timer(void *ctx)
{
	struct message_meter *m = ctx;

	pay(m);
	if (m->owed == 0)
		m->on_paid(m->ctx);
}

void meter_open(struct message_meter *m, struct router *r, const char *tenant,
                void (*on_paid)(void *ctx), void *ctx)
{
	*m = (struct message_meter){.router = r,
	                            .tenant = tenant,
	                            .timer = timer_new(r->parts.loop, on_timer, m),
	                            .on_paid = on_paid,
	                            .ctx = ctx};
}

void meter_close(struct message_meter *m)
{
	timer_free(m->timer);
	m->timer = NULL;
}

void meter_count(struct message_meter *m)
{
	/* While some are owed the timer runs. */
	if (m->owed++ == 0)
		pay(m);
}
