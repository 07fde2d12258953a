/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_run.h"

#include "api/internal.h"
#include "api/op/run.h"
#include "api/tools/tool_internal.h"
#include "base/alloc.h"
#include "base/str.h"
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

static void on_output(void *ctx, enum output_stream stream, const char *data, size_t len,
                      uint64_t number)
{
	struct call *call = ctx;
	size_t text_len;
	cleanup_free char *text = text_stream_feed(&call->text[stream], data, len, &text_len);

	(void)number;
	if (text_len > 0)
		call->events.on_output(call->events.ctx, stream, text, text_len);
}

static void on_end(void *ctx, const struct op_run_end *end)
{
	if (end->outcome)
		tool_run_finish(ctx, end);
	else
		tool_refuse(ctx, end->failure);
}

static void cancel_run(void *work)
{
	op_run_cancel(work);
}

static int prepare(struct call *call, struct session *session, struct error *err)
{
	struct run_request *request = &call->args.exec.request;
	struct session_info info = {0};
	/* Only execute_code runs in the interpreter that stays. */
	bool stays = call->tool->run == tool_execute_code;

	if (!session)
		return tool_run_prepare(call, NULL, err);
	session_info(session, &info);
	/* The program, and its caller, would wait until the sandbox is started. */
	if (info.state == SESSION_PAUSED)
		return error_set(err, ERR_CONFLICT, 0, "sandbox %s is stopped: start it first",
		                 info.id);
	if (tool_run_prepare(call, stays ? info.language : NULL, err) < 0)
		return -1;
	request->fresh = !stays || request->cwd;
	return 0;
}

/* @session NULL: none. */
static void start(struct call *call, struct session *session)
{
	const struct op_run_start start = {.session = session,
	                                   .request = &call->args.exec.request,
	                                   .who = &call->principal,
	                                   .request_id = call->request_id};
	struct op_run *run = NULL;
	struct error err = {0};

	if (prepare(call, session, &err) == 0)
		(void)!op_run_start(call->router, &start, &run, &err);
	/* Core has its own copy. */
	decoded_exec_done(&call->args.exec);
	call->args.exec = (struct decoded_exec){0};
	if (!run) {
		tool_refuse(call, &err);
		return;
	}
	op_run_watch(run,
	             &(struct op_run_events){.ctx = call,
	                                     .on_output = call->events.on_output ? on_output : NULL,
	                                     .on_end = on_end});
	call_wait(call, run, cancel_run);
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
