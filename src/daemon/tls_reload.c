/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/tls_reload.h"

#include "base/clock.h"
#include "core/config/config.h"
#include "daemon/tls_guard.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/timer.h"
#include "io/watch.h"

static void finish_reload(struct tls_reload *t)
{
	t->asking = false;
	watch_set(t->watch, 0);
	timer_stop(t->timer);
	t->ready(t->ctx);
	if (!t->again)
		return;
	/* A request made meanwhile may be about newer files. */
	t->again = false;
	tls_reload_ask(t);
}

static void on_answer(void *ctx, int events attr_unused)
{
	struct tls_reload *t = ctx;

	if (tls_guard_take(t->guard, t->fds, &t->failure) != 1)
		finish_reload(t);
}

static void on_timer(void *ctx)
{
	struct tls_reload *t = ctx;

	tls_guard_give_up(t->guard, &t->failure);
	finish_reload(t);
}

static void ask_guard(struct tls_reload *t)
{
	if (!t->watch) {
		t->watch = watch_new(t->loop, t->guard->link, on_answer, t);
		t->timer = timer_new(t->loop, on_timer, t);
	}
	if (tls_guard_ask(t->guard, &t->failure) < 0) {
		t->ready(t->ctx);
		return;
	}
	t->asking = true;
	watch_set(t->watch, WATCH_READ);
	timer_start(t->timer, TLS_GUARD_TIMEOUT_MS * USEC_PER_MS);
}

void tls_reload_ask(struct tls_reload *t)
{
	if (t->asking) {
		t->again = true;
		return;
	}
	t->failure = (struct error){0};
	if (t->config->tls_cert[0] && t->guard->pid > 0) {
		ask_guard(t);
		return;
	}
	if (t->config->tls_cert[0])
		tls_files_open(t->config, t->fds);
	t->ready(t->ctx);
}

int tls_reload_run(void *ctx, struct error *err)
{
	struct tls_reload *t = ctx;
	struct tls_files files = {0};
	struct http_tls tls;
	int r;

	if (error_is_set(&t->failure)) {
		*err = t->failure;
		return -1;
	}
	if (tls_files_read(t->config, t->fds, &files, err) < 0)
		return -1;
	tls = (struct http_tls){files.cert, files.key};
	r = http_server_renew_tls(t->http, &tls, err);
	tls_files_done(&files);
	return r;
}

void tls_reload_done(struct tls_reload *t)
{
	watch_free(t->watch);
	timer_free(t->timer);
	t->watch = NULL;
	t->timer = NULL;
}
