/* SPDX-License-Identifier: Apache-2.0 */
#include "io/timer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "io/internal.h"
#include <assert.h>

struct timer {
	uv_timer_t uv;
	timer_fn *fn;
	void *ctx;
};

static void on_timer(uv_timer_t *uv)
{
	struct timer *t = CONTAINER_OF(uv, struct timer, uv);

	t->fn(t->ctx);
}

static void on_closed(uv_handle_t *handle)
{
	free(CONTAINER_OF(handle, struct timer, uv));
}

struct timer *timer_new(struct loop *loop, timer_fn *fn, void *ctx)
{
	struct timer *t = NEW(struct timer);
	int r = uv_timer_init(loop_uv(loop), &t->uv);

	assert(r == 0);
	(void)r;
	t->fn = fn;
	t->ctx = ctx;
	return t;
}

void timer_start(struct timer *t, uint64_t delay_us)
{
	/*
	 * The loop's clock is in whole milliseconds, rounded down, and as old as the round: update
	 * it and add the rounding error. Never fire early.
	 */
	uint64_t delay_ms =
		delay_us / USEC_PER_MS + (delay_us % USEC_PER_MS != 0) + (delay_us != 0);
	int r;

	uv_update_time(t->uv.loop);
	r = uv_timer_start(&t->uv, on_timer, delay_ms, 0);
	assert(r == 0);
	(void)r;
}

void timer_stop(struct timer *t)
{
	(void)uv_timer_stop(&t->uv); /* cannot fail */
}

void timer_free(struct timer *t)
{
	if (t)
		uv_close((uv_handle_t *)&t->uv, on_closed);
}
