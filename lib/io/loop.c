/* SPDX-License-Identifier: Apache-2.0 */
#include "io/loop.h"

#include "base/alloc.h"
#include "io/internal.h"
#include <assert.h>

/*
 * Theory of operation. Deferred work runs in libuv's check phase, after the events of a round. An
 * idle handle, active only with deferred work, keeps the round from blocking. The check handle is
 * always active, so loop_run lasts until loop_stop.
 */

struct deferred {
	struct deferred *next;
	loop_fn *fn; /* NULL: cancelled */
	void *arg;
};

struct loop {
	uv_loop_t uv;
	uv_check_t check;
	uv_idle_t idle;
	struct deferred *deferred; /* owned, oldest first */
	struct deferred **end;     /* tail of @deferred */
	struct deferred *due;      /* owned: rest of the pass that is running */
};

static void keep_awake(uv_idle_t *idle)
{
	(void)idle;
}

/* Only what was deferred before this pass: work that defers itself must not starve events. */
static void run_deferred(struct loop *loop)
{
	struct deferred *d;

	loop->due = loop->deferred;
	loop->deferred = NULL;
	loop->end = &loop->deferred;
	while ((d = loop->due)) {
		loop->due = d->next;
		if (d->fn)
			d->fn(d->arg);
		free(d);
	}
	if (!loop->deferred)
		uv_idle_stop(&loop->idle);
}

static void on_check(uv_check_t *check)
{
	struct loop *loop = CONTAINER_OF(check, struct loop, check);

	if (loop->deferred)
		run_deferred(loop);
}

uv_loop_t *loop_uv(struct loop *loop)
{
	return &loop->uv;
}

struct loop *loop_new(void)
{
	struct loop *loop = NEW(struct loop);
	int r;

	loop->end = &loop->deferred;
	/* Fails only without descriptors. */
	r = uv_loop_init(&loop->uv);
	assert(r == 0);
	r = uv_check_init(&loop->uv, &loop->check);
	assert(r == 0);
	r = uv_idle_init(&loop->uv, &loop->idle);
	assert(r == 0);
	r = uv_check_start(&loop->check, on_check);
	assert(r == 0);
	(void)r;
	return loop;
}

void loop_free(struct loop *loop)
{
	int r;

	if (!loop)
		return;
	while (loop->deferred)
		run_deferred(loop);
	uv_close((uv_handle_t *)&loop->check, NULL);
	uv_close((uv_handle_t *)&loop->idle, NULL);
	(void)uv_run(&loop->uv, UV_RUN_NOWAIT);
	/* Busy: an open watch or timer would use freed memory. */
	r = uv_loop_close(&loop->uv);
	assert(r == 0);
	(void)r;
	free(loop);
}

void loop_run(struct loop *loop)
{
	(void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_run_once(struct loop *loop, bool wait)
{
	(void)uv_run(&loop->uv, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT);
}

void loop_stop(struct loop *loop)
{
	uv_stop(&loop->uv);
}

void loop_defer(struct loop *loop, loop_fn *fn, void *arg)
{
	struct deferred *d = NEW(struct deferred);

	d->fn = fn;
	d->arg = arg;
	*loop->end = d;
	loop->end = &d->next;
	(void)uv_idle_start(&loop->idle, keep_awake); /* fails only without a callback */
}

static void cancel_in_list(struct deferred *list, loop_fn *fn, const void *arg)
{
	for (struct deferred *d = list; d; d = d->next)
		if (d->fn == fn && d->arg == arg)
			d->fn = NULL;
}

void loop_cancel(struct loop *loop, loop_fn *fn, void *arg)
{
	cancel_in_list(loop->deferred, fn, arg);
	cancel_in_list(loop->due, fn, arg);
}
