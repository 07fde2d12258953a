/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_reattach.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/run/run_record_internal.h"
#include "core/session/session_beside.h"
#include "io/loop.h"

/*
 * Theory of operation. The box knows what happened while there was no daemon, the store knows the
 * requests. Labels connect them: a runner's is its language, a run's starts with its id.
 *
 * The agent describes its programs (session_on_reattach), then repeats all events in order. Until
 * then the store's unfinished runs wait in the queue: those described are in the box
 * (run.reattached), the others never were. Because of the order, a reattached run is current when
 * its events come.
 *
 * A paused box sends nothing until it is thawed.
 */

static struct run *run_labelled(struct session *session, const char *id)
{
	struct run *run;

	LIST_FOREACH (run, &session->queue, struct run, queue_node)
		if (str_equal(run->record->id, id))
			return run;
	return session_beside_labelled(session, id);
}

static int reattach_runner(struct session *session, const struct box_resumed *what)
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
	/* The latest: an earlier one's end is repeated, too. */
	if (what->id > runner->id)
		runner->id = what->id;
	return 0;
}

static void take_description(struct run *run, const struct box_resumed *what,
                             const struct session_label *label, struct box_grant *ret_grant)
{
	run->reattached = true;
	run->id = what->id;
	run->runner_id = what->runner;
	run->runner = what->runner ? session_runner_of(run->owner, run->decision.runner) : NULL;
	run->stdin_taken = what->stdin_bytes;
	run->stdin_ended = !what->stdin_open;
	run->before = label->before;
	run->past_queue_us = label->queue_us;
	ret_grant->stdout_max = ret_grant->stderr_max = run->decision.output_bytes + 1;
	ret_grant->report_max = run->beside ? 0 : (uint32_t)run->decision.report_bytes;
	ret_grant->terminal = run->terminal;
}

int session_on_reattach(void *ctx, const struct box_resumed *what, struct box_grant *ret_grant)
{
	struct session *session = ctx;
	struct session_label label;
	struct error err = {0};
	struct run *run;

	if (what->keep)
		return reattach_runner(session, what);
	session_label_read(what->label, &label);
	run = run_labelled(session, label.id);
	if (run) {
		take_description(run, what, &label, ret_grant);
		return 0;
	}
	/* Its end was recorded, or its acceptance was not: it may still run, without a deadline.
	 * Harmless if it has ended. */
	ret_grant->forget = true;
	session->unknown_runs++;
	/* Several processes may be unknown, and none has variables to keep: kill each at once. */
	if (what->runner)
		session->unknown_id = what->runner;
	if (box_signal(session->box, what->id, what->runner ? SIGINT : SIGKILL, &err) < 0)
		log_debug("session=%s: %s", session->id, err.msg);
	return 0;
}

/* Running according to the store, unknown to the box. */
static void lose_undescribed(struct list *runs)
{
	struct run *run;

	LIST_FOREACH (run, runs, struct run, queue_node) {
		if (run->reattached || run->record->state == RUN_RECORD_PENDING)
			continue;
		run->evidence.lost = true;
		run_conclude(run);
	}
}

static void on_unknown_timer(void *ctx)
{
	struct session *session = ctx;
	struct error err = {0};

	if (session->unknown_runs == 0 || !session->box)
		return;
	if (session->unknown_id == 0) {
		(void)error_set(&err, ERR_AGENT_LOST, 0, "what was killed did not end in time");
		session_box_lost(session, &err);
		return;
	}
	/* If the runner is gone, its run's end is on its way. */
	if (box_signal(session->box, session->unknown_id, SIGKILL, &err) < 0)
		log_debug("session=%s: %s", session->id, err.msg);
	session->unknown_id = 0;
	timer_start(session->unknown_timer, RUN_KILL_US);
}

void session_on_reattached(void *ctx, uint32_t last_id)
{
	struct session *session = ctx;

	session->last_id = last_id;
	session->pumping = true; /* until all is sorted out */
	lose_undescribed(&session->queue);
	lose_undescribed(&session->beside);
	session->pumping = false;
	session->reattaching = false;
	if (session->unknown_runs > 0) {
		session->unknown_timer =
			timer_new(session->service->config.loop, on_unknown_timer, session);
		timer_start(session->unknown_timer,
		            session->unknown_id ? RUN_GRACE_US : RUN_KILL_US);
	}
	session_files_go_on(session);
	session_pump(session);
}

bool session_is_new(const struct session *session)
{
	return session->reattaching && session->state == SESSION_CREATING;
}

/* A box runs one at a time: the next may start. */
void session_on_forgotten(void *ctx, uint32_t exec_id attr_unused)
{
	struct session *session = ctx;

	assert(session->unknown_runs > 0);
	if (--session->unknown_runs > 0)
		return;
	/* NULL until all runs are described; the link passes no end before that. */
	if (session->unknown_timer)
		timer_stop(session->unknown_timer);
	session_pump(session);
}

/* Send the stdin that the agent lacks. */
static int give_rest(const struct run *run, struct error *err)
{
	const struct run_request *request = run->request;

	if (run->stdin_ended || request->stdin_len == 0)
		return 0;
	if (run->stdin_taken < request->stdin_len &&
	    box_stdin(run->box, run->id, request->stdin_data + run->stdin_taken,
	              request->stdin_len - (size_t)run->stdin_taken, err) < 0)
		return -1;
	return request->stdin_open ? 0 : box_stdin_end(run->box, run->id, err);
}

/* Already running, so admitted without waiting. The agent repeats STARTED, which starts its
 * clock. */
void session_reattach_run(struct run *run)
{
	struct session *session = run->owner;
	struct error err = {0};

	run->box = session->box;
	run_reattach(run);
	if (give_rest(run, &err) < 0)
		session_fail(session, &err);
	else if (run->evidence.cancelled)
		run_abort(run);
}

int session_reattach(struct session *session, struct error *err)
{
	struct session_service *s = session->service;
	const struct box_events events = session_box_events(session);
	bool frozen = false;

	if (box_adopt(s->config.driver, &session->spec, &events, &session->box, &frozen, err) < 0)
		return -1;
	s->boxes++;
	session->reattaching = true;
	/* The store may lag behind the box. Only a session that was ready is paused. */
	if (frozen && session->state == SESSION_CREATING)
		session_set_state(session, SESSION_READY);
	if (frozen && session->state != SESSION_PAUSED) {
		session->paused_us = clock_us();
		session_set_state(session, SESSION_PAUSED);
	} else if (!frozen && session->state == SESSION_PAUSED) {
		session_set_state(session, SESSION_READY);
	}
	return 0;
}
