/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_internal.h"

#include "base/clock.h"
#include "core/store/store_internal.h"
#include "io/loop.h"

/*
 * Theory of operation. A paused session holds its box and nothing else: the place of its execution
 * among those that run goes to others, and to go on it has to get one again. Until then it stays
 * paused (session.resuming). The clock of the execution stands still meanwhile; those of idleness
 * and age go on, because the memory of the box is still taken.
 */

static bool is_being_stopped(const struct session *session)
{
	return session->current && session->current->phase >= JOB_STOPPING;
}

/* A job that only waits for a place goes back to the queue: nothing of it has begun. */
static void put_back(struct session *session)
{
	struct session_job *job = session->current;

	if (!job)
		return;
	scheduler_out(session->service->scheduler, &job->entry, clock_us());
	if (job->phase != JOB_WAITING)
		return;
	job->phase = JOB_QUEUED;
	session->current = NULL;
	session->queued++;
	/* Before the first, or before the head of an empty list: in front of all. */
	list_append(session->queue.next, &job->node);
}

int session_pause(struct session *session, struct error *err)
{
	uint64_t now = clock_us();

	if (session->mode != SESSION_PERSISTENT)
		return error_set(err, ERR_CONFLICT, 0,
		                 "session %s is ephemeral: between executions there is nothing to "
		                 "pause",
		                 session->id);
	if (session->state == SESSION_PAUSED && session->resuming) {
		session->resuming = false;
		if (session_job_inside(session))
			scheduler_out(session->service->scheduler,
			              &session_job_inside(session)->entry, now);
		return 0;
	}
	if (session->state != SESSION_READY && session->state != SESSION_RUNNING)
		return session_refuse(session, "paused", err);
	if (is_being_stopped(session))
		return error_set(err, ERR_CONFLICT, 0,
		                 "the execution of session %s is being stopped", session->id);
	if (box_freeze(session->box, true, err) < 0)
		return -1;
	session->job_left_us = session->job_due_us > now ? session->job_due_us - now : 1;
	session->paused_us = now;
	timer_stop(session->job_timer);
	session_touch(session);
	session_set_state(session, SESSION_PAUSED);
	put_back(session);
	/* Since when it stands still must not be lost with the daemon. */
	if (session->service->config.store)
		store_flush(session->service->config.store);
	return 0;
}

struct session_job *session_job_inside(const struct session *session)
{
	struct session_job *job = session->current;
	struct run_record_info info;

	if (job || !session->adopting)
		return job;
	LIST_FOREACH (job, &session->queue, struct session_job, node) {
		run_record_info(job->record, &info);
		if (info.state == RUN_RECORD_RUNNING)
			return job;
	}
	return NULL;
}

/* The time that it stood still is not its own. */
static void give_back(struct session *session)
{
	struct session_job *job = session_job_inside(session);
	uint64_t paused_us = clock_us() - session->paused_us;

	if (!job)
		return;
	if (job->started_us)
		job->started_us += paused_us;
	run_record_paused(job->record, paused_us / USEC_PER_MS);
}

static int thaw(struct session *session, struct error *err)
{
	struct session_job *job = session->current;

	if (box_freeze(session->box, false, err) < 0)
		return -1;
	session->resuming = false;
	session_touch(session);
	session_set_state(session, job ? SESSION_RUNNING : SESSION_READY);
	give_back(session);
	if (job)
		session_job_set_timer(session, session->job_left_us);
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
	struct session_job *job = session_job_inside(session);
	uint64_t now = clock_us();
	int r = 0;

	if (session->state != SESSION_PAUSED)
		return session_refuse(session, "resumed", err);
	if (session->resuming)
		return 0;
	/* While it was paused others took its place: it needs a new one to run on. */
	if (job)
		r = scheduler_enter(s->scheduler, &job->entry, now, err);
	if (r < 0)
		return -1;
	session->resuming = r > 0;
	if (r > 0)
		return 0;
	if (thaw(session, err) == 0)
		return 0;
	if (job)
		scheduler_out(s->scheduler, &job->entry, now);
	return -1;
}
