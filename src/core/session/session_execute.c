/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "core/config/config.h"
#include "core/language/env.h"
#include "core/language/runners.h"
#include "core/request/run_request_json.h"
#include "core/run/run_record_internal.h"
#include "core/run/run_row.h"
#include "core/session/session_internal.h"
#include "core/session/session_resume.h"
#include "wire/layer.h"

/* Whether @bytes more may wait. */
static bool has_room(const struct session *session, size_t bytes)
{
	const struct tenant *t = session->account;

	return session->service->queued_bytes + bytes <= SESSION_QUEUED_BYTES_MAX &&
	       (!t || t->queued_bytes + bytes <= SESSION_QUEUED_BYTES_OF_TENANT);
}

static void add_bytes(struct session *session, size_t bytes)
{
	session->service->queued_bytes += bytes;
	if (session->account)
		session->account->queued_bytes += bytes;
}

static void drop_bytes(struct session *session, size_t bytes)
{
	session->service->queued_bytes -= bytes;
	if (session->account)
		session->account->queued_bytes -= bytes;
}

void session_job_free(struct session_job *job)
{
	struct session_service *s = job->session->service;

	if (s) {
		drop_bytes(job->session, job->bytes);
		s->jobs--;
	}
	session_job_unqueue(job);
	gather_cancel(&job->gather);
	given_done(&job->given);
	run_request_free(job->request);
	policy_decision_done(&job->decision);
	outcome_done(&job->outcome);
	free(job);
}

void session_job_unqueue(struct session_job *job)
{
	if (job->queued)
		tenant_drop_queued(job->session->account);
	job->queued = false;
}

/* Out of the queue, or from being the current one. */
static void detach(struct session_job *job)
{
	struct session *session = job->session;

	if (session->current == job) {
		session->current = NULL;
		session_job_set_timer(session, 0);
	} else {
		list_remove(&job->node);
		session->queued--;
	}
	scheduler_out(session->service->scheduler, &job->entry, clock_us());
}

void session_job_finish(struct session_job *job)
{
	struct session *session = job->session;

	bool spent = session->mode == SESSION_EPHEMERAL && job->id != 0;

	detach(job);
	session_job_free(job);
	session_touch(session);
	if (spent)
		session_box_spent(session);
	if (session->resuming)
		session_resumed(session); /* it needs no place any more */
	session_pump(session);
	session_service_check_drained(session->service);
}

static uint64_t difference(uint64_t now, uint64_t before)
{
	if (now == COUNTER_UNKNOWN || before == COUNTER_UNKNOWN)
		return COUNTER_UNKNOWN;
	return now < before ? now : now - before;
}

/* The counters are the box's and it has run others before: what grows is told as what it grew. Of
 * one that was resumed the box remembers what it was before; where it does not, nobody does. */
static void read_counters(struct session_job *job)
{
	struct box_counters *c = &job->evidence.counters;
	struct session *session = job->session;

	memset(c, 0xff, sizeof(*c));
	if (!session->box || job->phase < JOB_STARTING)
		return;
	box_counters(session->box, COUNTERS_FOR_RESULT, c);
	c->cpu_us = difference(c->cpu_us, job->before.cpu_us);
	c->oom_kills = difference(c->oom_kills, job->before.oom_kills);
	c->pids_denied = difference(c->pids_denied, job->before.pids_denied);
	job->outcome.layers = box_layers(session->box);
	job->outcome.start = box_start(session->box);
	job->outcome.layers_missing = LAYERS_ALL & ~job->outcome.layers;
}

static void tell_changes(const struct session_job *job)
{
	const struct artifacts *made = &job->outcome.artifacts;

	for (size_t i = 0; i < made->count; i++)
		session_changed(job->session, SESSION_CHANGE_FILE, made->list[i].path);
	session_changed(job->session, SESSION_CHANGE_LOG, NULL);
}

void session_job_conclude(struct session_job *job)
{
	gather_cancel(&job->gather);
	read_counters(job);
	outcome_take_usage(&job->evidence, &job->outcome);
	if (!job->evidence.ended && job->started_us)
		job->outcome.duration_us = clock_us() - job->started_us;
	outcome_judge(&job->evidence, &job->outcome);
	session_job_ack(job);
	tell_changes(job);
	run_record_ended(job->record, &job->outcome, job->reset);
	session_job_finish(job);
}

void session_job_fail(struct session_job *job, const struct error *err)
{
	session_job_ack(job);
	run_record_failed(job->record, err);
	session_job_finish(job);
}

static void end_job(struct session_job *job, bool lost, const struct error *failure)
{
	if (failure) {
		session_job_fail(job, failure);
		return;
	}
	if (job->phase == JOB_GATHERING) {
		session_job_conclude(job); /* it had ended before */
		return;
	}
	job->evidence.lost = lost;
	job->evidence.cancelled |= !lost;
	/* With the box go the variables; those who had not begun lost nothing. */
	job->reset = lost && job->runner;
	if (!job->exec)
		session_job_conclude(job);
	else
		run_abort(job->exec); /* its own end follows, from the loop */
}

