/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_internal.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "core/observe/metrics.h"
#include "core/session/session_resume.h"

/*
 * Theory of operation. The box speaks of ids: of the current job, of a runner, or of something that
 * is no longer of interest (the runner of a run that was lost with it, a run whose job was given
 * up). The third kind is ignored: the link has checked that the agent may say it.
 */

struct session_runner *session_runner_of(struct session *session, const struct runner *language)
{
	struct session_runner *runner;

	LIST_FOREACH (runner, &session->runners, struct session_runner, node)
		if (runner->language == language)
			return runner;
	return NULL;
}

static struct session_runner *runner_with(struct session *session, uint32_t id)
{
	struct session_runner *runner;

	LIST_FOREACH (runner, &session->runners, struct session_runner, node)
		if (runner->id == id)
			return runner;
	return NULL;
}

/* The job in the box that @id is of, or NULL. */
static struct session_job *job_with(const struct session *session, uint32_t id)
{
	struct session_job *job = session->current;

	return job && job->phase >= JOB_STARTING && job->id == id ? job : NULL;
}

static void on_ready(void *ctx)
{
	struct session *session = ctx;

	if (session->state != SESSION_CREATING)
		return;
	session_touch(session);
	metrics_observe(session->service->config.metrics, METRIC_COLD_START,
	                (double)(session->active_us - session->created_us) / 1e6);
	session_set_state(session, SESSION_READY);
	session_pump(session);
}

static void on_started(void *ctx, uint32_t id)
{
	struct session_job *job = job_with(ctx, id);

	session_prove(ctx);
	if (job)
		session_job_started(job);
}

/* The agent keeps the same limit; it is not trusted to. */
static void on_output(void *ctx, uint32_t id, enum output_stream stream, const char *data,
                      size_t len)
{
	struct session_job *job = job_with(ctx, id);
	bool is_err = stream == OUTPUT_STDERR;
	size_t kept;

	if (!job)
		return;
	kept = len < job->left[stream] ? len : job->left[stream];
	job->left[stream] -= kept;
	*(is_err ? &job->outcome.stderr_bytes : &job->outcome.stdout_bytes) += len;
	if (kept < len)
		*(is_err ? &job->evidence.err_truncated : &job->evidence.out_truncated) = true;
	if (kept > 0)
		run_record_add_output(job->record, stream, data, kept);
	if (kept < len && job->decision.kill_on_overflow && job->phase == JOB_RUNNING)
		session_job_stop(job);
}

static void on_report(void *ctx, uint32_t id, const char *data, size_t len)
{
	struct session_job *job = job_with(ctx, id);

	/* More than was allowed does not come through the link; half a report would be none. */
	if (job && buf_add(&job->outcome.report, data, len) < 0)
		buf_reset(&job->outcome.report);
}

/* Of the run, or of the runner while it does one. */
static void on_denial(void *ctx, uint32_t id, const char *what, uint64_t count)
{
	const struct session *session = ctx;
	struct session_job *job = session->current;

	if (job && (job->id == id || (job->runner && job->runner_id == id)))
		outcome_add_syscall(&job->outcome, what, count);
}

/*
 * A run that was answered after its runner had been killed lost its runner all the same: the kill
 * is on its way.
 */
static void judge_runner(struct session_job *job, const struct exec_facts *facts)
{
	if (!job->runner || (!facts->runner_lost && job->phase != JOB_KILLING))
		return;
	job->reset = true;
	if (job->runner->id == job->runner_id)
		job->runner->id = 0;
}

/* One that has run nothing has no variables to lose. */
static void lose_runner(struct session_runner *runner)
{
	runner->id = 0;
	runner->reset_due = !runner->unused;
	runner->unused = false;
}

/* The runner was killed as the run came, and has not taken it: another one can do it. Once, and
 * only if nobody's code was in that process, which could have looked at the run and left it where
 * it was. */
static bool can_begin_again(const struct session_job *job)
{
	return job->runner && job->was_unused && job->phase == JOB_RUNNING && !job->retried &&
	       !job->resumed && !job->stdin_late && job->session->state == SESSION_RUNNING;
}

static void begin_again(struct session_job *job)
{
	struct session_runner *runner = job->runner;

	session_log(job->session, LOG_LEVEL_DEBUG, "its runner ended before it took the run");
	job->retried = true;
	if (runner->id == job->runner_id)
		runner->id = 0;
	box_ack(job->session->box, job->id);
	session_job_hand_over(job);
}

