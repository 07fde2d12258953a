/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_beside.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/run/run_record_internal.h"
#include "core/session/session_reattach.h"

/*
 * Theory of operation. A run beside the queue is a run like any other, in the session's box, in a
 * process of its own: it has a record, a deadline and limits. It does not wait for the queue and
 * does not make the session RUNNING, but the session is not idle while it has one. It waits only
 * for the box: to be made, resumed, or described after a restart.
 *
 * It takes no place in the scheduler: it may wait for hours, and what waits holds nothing that
 * others need. SESSION_BESIDE_MAX, the limits of the box and the number of sessions bound them.
 *
 * All of them are in session.beside from their acceptance to their end.
 */

int session_beside_check(const struct session *session, const struct run_request *request,
                         struct error *err)
{
	const char *field = request->tty_rows > 0 ? "tty" : "background";

	if (!session_mode_has_box(session->mode))
		return error_field(err, field,
		                   "needs a session of mode workspace or persistent: this one "
		                   "has no box that stays");
	if (request->ask)
		return error_field(err, field, "cannot be combined with a handler");
	if (session->beside_count >= SESSION_BESIDE_MAX)
		return error_set(
			err, ERR_BUSY, 0,
			"%d executions run in the background of session %s: cancel one, or "
			"wait until one ends",
			SESSION_BESIDE_MAX, session->id);
	return 0;
}

uint64_t session_beside_left(const struct session *session)
{
	uint64_t end = session->created_us + session->lifetime_us, now = clock_us();

	return end > now ? end - now : 1;
}

static int resize(void *ctx, uint16_t rows, uint16_t cols, struct error *err)
{
	return run_resize(ctx, rows, cols, err);
}

static int send_signal(void *ctx, int signo, struct error *err)
{
	struct run *run = ctx;

	if (!run->beside)
		return error_set(err, ERR_CONFLICT, 0,
		                 "execution %s is not in the background: only cancel it",
		                 run->record->id);
	return run_signal(run, signo, err);
}

static void allow_output(void *ctx)
{
	run_allow_output(ctx);
}

static size_t unread(void *ctx)
{
	return run_unread(ctx);
}

const struct run_control session_run_control = {resize, send_signal, allow_output, unread};

void session_beside_add(struct session *session, struct run *run)
{
	const struct run_request *request = run->request;
	struct run_record *record = run->record;

	run->beside = record->background = true;
	run->terminal = request->tty_rows > 0;
	if (run->terminal) {
		/* The box repeats none of it. */
		record->exact = false;
		record->rolling = run->decision.output_bytes < RUN_RECORD_ROLLING_MAX
		                          ? (size_t)run->decision.output_bytes
		                          : RUN_RECORD_ROLLING_MAX;
	}
	list_append(&session->beside, &run->queue_node);
	session->beside_count++;
	session->service->beside++;
	session->service->terminals += run->terminal;
}

void session_beside_remove(struct run *run)
{
	struct session *session = run->owner;

	run_beside_forget(run);
	list_remove(&run->queue_node);
	session->beside_count--;
	session->service->beside--;
	session->service->terminals -= run->terminal;
	/* Its idle time begins. */
	if (session->beside_count == 0)
		session_arm(session);
}

/* NULL: none may start. */
static struct run *next_run(const struct session *session)
{
	struct run *run;
	bool full = session->unknown_runs > 0 || session->unacked >= BOX_UNACKED_MAX;

	if (session->reattaching || session->service->leaving || !session->box ||
	    session->box_leaving ||
	    (session->state != SESSION_READY && session->state != SESSION_RUNNING))
		return NULL;
	/* One that is in the box gets its events now, whatever else is there. */
	LIST_FOREACH (run, &session->beside, struct run, queue_node)
		if (run->state == RUN_QUEUED && !run->held && (!full || run->reattached))
			return run;
	return NULL;
}

static void start_run(struct run *run)
{
	const struct session *session = run->owner;

	if (run->reattached) {
		session_reattach_run(run);
		return;
	}
	run->place = &session_place;
	run->box = session->box;
	run_launch(run);
}

