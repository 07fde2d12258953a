/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_pause.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "core/run/run_record_internal.h"
#include "core/session/session_beside.h"
#include "core/session/session_internal.h"
#include "core/session/session_row.h"
#include "core/store/store_internal.h"
#include "io/loop.h"

/*
 * Theory of operation. A paused session keeps its box, but its run gives up its place and needs one
 * to continue; until then it stays paused (session.resuming). The run's clock stops; idle time and
 * lifetime continue, because the box still uses memory.
 *
 * The kernel freezes a box a moment after it was asked (session.settling), and only what it has
 * done outlives this daemon: the box decides what the next one finds. So a pause and a resume are
 * answered when the kernel has done them, and then when the row is on disk.
 */

/* A process may sleep in the kernel for long, and stops only when it wakes. */
#define SETTLE_US (10 * USEC_PER_SEC)

struct settle_wait {
	struct list node; /* session.settle_waits, then of what releases it */
	session_kept_fn *fn;
	void *ctx;
	int r;
	struct error err;
};

/* Any of @done may free the session. */
static void call_waits(struct list *done)
{
	struct settle_wait *wait;

	LIST_FOREACH (wait, done, struct settle_wait, node) {
		list_remove(&wait->node);
		wait->fn(wait->ctx, wait->r < 0 ? &wait->err : NULL);
		free(wait);
	}
}

/* @err: NULL: it is done. */
static void release_waits(struct session *session, const struct error *err)
{
	struct settle_wait *wait;
	struct list done;

	list_init(&done);
	if (session->settle_timer)
		timer_stop(session->settle_timer);
	LIST_FOREACH (wait, &session->settle_waits, struct settle_wait, node) {
		list_remove(&wait->node);
		wait->r = err ? -1
		              : session_row_when_written(session, wait->fn, wait->ctx, &wait->err);
		if (err)
			wait->err = *err;
		if (wait->r != 0)
			list_append(&done, &wait->node);
		else
			free(wait); /* the store calls */
	}
	call_waits(&done);
}

static void on_settle_timer(void *ctx)
{
	struct session *session = ctx;
	struct error err = {0};

	(void)error_set(&err, ERR_UNAVAILABLE, 0,
	                "session %s is not frozen yet, because a process waits in the kernel: "
	                "repeat the request later",
	                session->id);
	release_waits(session, &err);
}

void session_when_settled(struct session *session, session_kept_fn *fn, void *ctx)
{
	struct settle_wait *wait = NEW(struct settle_wait);

	wait->fn = fn;
	wait->ctx = ctx;
	if (!session->settle_timer)
		session->settle_timer =
			timer_new(session->service->config.loop, on_settle_timer, session);
	if (list_is_empty(&session->settle_waits))
		timer_start(session->settle_timer, SETTLE_US);
	list_append(&session->settle_waits, &wait->node);
}

void session_on_frozen(void *ctx)
{
	struct session *session = ctx;

	session->settling = false;
	release_waits(session, NULL);
}

void session_unsettle(struct session *session, const struct error *err)
{
	session->settling = false;
	release_waits(session, err);
}

static int freeze(struct session *session, bool frozen, struct error *err)
{
	int r = box_freeze(session->box, frozen, err);

	if (r >= 0)
		session->settling = r > 0;
	return r < 0 ? -1 : 0;
}

/* @run: NULL: none is current. */
static void stop_clocks(struct session *session, struct run *run)
{
	if (run && run->state == RUN_WAITING)
		session_queue_put_back(session); /* nothing of it has begun */
	else if (run)
		run_freeze(run);
	/* A frozen box cannot report an end. */
	if (session->unknown_timer)
		timer_stop(session->unknown_timer);
}

int session_pause(struct session *session, struct error *err)
{
	uint64_t now = clock_us();
	struct run *run = session->current;

	if (!session_mode_has_box(session->mode))
		return error_set(err, ERR_CONFLICT, 0,
		                 "session %s is ephemeral: between executions there is nothing to "
		                 "pause",
		                 session->id);
	if (session->state == SESSION_PAUSED && session->resuming) {
		session->resuming = false;
		run = session_run_inside(session);
		if (run)
			scheduler_out(session->service->scheduler, &run->entry, now);
		return 0;
	}
	if (session->state != SESSION_READY && session->state != SESSION_RUNNING)
		return session_refuse(session, "paused", err);
	if ((run && run->state >= RUN_STOPPING) || session_beside_is_stopping(session))
		return error_set(err, ERR_CONFLICT, 0,
		                 "an execution of session %s is being stopped", session->id);
	if (freeze(session, true, err) < 0)
		return -1;
	session->paused_us = now;
	session_touch(session);
	session_set_state(session, SESSION_PAUSED);
	if (run)
		scheduler_out(session->service->scheduler, &run->entry, now);
	stop_clocks(session, run);
	session_beside_freeze(session);
	/* A crash must not lose the time of the pause. */
	if (session->service->config.store)
		store_flush(session->service->config.store);
	return 0;
}

struct run *session_run_inside(const struct session *session)
{
	struct run *run = session->current;

	if (run || !session->reattaching)
		return run;
	LIST_FOREACH (run, &session->queue, struct run, queue_node)
		if (run->record->state == RUN_RECORD_RUNNING)
			return run;
	return NULL;
}

static int thaw(struct session *session, struct error *err)
{
	struct run *run = session_run_inside(session);

	if (freeze(session, false, err) < 0)
		return -1;
	session->resuming = false;
	session_touch(session);
	session_set_state(session, session->current ? SESSION_RUNNING : SESSION_READY);
	if (run)
		run_thaw(run, clock_us() - session->paused_us);
	session_beside_thaw(session, clock_us() - session->paused_us);
	/* Written after the runs' time of the pause, which therefore is on disk with the answer. */
	session_row_changed(session);
	session_beside_stop_due(session);
	if (session_is_over(session))
		return 0;
	if (session->unknown_timer && session->unknown_runs > 0)
		timer_start(session->unknown_timer, RUN_GRACE_US);
	session_pump(session);
	return 0;
}

void session_resumed(struct session *session)
{
	struct error err = {0};

	if (thaw(session, &err) < 0)
		session_fail(session, &err);
}

int session_resume(struct session *session, struct error *err)
{
	struct session_service *s = session->service;
	struct run *run = session_run_inside(session);
	uint64_t now = clock_us();
	int r = 0;

	if (session->state != SESSION_PAUSED)
		return session_refuse(session, "resumed", err);
	if (session->resuming)
		return 0;
	/* Others took its place: it needs a new one. */
	if (run)
		r = scheduler_enter(s->scheduler, &run->entry, now, err);
	if (r < 0)
		return -1;
	session->resuming = r > 0;
	if (r > 0)
		return 0;
	if (thaw(session, err) == 0)
		return 0;
	if (run)
		scheduler_out(s->scheduler, &run->entry, now);
	return -1;
}
