/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_internal.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "core/observe/metrics.h"
#include "core/session/session_reattach.h"

/*
 * Theory of operation. Events of the box name an id: of the current run, of a runner, or of one
 * that is over (a runner that was lost with its run, a run that was given up). The third kind is
 * ignored; the link has checked that the agent may send it.
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

/* The run in the box that has @id, or NULL. */
static struct run *run_with(const struct session *session, uint32_t id)
{
	struct run *run = session->current;

	return run && run->place == &session_place && run->state >= RUN_STARTING && run->id == id
	               ? run
	               : NULL;
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
	struct session *session = ctx;
	struct run *run = run_with(session, id);

	if (session->unproven)
		session_prove(session);
	if (!run)
		return;
	if (run->runner && run->runner->id == run->runner_id) {
		run->runner_unused = run->runner->unused;
		run->runner->unused = false;
	}
	/* A runner that ran other code before could have looked at this run and left it. */
	run->repeatable &= run->runner_unused;
	run_started(run);
}

static void on_output(void *ctx, uint32_t id, enum output_stream stream, const char *data,
                      size_t len)
{
	struct run *run = run_with(ctx, id);

	if (run)
		run_add_output(run, stream, data, len);
}

static void on_report(void *ctx, uint32_t id, const char *data, size_t len)
{
	struct run *run = run_with(ctx, id);

	if (run)
		run_add_report(run, data, len);
}

/* Of the run, or of the runner during one. */
static void on_denial(void *ctx, uint32_t id, const char *what, uint64_t count)
{
	const struct session *session = ctx;
	struct run *run = session->current;

	if (run && run->place == &session_place &&
	    (run->id == id || (run->runner && run->runner_id == id)))
		run_add_denial(run, what, count);
}

/* One that has run nothing has no variables to lose. */
static void lose_runner(struct session_runner *runner)
{
	runner->id = 0;
	runner->reset_due = !runner->unused;
	runner->unused = false;
}

static void begin_again(struct run *run)
{
	struct session *session = run->owner;

	session_log(session, LOG_LEVEL_DEBUG, "its runner ended before it took the run");
	run->retried = true;
	box_ack(session->box, run->id);
	run_hand_over(run);
}

/* The runner, which had run nothing before, was killed before it took the run. */
static bool begin_untaken_again(struct run *run)
{
	const struct session *session = run->owner;

	if (!run->repeatable || !run->runner_unused || run->state != RUN_RUNNING ||
	    session->state != SESSION_RUNNING)
		return false;
	if (run->runner->id == run->runner_id)
		run->runner->id = 0;
	begin_again(run);
	return true;
}

static void on_runner_ended(struct session *session, uint32_t id)
{
	struct session_runner *runner = runner_with(session, id);

	if (!runner) {
		/* The run that was lost with it has reported that. */
		box_ack(session->box, id);
		return;
	}
	session_log(session, LOG_LEVEL_DEBUG, "its runner ended by itself");
	runner->dead_id = runner->id;
	lose_runner(runner);
}

static void on_done(void *ctx, uint32_t id, const struct exec_facts *facts)
{
	struct session *session = ctx;
	struct run *run = run_with(session, id);

	if (!run) {
		on_runner_ended(session, id);
		return;
	}
	if (facts->untaken && begin_untaken_again(run))
		return;
	/* A run that ended after its runner had been killed lost it all the same: the kill is on
	 * its way. */
	if (run->runner && (facts->runner_lost || run->state == RUN_KILLING)) {
		run->reset = true;
		if (run->runner->id == run->runner_id)
			run->runner->id = 0;
	}
	run_done(run, facts, &session->seen);
}

/* The runner died before it could take the run: its end was reported before, or is about to be. */
static bool begin_failed_again(struct run *run, const struct error *err)
{
	struct session_runner *runner = run->runner;
	bool lost = runner &&
	            (runner->id != run->runner_id || err->sys == EPIPE || err->sys == ECONNRESET);

	if (!lost || !run->repeatable || error_is_set(&runner->failure) ||
	    run->state != RUN_STARTING)
		return false;
	if (runner->id == run->runner_id)
		lose_runner(runner);
	begin_again(run);
	return true;
}

static void on_run_failed(struct run *run, const struct error *err)
{
	const struct session_runner *runner = run->runner;

	if (begin_failed_again(run, err))
		return;
	if (run->evidence.cancelled)
		run_conclude(run);
	else
		run_fail(run, runner && error_is_set(&runner->failure) ? &runner->failure : err);
}

static void on_exec_failed(void *ctx, uint32_t id, const struct error *err)
{
	struct session *session = ctx;
	struct run *run = run_with(session, id);
	struct session_runner *runner;

	if (run) {
		on_run_failed(run, err);
		return;
	}
	box_ack(session->box, id);
	runner = runner_with(session, id);
	if (!runner)
		return;
	runner->id = 0;
	runner->failure = *err; /* for the run that was handed over behind it, and fails too */
}

/* The run of an ephemeral session takes the box with it. */
void session_box_lost(struct session *session, const struct error *err)
{
	struct run *run = session->current;
	bool pumping = session->pumping;

	if (session->mode == SESSION_PERSISTENT) {
		session_fail(session, err);
		return;
	}
	session->pumping = true; /* the next run must not go into this box */
	if (run && run->place == &session_place) {
		run->evidence.lost = run->state != RUN_GATHERING;
		if (run->started_us)
			run_conclude(run);
		else
			run_fail(run, err);
	}
	session_box_spent(session);
	session->pumping = pumping;
	session_pump(session);
}

static void on_lost(void *ctx, const struct error *err)
{
	struct session *session = ctx;

	session_log(session, LOG_LEVEL_DEBUG, "lost its box: %s", err->msg);
	if (session_replace_box(session) || session_remake_box(session))
		return;
	session_box_lost(session, err);
}

static void on_box_gone(void *ctx)
{
	struct session *session = ctx;
	struct session_service *s = session->service;
	bool goes_on = s && session->box_leaving && !session_is_over(session);

	session->box = NULL;
	/* Not if the daemon is leaving: the next one does it. */
	if (goes_on && session->mode == SESSION_PERSISTENT && !s->leaving) {
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
	if (goes_on && session->mode == SESSION_EPHEMERAL) {
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
		.on_gone = on_box_gone,
		.on_resume = session_on_reattach,
		.on_resumed = session_on_reattached,
		.on_forgotten = session_on_forgotten,
	};
}