void session_beside_pump(struct session *session)
{
	struct run *run;

	while ((run = next_run(session)))
		start_run(run);
}

static bool is_inside(const struct run *run)
{
	return run->state >= RUN_STARTING && run->state < RUN_ENDED;
}

struct run *session_beside_with(const struct session *session, uint32_t id)
{
	struct run *run;

	LIST_FOREACH (run, &session->beside, struct run, queue_node)
		if (run->state >= RUN_STARTING && run->id == id)
			return run;
	return NULL;
}

struct run *session_beside_labelled(const struct session *session, const char *id)
{
	struct run *run;

	LIST_FOREACH (run, &session->beside, struct run, queue_node)
		if (str_equal(run->record->id, id))
			return run;
	return NULL;
}

size_t session_beside_others(const struct run *run, struct run **ret_runs, size_t max)
{
	const struct session *session = run->owner;
	struct run *other = session ? session->current : NULL;
	size_t count = 0;

	if (!session)
		return 0;
	if (other && other != run && other->box == run->box && is_inside(other))
		ret_runs[count++] = other;
	LIST_FOREACH (other, &session->beside, struct run, queue_node)
		if (other != run && other->box == run->box && is_inside(other) && count < max)
			ret_runs[count++] = other;
	return count;
}

bool session_beside_is_stopping(const struct session *session)
{
	struct run *run;

	LIST_FOREACH (run, &session->beside, struct run, queue_node)
		if (run->state >= RUN_STOPPING)
			return true;
	return false;
}

char **session_beside_ids(const struct session *session)
{
	char **ids = xcalloc(session->beside_count + 1, sizeof(*ids));
	struct run *run;
	size_t n = 0;

	LIST_FOREACH (run, &session->beside, struct run, queue_node)
		if (n < session->beside_count)
			ids[n++] = xstrdup(run->record->id);
	return ids;
}

void session_beside_freeze(struct session *session)
{
	struct run *run;

	LIST_FOREACH (run, &session->beside, struct run, queue_node)
		if (run->state >= RUN_STARTING)
			run_freeze(run);
}

void session_beside_thaw(struct session *session, uint64_t paused_us)
{
	struct run *run;

	LIST_FOREACH (run, &session->beside, struct run, queue_node)
		if (run->state >= RUN_STARTING || run->record->state == RUN_RECORD_RUNNING)
			run_thaw(run, paused_us);
}

static struct run *next_stop(const struct session *session)
{
	struct run *run;

	LIST_FOREACH (run, &session->beside, struct run, queue_node)
		if (run->stop_due)
			return run;
	return NULL;
}

/* An agent that cannot be signalled is lost, with all of them: search again after each. */
void session_beside_stop_due(struct session *session)
{
	struct run *run;

	while (!session_is_over(session) && (run = next_stop(session))) {
		run->stop_due = false;
		if (run->state == RUN_STARTING || run->state == RUN_RUNNING)
			run_interrupt(run);
	}
}

bool session_beside_may_move(const struct session *session)
{
	struct run *run;

	LIST_FOREACH (run, &session->beside, struct run, queue_node)
		if (run->state > RUN_STARTING)
			return false;
	return true;
}

void session_beside_move(struct session *session)
{
	cleanup_str_list char **ids = session_beside_ids(session);

	for (char **id = ids; *id; id++) {
		struct run *run = session_beside_labelled(session, *id);

		if (!run)
			continue;
		run->box = session->box;
		if (run->state == RUN_STARTING && run->box)
			run_hand_over(run);
	}
}

void session_beside_cancel(struct session *session)
{
	cleanup_str_list char **ids = session_beside_ids(session);

	for (char **id = ids; *id; id++) {
		struct run *run = session_beside_labelled(session, *id);
		struct error err = {0};

		if (run)
			(void)!run_record_cancel(run->record, &err); /* it may have ended */
	}
}

void session_beside_stop_clocks(struct session *session)
{
	struct run *run;

	LIST_FOREACH (run, &session->beside, struct run, queue_node)
		run_stop_clock(run);
}
