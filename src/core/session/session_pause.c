/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_internal.h"

#include "base/clock.h"
#include "core/run/run_record_internal.h"
#include "core/store/store_internal.h"
#include "io/loop.h"

/*
 * Theory of operation. A paused session keeps its box, but its run gives up its place and needs one
 * to continue; until then it stays paused (session.resuming). The run's clock stops; idle time and
 * lifetime continue, because the box still uses memory.
 */

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

	if (session->mode != SESSION_PERSISTENT)
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
	if (run && run->state >= RUN_STOPPING)
		return error_set(err, ERR_CONFLICT, 0,
		                 "the execution of session %s is being stopped", session->id);
	if (box_freeze(session->box, true, err) < 0)
		return -1;
	session->paused_us = now;
	session_touch(session);
	session_set_state(session, SESSION_PAUSED);
	if (run)
		scheduler_out(session->service->scheduler, &run->entry, now);
	stop_clocks(session, run);
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

	if (box_freeze(session->box, false, err) < 0)
		return -1;
	session->resuming = false;
	session_touch(session);
	session_set_state(session, session->current ? SESSION_RUNNING : SESSION_READY);
	if (run)
		run_thaw(run, clock_us() - session->paused_us);
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
