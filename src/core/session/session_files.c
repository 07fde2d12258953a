/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_files.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/session/session_build.h"
#include "core/session/session_internal.h"
#include "core/session/session_reattach.h"
#include "core/tenant/tenant.h"
#include "io/loop.h"

/*
 * Theory of operation. An operation belongs to its session and goes to the session's box at once;
 * the link queues it until the agent is ready. It waits here in two cases: an ephemeral session's
 * box is going down with a run, and the next is not made yet; or the box is an earlier daemon's
 * that may never have been ready (session_is_new).
 */

struct file_op {
	struct list node; /* session.files */
	struct session *session;
	struct box_file_events events;
	struct box_file_request request; /* its strings are owned */
	struct box_file *file;           /* NULL: waits for a box */
	bool ended;
	struct timer *timer; /* owned; fires if nothing moves */
	uint64_t moved_us;
};

static void op_free(struct file_op *op)
{
	struct session *session = op->session;

	list_remove(&op->node);
	session->files_count--;
	timer_free(op->timer);
	free((char *)(uintptr_t)op->request.path);
	free((char *)(uintptr_t)op->request.to);
	free(op);
	session_touch(session);
	if (!session_is_over(session))
		session_arm(session);
}

static void note_progress(struct file_op *op)
{
	op->moved_us = clock_us();
}

static void on_entry(void *ctx, const struct box_file_entry *entry)
{
	struct file_op *op = ctx;

	note_progress(op);
	op->events.on_entry(op->events.ctx, entry);
}

static void on_data(void *ctx, const char *data, size_t len)
{
	struct file_op *op = ctx;

	note_progress(op);
	op->events.on_data(op->events.ctx, data, len);
}

static void on_room(void *ctx)
{
	struct file_op *op = ctx;

	note_progress(op);
	op->events.on_room(op->events.ctx);
}

/* For an archive, only its directory is reported. */
static void report_change(const struct file_op *op)
{
	static const bool changes[BOX_FILE_OP_COUNT] = {
		[BOX_FILE_WRITE] = true,  [BOX_FILE_MKDIR] = true, [BOX_FILE_MOVE] = true,
		[BOX_FILE_REMOVE] = true, [BOX_FILE_UNTAR] = true,
	};

	if (!changes[op->request.op])
		return;
	session_changed(op->session, SESSION_CHANGE_FILE, op->request.path);
	if (op->request.op == BOX_FILE_MOVE)
		session_changed(op->session, SESSION_CHANGE_FILE, op->request.to);
}

static void on_done(void *ctx, const struct box_file_summary *summary)
{
	const struct box_file_events events = ((struct file_op *)ctx)->events;

	report_change(ctx);
	session_prove(((struct file_op *)ctx)->session);
	op_free(ctx);
	events.on_done(events.ctx, summary);
}

static void on_failed(void *ctx, const struct error *err)
{
	const struct box_file_events events = ((struct file_op *)ctx)->events;

	op_free(ctx);
	events.on_failed(events.ctx, err);
}

static void fail_op(struct file_op *op, const struct error *err)
{
	if (op->file)
		box_file_cancel(TAKE_PTR(op->file));
	on_failed(op, err);
}

static void on_stall(void *ctx)
{
	struct file_op *op = ctx;
	uint64_t due = op->moved_us + FILES_STALL_US, now = clock_us();
	struct error err = {0};

	if (now < due) {
		timer_start(op->timer, due - now);
		return;
	}
	(void)error_set(&err, ERR_TIMEOUT, 0, "nothing moved for %llu seconds",
	                FILES_STALL_US / USEC_PER_SEC);
	fail_op(op, &err);
}

static int make_box(struct session *session, struct error *err)
{
	struct session_service *s = session->service;
	uint64_t bytes = session->spec.limits.memory_bytes;

	if (!session_service_has_box(s))
		return error_set(err, ERR_BUSY, 0,
		                 "sessions have %zu boxes, and may have no more: end one",
		                 s->boxes);
	if (tenant_take_memory(session->account, s->scheduler, bytes, err) < 0)
		return -1;
	session->held_bytes = bytes;
	box_spec_make_id(session->spec.id);
	if (session_build_box(session, err) == 0)
		return 0;
	session_owner_drop_box(session);
	return -1;
}

