/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_resume.h"

#include <signal.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/session/session_label.h"
#include "io/loop.h"

/*
 * Theory of operation. A box that outlives its daemon is the only one who knows what happened in it
 * meanwhile; the store knows what was asked for. Names bring them together: a runner is labelled
 * with its language, an execution with its own id.
 *
 * The agent describes what it has (session_on_resume), then says everything about it again, from
 * the start. Jobs that the store says had not ended wait in the queue until then: those that are
 * described are in the box (resumed), the others were never given to it. Because the agent speaks
 * in the order in which things happened, a resumed job is the current one when its words come.
 *
 * A paused box says nothing until it is thawed: its session stays as it is, and finds out then.
 *
 * The other direction: an end that the box has told is acknowledged to it once the record is safe.
 * Whoever is killed in between is told again.
 */

/* Acknowledging. */

static void on_settled(void *ctx)
{
	struct session_ack *ack = ctx;
	struct session *session = ack->session;

	if (session) {
		list_remove(&ack->node);
		for (size_t i = 0; i < ARRAY_SIZE(ack->ids); i++)
			if (session->box && ack->ids[i])
				box_ack(session->box, ack->ids[i]);
		session->unacked--;
	}
	free(ack);
	/* It may have waited for that; never from inside the end of a job. */
	if (session && !session->current)
		session_pump(session);
}

void session_job_ack(struct session_job *job)
{
	struct session *session = job->session;
	struct session_ack *ack;

	/* With the box goes what it remembers. */
	if (!session->spec.keep || !session->box || job->id == 0 || session_is_over(session))
		return;
	ack = NEW(struct session_ack);
	ack->session = session;
	ack->ids[0] = job->id;
	ack->ids[1] = job->dead_runner;
	list_append(&session->acks, &ack->node);
	session->unacked++;
	run_record_when_settled(job->record, on_settled, ack);
}

void session_drop_acks(struct session *session)
{
	struct session_ack *ack;

	LIST_FOREACH (ack, &session->acks, struct session_ack, node) {
		list_remove(&ack->node);
		ack->session = NULL;
	}
	session->unacked = 0;
}

/* Resuming. */

static struct session_job *job_named(struct session *session, const char *id)
{
	struct session_job *job;
	struct run_record_info info;

	LIST_FOREACH (job, &session->queue, struct session_job, node) {
		run_record_info(job->record, &info);
		if (str_equal(info.id, id))
			return job;
	}
	return NULL;
}

static int resume_runner(struct session *session, const struct box_resumed *what)
{
	const struct runner *language = runners_find(session->service->config.runners, what->label);
	struct session_runner *runner;

	if (!language)
		return -1;
	runner = session_runner_of(session, language);
	if (!runner) {
		runner = NEW(struct session_runner);
		runner->language = language;
		list_append(&session->runners, &runner->node);
	}
	/* The later one: if there was another before, its end is told, too. */
	if (what->id > runner->id)
		runner->id = what->id;
	return 0;
}

static void resume_job(struct session_job *job, const struct box_resumed *what,
                       const struct session_label *label, struct box_grant *ret_grant)
{
	job->resumed = true;
	job->id = what->id;
	job->runner_id = what->runner;
	job->runner = what->runner ? session_runner_of(job->session, job->decision.runner) : NULL;
	job->stdin_taken = what->stdin_bytes;
	job->stdin_ended = !what->stdin_open;
	job->before = label->before;
	job->past_queue_us = label->queue_us;
	ret_grant->stdout_max = ret_grant->stderr_max = job->decision.output_bytes + 1;
	ret_grant->report_max = (uint32_t)job->decision.report_bytes;
}

int session_on_resume(void *ctx, const struct box_resumed *what, struct box_grant *ret_grant)
{
	struct session *session = ctx;
	struct session_label label;
	struct session_job *job;
	struct error err = {0};

	if (what->keep)
		return resume_runner(session, what);
	session_label_read(what->label, &label);
	job = job_named(session, label.id);
	if (job) {
		resume_job(job, what, &label, ret_grant);
		return 0;
	}
	/* Its end was recorded, or nobody was promised anything about it: then it may still run,
	 * and nobody looks at its deadline. It does not hear this if it has ended. */
	ret_grant->forget = true;
	session->strangers++;
	session->stranger_id = what->runner ? what->runner : what->id;
	if (box_signal(session->box, what->id, SIGINT, &err) < 0)
		log_debug("session=%s: %s", session->id, err.msg);
	return 0;
}