void session_end_jobs(struct session *session, bool lost, const struct error *failure)
{
	struct session_job *job;

	if (session->current)
		end_job(session->current, lost, failure);
	LIST_FOREACH (job, &session->queue, struct session_job, node)
		end_job(job, lost, failure);
}

/* An ephemeral session for which a file operation has made a box: this execution is to see it. */
static bool has_files_box(const struct session *session)
{
	return session->box && !session->box_leaving;
}

/* Who may start now, or NULL. */
static struct session_job *next_job(const struct session *session)
{
	struct session_job *job;

	if (session->current || session->adopting || session->strangers > 0 ||
	    session->service->leaving ||
	    (session->state != SESSION_READY && session->state != SESSION_RUNNING))
		return NULL;
	/* Files are to go into the box that the next execution gets: it is not there yet. */
	if (session->box_leaving && session->files_count > 0)
		return NULL;
	/* What the box has to remember for a daemon that may come is bounded. */
	if (session->unacked >= BOX_UNACKED_MAX)
		return NULL;
	job = LIST_FIRST(&session->queue, struct session_job, node);
	return job && !job->held ? job : NULL;
}

void session_pump(struct session *session)
{
	struct session_job *job;

	if (session->pumping)
		return;
	session->pumping = true;
	while ((job = next_job(session))) {
		if (!session_once_may_begin(job))
			continue;
		list_remove(&job->node);
		session->queued--;
		session->current = job;
		if (session->state == SESSION_READY)
			session_set_state(session, SESSION_RUNNING);
		if (job->resumed)
			session_job_resume(job);
		else if (session->mode == SESSION_PERSISTENT || has_files_box(session))
			session_job_start(job);
		else
			session_once_start(job);
	}
	session->pumping = false;
	if (!session->current && session->state == SESSION_RUNNING)
		session_set_state(session, SESSION_READY);
}

/* Control by way of the record. */

static int refuse_bytes(struct error *err)
{
	return error_set(err, ERR_BUSY, 0,
	                 "executions that wait have brought as many bytes as there is room for");
}

static void on_cancel(void *ctx)
{
	struct session_job *job = ctx;

	if (job->phase == JOB_GATHERING)
		return; /* it has ended by itself */
	job->evidence.cancelled = true;
	if (job->exec)
		run_abort(job->exec);
	else if (job->phase < JOB_STARTING && !job->resumed)
		session_job_conclude(job);
	else if (job->phase >= JOB_STARTING)
		session_job_stop(job); /* one that is in the box, but behind another: at its turn */
}

/* Input that comes before the start is kept, and counts as what the request itself has does. */
static int on_input(void *ctx, const void *data, size_t len, bool end, struct error *err)
{
	struct session_job *job = ctx;
	bool early = job->phase < JOB_RUNNING;
	int r;

	if (early && !has_room(job->session, len))
		return refuse_bytes(err);
	if (job->exec)
		r = run_stdin(job->exec, data, len, end, err);
	else if (job->phase < JOB_STARTING)
		r = run_request_add_stdin(job->request, data, len, end, err);
	else
		r = session_job_stdin(job, data, len, end, err);
	if (r == 0 && early) {
		job->bytes += len;
		add_bytes(job->session, len);
	}
	return r;
}

/* From a request to a job. */

static int check_state(const struct session *session, struct error *err)
{
	const struct session_service *s = session->service;

	if (s->draining)
		return error_set(err, ERR_UNAVAILABLE, 0, "the daemon is stopping");
	if (session_is_over(session))
		return error_set(err, ERR_CONFLICT, 0, "session %s is %s and runs nothing",
		                 session->id, session_state_name(session->state));
	if (session->queued >= s->config.config->session_queue)
		return error_set(err, ERR_BUSY, 0, "%zu executions of session %s are waiting",
		                 session->queued, session->id);
	return 0;
}

/* The session's limits and language, the request's all else. Borrowed. */
static struct run_request effective_request(const struct session *session,
                                            const struct run_request *request)
{
	const struct box_limits *limits = &session->spec.limits;
	struct run_request r = *request;

	if (!r.language)
		r.language = session->language;
	r.memory_bytes = limits->memory_bytes;
	r.disk_bytes = limits->workspace_bytes;
	r.cpu_millicores = limits->cpu_millicores;
	r.max_processes = limits->pids;
	r.network_asked = true;
	r.network = session->spec.network;
	r.template = session->template;
	return r;
}

static size_t bytes_of(const struct run_request *request)
{
	size_t bytes =
		request->code_len + request->stdin_len + (request->ask ? strlen(request->ask) : 0);

	for (size_t i = 0; i < request->files_count; i++)
		bytes += request->files[i].len;
	return bytes;
}

static void on_turn(void *ctx)
{
	struct session_job *job = ctx;

	if (job->session->resuming)
		session_resumed(job->session);
	else
		session_job_hand_over(job);
}

