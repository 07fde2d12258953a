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
 * or without one, in a box of its own that goes with it. execute_code gives its code to the
 * interpreter that stays in a session; the others start a program each, so that only files stay, as
 * their clients know it.
 *
 * A caller that changes its mind ends what it has started. One that only goes away does not: that
 * is for who speaks to it to know.
 */

void tool_run_free(struct tool_run *run)
{
	free(run->language);
	free(run->working_dir);
	json_decref(run->packages);
	free(run);
}

static void request_cleanup(struct run_request *request)
{
	run_request_done(request);
}

static void cancel(void *state)
{
	struct tool_run *run = state;
	struct error ignored = {0}; /* it has ended by itself */

	if (run->exec)
		run_cancel(run->exec);
	if (run->execution)
		(void)!run_record_cancel(run->execution, &ignored);
	if (run->watch)
		run_unwatch(run->watch);
	tool_run_free(run);
}

static void fail(struct tool_run *run, const struct error *err)
{
	struct tool_call *call = run->call;

	tool_run_free(run);
	tool_refuse(call, err);
}

static void tell(struct tool_run *run, enum output_stream stream, const char *data, size_t len)
{
	const struct tool_events *events = &run->call->events;
	size_t text_len;
	cleanup_free char *text = text_stream_feed(&run->text[stream], data, len, &text_len);

	if (text_len > 0)
		events->on_output(events->ctx, stream, text, text_len);
}

/* Without a session. */

static void on_output(void *ctx, enum output_stream stream, const char *data, size_t len)
{
	tell(ctx, stream, data, len);
}

static void on_end(void *ctx, const struct outcome *outcome)
{
	tool_run_finish(ctx, &(struct tool_run_end){outcome, outcome->execution_id, NULL, false});
}

static void on_error(void *ctx, const struct error *err)
{
	fail(ctx, err);
}

static int start_alone(struct tool_run *run, struct error *err)
{
	attr_cleanup(request_cleanup) struct run_request request = {0};
	struct tool_call *call = run->call;
	struct run_events events = {
		.ctx = run,
		.on_output = call->events.on_output ? on_output : NULL,
		.on_end = on_end,
		.on_error = on_error,
	};

	if (tool_run_request(run, NULL, &request, err) < 0)
		return -1;
	return run_start(call->router->runs, &request, &events, &run->exec, err);
}

/* In one. */

static void on_event(void *ctx, struct run_record *e, const struct run_event *event)
{
	struct tool_run *run = ctx;
	struct run_record_info info = {0};

	if (event->kind == RUN_EVENT_STDOUT || event->kind == RUN_EVENT_STDERR) {
		if (run->call->events.on_output)
			tell(run, event->kind == RUN_EVENT_STDOUT ? OUTPUT_STDOUT : OUTPUT_STDERR,
			     event->data, event->len);
		return;
	}
	if (event->kind != RUN_EVENT_END)
		return;
	run_record_info(e, &info);
	if (info.outcome)
		tool_run_finish(run, &(struct tool_run_end){info.outcome, info.id, info.session_id,
		                                            info.session_reset});
	else
		fail(run, info.failure);
}

/* Whether its code is for the interpreter that stays. */
static bool is_kept(const struct tool_call *call)
{
	return call->tool->run == tool_execute_code;
}

static int start_in_session(struct tool_run *run, struct session *session, struct error *err)
{
	attr_cleanup(request_cleanup) struct run_request request = {0};
	struct session_info info = {0};
	bool kept = is_kept(run->call);

	session_info(session, &info);
	/* It would wait for somebody else to start it, and so would its caller. */
	if (info.state == SESSION_PAUSED)
		return error_set(err, ERR_CONFLICT, 0, "sandbox %s is stopped: start it first",
		                 info.id);
	if (tool_run_request(run, kept ? info.language : NULL, &request, err) < 0)
		return -1;
	request.fresh = !kept || request.cwd;
	if (session_execute(session, &request, &run->execution, err) < 0)
		return -1;
	run->watch = run_watch(run->execution, 0, on_event, run);
	return 0;
}

/* @session NULL: none. */
static void start(struct tool_call *call, struct session *session)
{
	struct tool_run *run = NEW(struct tool_run);
	struct error err = {0};

	run->call = call;
	if ((session ? start_in_session(run, session, &err) : start_alone(run, &err)) < 0) {
		fail(run, &err);
		return;
	}
	call->state = run;
	call->cancel = cancel;
}

void tool_execute_code(struct tool_call *call)
{
	const char *id = tool_text(call, "session_id");

	if (id && *id)
		tool_with_session(call, id, start);
	else
		start(call, NULL);
}

void tool_run_in_sandbox(struct tool_call *call)
{
	tool_with_session(call, tool_text(call, "sandbox_id"), start);
}
