/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: messages of a WebSocket count as requests of their tenant. A stream cannot leave out bytes:
 * a client over its quota is not refused, it waits.
 */

#include <stdbool.h>
#include <stddef.h>

struct router;
struct timer;

struct message_meter {
	struct router *router; /* NULL: meter_open was not called */
	const char *tenant;    /* borrowed */
	size_t owed;           /* messages that were taken ahead of the quota */
	struct timer *timer;   /* owned */
	void (*on_paid)(void *ctx);
	void *ctx;
};

/** meter_open - @on_paid: the client may go on. */
void meter_open(struct message_meter *m, struct router *r, const char *tenant,
                void (*on_paid)(void *ctx), void *ctx);
void meter_close(struct message_meter *m);
/** meter_count - a message came. */
void meter_count(struct message_meter *m);
/** meter_is_over - the client must wait for on_paid. */
static inline bool meter_is_over(const struct message_meter *m)
{
	return m->owed > 0;
}
