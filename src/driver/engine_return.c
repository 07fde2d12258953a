/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/engine_internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "driver/engine_starter.h"
#include "io/loop.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/*
 * Theory of operation. An engine without on_engine_lost may fail alone: its boxes are lost, new
 * ones are refused (breaker.h), and the daemon goes on. When its time has come, the starter starts
 * its command again; the socket to it gets the request for its probe, and with that it is back.
 * Each failure on the way, silence included, opens the breaker again.
 *
 * Nothing is handed over again here: whoever owned a box learns that it was lost, and decides.
 */

/* The starter ends the process, if there still is one, before it starts the next. */
void engine_return_later(struct engine_driver *e, const struct error *err)
{
	struct breaker *breaker = &e->base.breaker;
	bool can_return = e->starter && !engine_starter_is_gone(e->starter);
	struct error why = *err;
	char reason[BREAKER_WHY_LEN];
	uint64_t delay = 0;

	(void)error_wrap(&why, DRIVER_LOSS "%s'", e->name);
	log_error(can_return ? "an engine is gone, starting it again later"
	                     : "an engine is gone until the daemon is restarted",
	          &why);
	(void)snprintf(reason, sizeof(reason), "%.140s%s%s", err->msg, err->sys ? ": " : "",
	               err->sys ? strerror(err->sys) : "");
	/* First: owners of its boxes may ask for new ones at once. */
	if (can_return)
		delay = breaker_open(breaker, clock_us(), reason);
	else
		breaker_give_up(breaker, reason);
	engine_driver_drop(e, &why);
	/* Of an earlier daemon's the starter knows nothing. Often without the right: then it ends
	 * when its lease does. */
	if (e->pidfd >= 0)
		(void)fd_pidfd_kill(e->pidfd, SIGKILL);
	if (e->again && can_return)
		timer_start(e->again, delay);
}

static int ask_for_probe(struct engine_driver *e, struct error *err)
{
	const struct engine_request request = {.op = ENGINE_PROBE, .seq = ENGINE_PROBE_SEQ};
	int r = fd_send(e->sock, &request, sizeof(request), NULL, 0);

	/* An engine that exited early may have left its reason. */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return error_set(err, ERR_SYSTEM, -r, "ask it");
	e->seq = ENGINE_PROBE_SEQ;
	e->is_probing = true;
	return engine_driver_listen(e, err);
}

static void on_started(void *ctx, const struct engine_started *started, const struct error *err)
{
	struct engine_driver *e = ctx;
	struct error failure = {0};

	if (err) {
		engine_return_later(e, err);
		return;
	}
	e->sock = started->sock;
	(void)fd_close(e->pidfd);
	e->pidfd = started->pidfd;
	if (ask_for_probe(e, &failure) < 0)
		engine_return_later(e, &failure);
}

static void on_time(void *ctx)
{
	struct engine_driver *e = ctx;
	struct error late = {0};

	if (e->base.breaker.state == BREAKER_HALF_OPEN) {
		engine_starter_forget(e->starter, e->number);
		(void)error_set(&late, ERR_UNAVAILABLE, 0, "it does not respond");
		engine_return_later(e, &late);
		return;
	}
	breaker_try(&e->base.breaker);
	timer_start(e->again, ENGINE_PROBE_TIMEOUT_US);
	engine_starter_ask(e->starter, e->number, on_started, e);
}

int engine_return_probed(struct engine_driver *e, const struct engine_probe *probe,
                         struct error *err)
{
	if (!e->is_probing)
		return engine_bad_reply(err, "sent a probe that was not requested");
	e->is_probing = false;
	if (engine_check_probe(probe, err) < 0 || engine_driver_probed(e, probe, err) < 0)
		return -1;
	timer_stop(e->again);
	breaker_close(&e->base.breaker, clock_us());
	log_info("engine '%s' is back", e->name);
	driver_serve(&e->base, e->base.services);
	return 0;
}

void engine_return_attach(struct engine_driver *e)
{
	const struct breaker *b = &e->base.breaker;
	uint64_t now = clock_us();

	e->again = timer_new(e->loop, on_time, e);
	if (b->state == BREAKER_OPEN && b->next_us)
		timer_start(e->again, b->next_us > now ? b->next_us - now : 0);
}

void engine_return_stop(struct engine_driver *e)
{
	if (e->starter)
		engine_starter_forget(e->starter, e->number);
	timer_free(TAKE_PTR(e->again));
}
