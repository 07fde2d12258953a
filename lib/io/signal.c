/* SPDX-License-Identifier: Apache-2.0 */
#include "io/signal.h"

#include "base/alloc.h"
#include "io/internal.h"
#include <assert.h>

struct signal_watch {
	uv_signal_t uv;
	signal_fn *fn;
	void *ctx;
};

static void on_signal(uv_signal_t *uv, int signo)
{
	struct signal_watch *s = CONTAINER_OF(uv, struct signal_watch, uv);

	s->fn(s->ctx, signo);
}

static void on_closed(uv_handle_t *handle)
{
	free(CONTAINER_OF(handle, struct signal_watch, uv));
}

struct signal_watch *signal_watch_new(struct loop *loop, int signo, signal_fn *fn, void *ctx)
{
	struct signal_watch *s = NEW(struct signal_watch);
	int r = uv_signal_init(loop_uv(loop), &s->uv);

	assert(r == 0);
	s->fn = fn;
	s->ctx = ctx;
	r = uv_signal_start(&s->uv, on_signal, signo);
	assert(r == 0);
	(void)r;
	return s;
}

void signal_watch_free(struct signal_watch *s)
{
	if (s)
		uv_close((uv_handle_t *)&s->uv, on_closed);
}