/*
 * Whether that it begins is written apart from that it was accepted. One that nobody was promised
 * is never begun again, and one that begins as soon as it is written is written as begun. In a box
 * that outlives the daemon, the box knows.
 */
static bool waits(const struct session *session, const struct run_request *request)
{
	return session->mode == SESSION_EPHEMERAL && request->durable &&
	       (session->current || session->queued > 0);
}

static struct run_record *add_record(struct session *session, const struct run_request *request,
                                     const struct policy_decision *decision)
{
	const struct store *store = session->service->config.store;
	const struct run_record_new what = {.tenant = session->tenant,
	                                    .session_id = session->id,
	                                    .request_id = request->request_id,
	                                    .key_id = request->key_id,
	                                    .language = decision->runner->name,
	                                    .code = request->code,
	                                    .code_len = request->code_len,
	                                    .exact = session->spec.keep,
	                                    .waits = waits(session, request),
	                                    .timeout_us = decision->timeout_us,
	                                    .session_ms = session->created_ms,
	                                    .request = store ? run_request_to_json(request) : NULL};

	return run_records_add(session->service->config.executions, &what);
}

static struct session_job *job_new(struct session *session, struct run_record *record,
                                   struct run_request *request, struct policy_decision *decision)
{
	struct session_job *job = NEW(struct session_job);

	list_init(&job->node);
	job->session = session;
	job->record = record;
	job->bytes = bytes_of(request);
	/* The record has the code; it is not kept twice. */
	request->code = NULL;
	request->code_len = 0;
	job->request = run_request_copy(request);
	job->decision = *decision; /* taken */
	job->entry.on_turn = on_turn;
	job->entry.ctx = job;
	job->entry.queue = session->account ? &session->account->queue : NULL;
	job->queued = true;
	job->entry.patient = true; /* one per session, and sessions are bounded */
	job->arrived_us = clock_us();
	job->left[OUTPUT_STDOUT] = job->left[OUTPUT_STDERR] = decision->output_bytes;
	job->outcome.driver = session->service->config.driver->ops->name;
	job->outcome.handler = decision->handler;
	buf_init(&job->outcome.report, decision->report_bytes);
	return job;
}

static void enqueue(struct session_job *job, bool stdin_open)
{
	struct session *session = job->session;

	add_bytes(session, job->bytes);
	session->service->jobs++;
	list_append(&session->queue, &job->node);
	session->queued++;
	run_record_set_control(job->record, on_cancel, stdin_open ? on_input : NULL, job);
}

int session_job_restore(struct session *session, struct run_record *record,
                        const struct run_request *request, struct error *err)
{
	struct run_request r = effective_request(session, request);
	struct policy_decision decision;
	struct run_record_info info;
	struct session_job *job;

	run_record_info(record, &info);
	r.code = (char *)info.code;
	r.code_len = info.code_len;
	if (policy_decide(session->service->rules, &session->stack, &r, &decision, err) < 0)
		return -1;
	(void)!tenant_take_queued(session->account, NULL); /* it was let in before */
	job = job_new(session, record, &r, &decision);
	job->past = true;
	enqueue(job, request->stdin_open);
	return 0;
}

/* It could not be written down: as if it had never been asked for. */
static void withdraw(struct session_job *job, const struct error *err)
{
	struct session *session = job->session;
	struct run_record *record = job->record;

	detach(job);
	session->executions--;
	session_job_free(job);
	run_record_withdraw(record, err);
	session_pump(session);
	session_service_check_drained(session->service);
}

static void on_stored(void *ctx, struct run_record *e, const struct error *err)
{
	struct session_job *job = ctx;

	(void)e;
	job->held = false;
	if (err)
		withdraw(job, err);
	else
		session_pump(job->session);
}

/* Nothing runs that would be forgotten with the daemon. */
static int hold_until_stored(struct session_job *job, struct error *err)
{
	if (store_execution_now(job->record, err) < 0) {
		withdraw(job, err);
		return -1;
	}
	job->held = true;
	run_record_hold(job->record, on_stored, job);
	return 0;
}

int session_execute(struct session *session, const struct run_request *request,
                    struct run_record **ret_execution, struct error *err)
{
	struct session_service *s = session->service;
	struct run_request r = effective_request(session, request);
	struct policy_decision decision;
	struct session_job *job;

	if (check_state(session, err) < 0 ||
	    policy_decide(s->rules, &session->stack, &r, &decision, err) < 0)
		return -1;
	if (!has_room(session, bytes_of(&r))) {
		policy_decision_done(&decision);
		return refuse_bytes(err);
	}
	if (tenant_take_queued(session->account, err) < 0) {
		policy_decision_done(&decision);
		return -1;
	}
	job = job_new(session, add_record(session, &r, &decision), &r, &decision);
	enqueue(job, request->stdin_open);
	session->executions++;
	session_touch(session);
	if (request->durable && s->config.store && hold_until_stored(job, err) < 0)
		return -1;
	*ret_execution = job->record;
	session_pump(session);
	return 0;
}
