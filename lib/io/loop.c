/* SPDX-License-Identifier: Apache-2.0 */
#include "io/loop.h"

#include "base/alloc.h"
#include "base/list.h"
#include "io/internal.h"
#include <assert.h>

/*
 * Theory of operation. Deferred work runs in libuv's check phase, right after the events of a round
 * were dispatched. Work that is deferred while nothing else happens must not wait for the next
 * event: an idle handle, active only as long as something is deferred, keeps the round from
 * blocking. The check handle is always active, so that loop_run lasts until loop_stop even when
 * nothing else is watched.
 */

struct deferred {
	struct list node;
	loop_fn *fn;
	void *arg;
};

struct loop {
	uv_loop_t uv;
	uv_check_t check;
	uv_idle_t idle;
	struct list deferred; /* struct deferred, owned */
	struct list mark;     /* on @deferred during a pass */
};

static void keep_awake(uv_idle_t *idle)
{
	(void)idle;
}

/*
 * Only what was deferred before this pass, which is what stands before the mark: work that defers
 * itself again must not keep the loop from its events.
 */
static void run_deferred(struct loop *loop)
{
	list_append(&loop->deferred, &loop->mark);
	while (loop->deferred.next != &loop->mark) {
		struct deferred *d = LIST_ENTRY(loop->deferred.next, struct deferred, node);

		assert(d->node.prev == &loop->deferred); /* what clang's analyzer cannot know */
		list_remove(&d->node);
		d->fn(d->arg);
		free(d);
	}
	list_remove(&loop->mark);
	if (list_is_empty(&loop->deferred))
		uv_idle_stop(&loop->idle);
}

static void on_check(uv_check_t *check)
{
	struct loop *loop = CONTAINER_OF(check, struct loop, check);

	if (!list_is_empty(&loop->deferred))
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

	list_init(&loop->deferred);
	/* Only descriptors for epoll and a few pipes can fail here: nothing to go on without. */
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
	while (!list_is_empty(&loop->deferred))
		run_deferred(loop);
	uv_close((uv_handle_t *)&loop->check, NULL);
	uv_close((uv_handle_t *)&loop->idle, NULL);
	(void)uv_run(&loop->uv, UV_RUN_NOWAIT);
	/* Busy: somebody still has a watch or timer on it, whose callback would meet freed memory.
	 */
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
	list_append(&loop->deferred, &d->node);
	(void)uv_idle_start(&loop->idle, keep_awake); /* fails only without a callback */
}

void loop_cancel(struct loop *loop, loop_fn *fn, void *arg)
{
	struct deferred *d;

	LIST_FOREACH (d, &loop->deferred, struct deferred, node) {
		if (&d->node == &loop->mark || d->fn != fn || d->arg != arg)
			continue;
		list_remove(&d->node);
		free(d);
	}
}
