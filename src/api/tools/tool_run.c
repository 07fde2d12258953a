/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_run.h"

#include "api/internal.h"
#include "api/tools/tool_internal.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/run/run_record.h"
#include "core/session/session.h"
#include "core/template/templates.h"

/*
 * Theory of operation. A program runs in a session, where its execution is a record like any other,
 * or without one in a box of its own, which ends with it. execute_code gives its code to the
 * interpreter that stays in a session; the other tools start a process each, so only files stay.
 *
 * call_cancel kills the program. A client that merely disconnects does not: that is for the
 * transport to decide.
 */

static void pass_output(struct call *call, enum output_stream stream, const char *data, size_t len)
{
	size_t text_len;
	cleanup_free char *text = text_stream_feed(&call->text[stream], data, len, &text_len);

	if (text_len > 0)
		call->events.on_output(call->events.ctx, stream, text, text_len);
}

/* Without a session. */

static void cancel_exec(void *work)
{
	run_cancel(work);
}

static void on_output(void *ctx, enum output_stream stream, const char *data, size_t len)
{
	pass_output(ctx, stream, data, len);
}

static void on_end(void *ctx, const struct outcome *outcome)
{
	tool_run_finish(ctx, &(struct tool_run_end){outcome, outcome->execution_id, NULL, false});
}

static void on_error(void *ctx, const struct error *err)
{
	tool_refuse(ctx, err);
}

static int start_alone(struct call *call, struct error *err)
{
	const struct run_events events = {
		.ctx = call,
		.on_output = call->events.on_output ? on_output : NULL,
		.on_end = on_end,
		.on_error = on_error,
	};
	struct run *exec;

	if (tool_run_prepare(call, NULL, err) < 0 ||
	    run_start(call->router->runs, &call->args.exec.request, &events, &exec, err) < 0)
		return -1;
	call_wait(call, exec, cancel_exec);
	return 0;
}

/* In a session. */

struct session_run {
	struct run_record *execution;
	struct run_watch *watch;
};

static void cancel_session_run(void *work)
{
	const struct session_run *run = work;
	struct error ignored = {0}; /* it has ended meanwhile */

	(void)!run_record_cancel(run->execution, &ignored);
	run_unwatch(run->watch);
}

static void on_event(void *ctx, struct run_record *e, const struct run_event *event)
{
	struct call *call = ctx;
	struct run_record_info info = {0};

	if (event->kind == RUN_EVENT_STDOUT || event->kind == RUN_EVENT_STDERR) {
		if (call->events.on_output)
			pass_output(call,
			            event->kind == RUN_EVENT_STDOUT ? OUTPUT_STDOUT : OUTPUT_STDERR,
			            event->data, event->len);
		return;
	}
	if (event->kind != RUN_EVENT_END)
		return;
	run_record_info(e, &info);
	if (info.outcome)
		tool_run_finish(call, &(struct tool_run_end){info.outcome, info.id, info.session_id,
		                                             info.session_reset});
	else
		tool_refuse(call, info.failure);
}

static int start_in_session(struct call *call, struct session *session, struct error *err)
{
	struct run_request *request = &call->args.exec.request;
	struct session_info info = {0};
	/* Only execute_code runs in the interpreter that stays. */
	bool stays = call->tool->run == tool_execute_code;
	struct session_run *run;

	session_info(session, &info);
	/* The program, and its caller, would wait until the sandbox is started. */
	if (info.state == SESSION_PAUSED)
		return error_set(err, ERR_CONFLICT, 0, "sandbox %s is stopped: start it first",
		                 info.id);
	if (tool_run_prepare(call, stays ? info.language : NULL, err) < 0)
		return -1;
	request->fresh = !stays || request->cwd;
	run = NEW(struct session_run);
	call->state = run;
	call->free_state = free;
	if (session_execute(session, request, &run->execution, err) < 0)
		return -1;
	run->watch = run_watch(run->execution, 0, on_event, call);
	call_wait(call, run, cancel_session_run);
	return 0;
}

/* @session NULL: none. */
static void start(struct call *call, struct session *session)
{
	struct error err = {0};
	int r = session ? start_in_session(call, session, &err) : start_alone(call, &err);

	/* Core has its own copy. */
	decoded_exec_done(&call->args.exec);
	call->args.exec = (struct decoded_exec){0};
	if (r < 0)
		tool_refuse(call, &err);
}

void tool_execute_code(struct call *call)
{
	if (call->args.sandbox_id && *call->args.sandbox_id)
		tool_with_session(call, start);
	else
		start(call, NULL);
}

void tool_run_in_sandbox(struct call *call)
{
	tool_with_session(call, start);
}