/* The store says that it ran; the box does not know it. */
static void lose_strangers(struct session *session)
{
	struct session_job *job;
	struct run_record_info info;

	LIST_FOREACH (job, &session->queue, struct session_job, node) {
		run_record_info(job->record, &info);
		if (job->resumed || info.state == RUN_RECORD_PENDING)
			continue;
		job->evidence.lost = true;
		session_job_conclude(job);
	}
}

void session_on_resumed(void *ctx, uint32_t last_id)
{
	struct session *session = ctx;

	session->last_id = last_id;
	session->pumping = true; /* not before all is sorted out */
	lose_strangers(session);
	session->pumping = false;
	session->adopting = false;
	if (session->strangers > 0)
		session_job_set_timer(session, SESSION_GRACE_US);
	session_files_go_on(session);
	session_pump(session);
}

bool session_is_new(const struct session *session)
{
	return session->adopting && session->state == SESSION_CREATING;
}

/* A box runs one at a time: whoever waits goes on. */
void session_on_forgotten(void *ctx, uint32_t exec_id attr_unused)
{
	struct session *session = ctx;

	assert(session->strangers > 0);
	if (--session->strangers > 0)
		return;
	if (!session->current)
		session_job_set_timer(session, 0);
	session_pump(session);
}

void session_kill_stranger(struct session *session)
{
	struct error err = {0};

	if (session->stranger_id == 0) {
		(void)error_set(&err, ERR_AGENT_LOST, 0, "what was killed did not end in time");
		session_box_lost(session, &err);
		return;
	}
	/* A runner that is not there any more has ended the run; its end is on its way. */
	if (box_signal(session->box, session->stranger_id, SIGKILL, &err) < 0)
		log_debug("session=%s: %s", session->id, err.msg);
	session->stranger_id = 0;
	session_job_set_timer(session, SESSION_KILL_US);
}

/* What the agent does not have of the bytes that came with the request. */
static int give_rest(const struct session_job *job, struct error *err)
{
	const struct run_request *request = job->request;
	struct box *box = job->session->box;

	if (job->stdin_ended || request->stdin_len == 0)
		return 0;
	if (job->stdin_taken < request->stdin_len &&
	    box_stdin(box, job->id, request->stdin_data + job->stdin_taken,
	              request->stdin_len - (size_t)job->stdin_taken, err) < 0)
		return -1;
	return request->stdin_open ? 0 : box_stdin_end(box, job->id, err);
}

/*
 * It runs already: it has a place among all executions without waiting for one, and those that wait
 * wait for it. STARTED comes again, and with it its clock.
 */
void session_job_resume(struct session_job *job)
{
	struct session *session = job->session;
	struct error err = {0};

	job->admitted_us = clock_us();
	job->outcome.queue_us = job->past_queue_us == COUNTER_UNKNOWN ? 0 : job->past_queue_us;
	scheduler_resume(session->service->scheduler, &job->entry, job->admitted_us);
	session_job_unqueue(job);
	job->phase = JOB_STARTING;
	session_job_set_timer(session, session->service->config.runs->config.build_timeout_us);
	if (give_rest(job, &err) < 0)
		session_fail(session, &err);
	else if (job->evidence.cancelled)
		session_job_stop(job);
}

int session_adopt_box(struct session *session, struct error *err)
{
	struct session_service *s = session->service;
	const struct box_events events = session_box_events(session);
	bool frozen = false;

	if (box_adopt(s->config.driver, &session->spec, &events, &session->box, &frozen, err) < 0)
		return -1;
	s->boxes++;
	session->adopting = true;
	/* The store may be a moment behind; the box is what it is. */
	if (frozen && session->state != SESSION_PAUSED && session->state != SESSION_CREATING) {
		session->paused_us = clock_us();
		session_set_state(session, SESSION_PAUSED);
	} else if (!frozen && session->state == SESSION_PAUSED) {
		session_set_state(session, SESSION_READY);
	}
	return 0;
}