static int submit_op(struct file_op *op, struct error *err)
{
	const struct box_file_events events = {
		.ctx = op,
		.on_entry = on_entry,
		.on_data = on_data,
		.on_room = on_room,
		.on_done = on_done,
		.on_failed = on_failed,
	};
	struct session *session = op->session;

	/* A box that may be dead gets nothing: session_files_go_on submits it. */
	if (session->box_leaving || session_is_new(session))
		return 0;
	if (!session->box && !session_awaits_box(session) && make_box(session, err) < 0)
		return -1;
	if (session_awaits_box(session))
		return 0;
	return box_file_open(session->box, &op->request, &events, &op->file, err);
}

/* Its writer was refused: on_room makes it retry. */
static void submit_late(struct file_op *op)
{
	struct error err = {0};

	if (submit_op(op, &err) < 0) {
		fail_op(op, &err);
		return;
	}
	if (!op->file) /* the box is yet to be built */
		return;
	note_progress(op);
	if (op->ended)
		box_file_end(op->file);
	else if (op->request.op == BOX_FILE_WRITE || op->request.op == BOX_FILE_UNTAR)
		op->events.on_room(op->events.ctx);
}

static struct file_op *first_waiting(struct session *session)
{
	struct file_op *op;

	/* The analyzer does not see that ended ones leave the list. */
	LIST_FOREACH (op, &session->files, struct file_op, node) // NOLINT
		if (!op->file)                                   // NOLINT
			return op;
	return NULL;
}

void session_files_go_on(struct session *session)
{
	struct file_op *op;

	session->box_leaving = false;
	/* Not LIST_FOREACH: any may end any other. */
	while (!session_awaits_box(session) && (op = first_waiting(session)))
		submit_late(op);
}

void session_files_end(struct session *session, const struct error *err)
{
	struct file_op *op;

	while ((op = LIST_FIRST(&session->files, struct file_op, node)))
		fail_op(op, err); // NOLINT: as above
}

void session_files_drop(struct session *session)
{
	struct file_op *op;

	while ((op = LIST_FIRST(&session->files, struct file_op, node)))
		file_cancel(op); // NOLINT: as above
}

void session_box_spent(struct session *session)
{
	struct error err = {0};

	if (!session->box || session->box_leaving)
		return;
	(void)error_set(&err, ERR_CONFLICT, 0,
	                "the box of an ephemeral session ends with its execution");
	/* First: a callback may open another file, which must not go to this box. */
	session->box_leaving = true;
	session_files_end(session, &err);
	box_destroy(session->box);
}

static int check_session(const struct session *session, struct error *err)
{
	if (session->service->draining)
		return error_stopping(err);
	if (session_is_over(session) || session->state == SESSION_PAUSED)
		return error_set(err, ERR_CONFLICT, 0,
		                 "session %s is %s: its files are not available", session->id,
		                 session_state_name(session->state));
	if (session->files_count == FILES_PER_SESSION)
		return error_later(err, ERR_BUSY, ERROR_SOON_US,
		                   "session %s has %d file operations at a time", session->id,
		                   FILES_PER_SESSION);
	return 0;
}

int file_open(struct session *session, const struct box_file_request *request,
              const struct box_file_events *events, struct file_op **ret_op, struct error *err)
{
	struct file_op *op;

	if (check_session(session, err) < 0)
		return -1;
	op = NEW(struct file_op);
	op->session = session;
	op->events = *events;
	op->request = *request;
	op->request.path = xstrdup(request->path ? request->path : "");
	op->request.to = xstrdup(request->to ? request->to : "");
	op->timer = timer_new(session->service->config.loop, on_stall, op);
	list_append(&session->files, &op->node);
	session->files_count++;
	session_touch(session);
	note_progress(op);
	if (submit_op(op, err) < 0) {
		op_free(op);
		return -1;
	}
	timer_start(op->timer, FILES_STALL_US);
	*ret_op = op;
	return 0;
}

size_t file_write(struct file_op *op, const char *data, size_t len)
{
	note_progress(op);
	return op->file ? box_file_write(op->file, data, len) : 0;
}

void file_end(struct file_op *op)
{
	op->ended = true;
	note_progress(op);
	if (op->file)
		box_file_end(op->file);
}

void file_grant(struct file_op *op, size_t bytes)
{
	note_progress(op);
	if (op->file)
		box_file_grant(op->file, bytes);
}

void file_cancel(struct file_op *op)
{
	if (op->file)
		box_file_cancel(op->file);
	op_free(op);
}