static void on_done(void *ctx, uint32_t id, const struct exec_facts *facts)
{
	struct session *session = ctx;
	struct session_job *job = job_with(session, id);
	struct session_runner *runner;

	if (job && facts->untaken && can_begin_again(job)) {
		begin_again(job);
		return;
	}
	if (job) {
		outcome_take_facts(facts, job->decision.output_bytes, &job->evidence,
		                   &job->outcome);
		judge_runner(job, facts);
		session_job_gather(job, facts->changed_since_ns);
		return;
	}
	runner = runner_with(session, id);
	if (!runner) {
		/* What it took along has been told with the run that lost it. */
		box_ack(session->box, id);
		return;
	}
	session_log(session, LOG_LEVEL_DEBUG, "its runner ended by itself");
	runner->dead_id = runner->id;
	lose_runner(runner);
}

/* Its end was told before, or is about to be: the agent could not give it the run. */
static bool has_lost_runner(const struct session_job *job, const struct error *err)
{
	return job->runner->id != job->runner_id || err->sys == EPIPE || err->sys == ECONNRESET;
}

/* The runner died before it could take the run: another one can. Once. */
static bool can_retry(const struct session_job *job, const struct error *err)
{
	return job->runner && has_lost_runner(job, err) && !job->retried &&
	       !error_is_set(&job->failure) && job->phase == JOB_STARTING;
}

static void on_job_failed(struct session_job *job, const struct error *err)
{
	struct error failure = error_is_set(&job->failure) ? job->failure : *err;

	if (can_retry(job, err)) {
		job->retried = true;
		if (job->runner->id == job->runner_id)
			lose_runner(job->runner);
		box_ack(job->session->box, job->id);
		session_job_hand_over(job);
	} else if (job->evidence.cancelled) {
		session_job_conclude(job);
	} else {
		session_job_fail(job, &failure);
	}
}

static void on_exec_failed(void *ctx, uint32_t id, const struct error *err)
{
	struct session *session = ctx;
	struct session_job *job = job_with(session, id);
	struct session_runner *runner;

	if (job) {
		on_job_failed(job, err);
		return;
	}
	box_ack(session->box, id);
	runner = runner_with(session, id);
	if (!runner)
		return;
	runner->id = 0;
	/* The run that was handed over behind it fails too, and says why. */
	if (session->current && session->current->runner == runner)
		session->current->failure = *err;
}

/* The execution of an ephemeral session takes the box with it (session_job_finish). */
void session_box_lost(struct session *session, const struct error *err)
{
	struct session_job *job = session->current;

	if (session->mode == SESSION_PERSISTENT) {
		session_fail(session, err);
		return;
	}
	if (job && job->phase >= JOB_STARTING && !job->exec) {
		job->evidence.lost = job->started_us > 0;
		if (job->started_us)
			session_job_conclude(job);
		else
			session_job_fail(job, err);
	}
	session_box_spent(session);
}

static void on_lost(void *ctx, const struct error *err)
{
	struct session *session = ctx;

	session_log(session, LOG_LEVEL_DEBUG, "lost its box: %s", err->msg);
	if (session_replace_box(session) || session_remake_box(session))
		return;
	session_box_lost(session, err);
}

/* Not where the daemon leaves: the next one does. */
static bool is_remade(const struct session *session)
{
	return session->mode == SESSION_PERSISTENT && session->box_leaving && session->service &&
	       !session->service->leaving && !session_is_over(session);
}

static void on_gone(void *ctx)
{
	struct session *session = ctx;
	struct session_service *s = session->service;

	session->box = NULL;
	if (is_remade(session)) {
		s->boxes--;
		session_remade(session);
		return;
	}
	session_prove(session);
	session_drop_acks(session);
	if (s) {
		s->boxes--;
		session_owner_drop_box(session);
		session_service_check_drained(s);
	}
	session_leave_root(session);
	if (session->mode == SESSION_EPHEMERAL && session->box_leaving && s &&
	    !session_is_over(session)) {
		session_files_go_on(session);
		session_pump(session);
	}
	session_reap(session);
}

struct box_events session_box_events(struct session *session)
{
	return (struct box_events){
		.ctx = session,
		.on_ready = on_ready,
		.on_started = on_started,
		.on_output = on_output,
		.on_report = on_report,
		.on_denial = on_denial,
		.on_done = on_done,
		.on_exec_failed = on_exec_failed,
		.on_lost = on_lost,
		.on_gone = on_gone,
		.on_resume = session_on_resume,
		.on_resumed = session_on_resumed,
		.on_forgotten = session_on_forgotten,
	};
}
