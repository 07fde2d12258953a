/* SPDX-License-Identifier: Apache-2.0 */
#include "io/watch.h"

#include "base/alloc.h"
#include "io/internal.h"
#include <assert.h>

struct watch {
	uv_poll_t poll;
	watch_fn *fn;
	void *ctx;
	int wanted; /* enum watch_events */
};

static_assert((int)WATCH_READ == (int)UV_READABLE && (int)WATCH_WRITE == (int)UV_WRITABLE,
              "events are passed through");

static void on_poll(uv_poll_t *poll, int status, int events);

static void apply_events(struct watch *w)
{
	int r = w->wanted ? uv_poll_start(&w->poll, w->wanted, on_poll) : uv_poll_stop(&w->poll);

	assert(r == 0);
	(void)r;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct watch *w = CONTAINER_OF(poll, struct watch, poll);

	if (status < 0) {
		/*
		 * libuv stops a handle whose descriptor has an error (a peer that closed with
		 * unread bytes). Data before it can still be read: let read(2) or write(2) find the
		 * error.
		 */
		apply_events(w);
		events = w->wanted;
	}
	w->fn(w->ctx, events);
}

static void on_closed(uv_handle_t *handle)
{
	free(CONTAINER_OF(handle, struct watch, poll));
}

struct watch *watch_new(struct loop *loop, int fd, watch_fn *fn, void *ctx)
{
	struct watch *w = NEW(struct watch);
	int r;

	w->fn = fn;
	w->ctx = ctx;
	/* Fails for a regular file or a second watch. */
	r = uv_poll_init(loop_uv(loop), &w->poll, fd);
	assert(r == 0);
	(void)r;
	return w;
}

void watch_set(struct watch *w, int events)
{
	/* Restarting costs two system calls even when nothing changes. */
	if (w->wanted == events)
		return;
	w->wanted = events;
	apply_events(w);
}

void watch_free(struct watch *w)
{
	if (w)
		uv_close((uv_handle_t *)&w->poll, on_closed);
}
