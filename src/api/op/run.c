/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/run.h"

#include "api/internal.h"
#include "base/alloc.h"
#include "core/run/run.h"
#include "core/run/run_record.h"
#include "core/session/session.h"

/* One of @once and @record. */
struct op_run {
	struct run *once;
	struct run_record *record;
	struct run_watch *watch;
	struct op_run_events events;
};

/* The run goes first: on_end may free whatever holds it. */
static void end_run(struct op_run *run, const struct op_run_end *end)
{
	const struct op_run_events events = run->events;

	free(run);
	events.on_end(events.ctx, end);
}

/* In a new box. */

static void on_start(void *ctx, const char *execution_id)
{
	const struct op_run *run = ctx;

	if (run->events.on_start)
		run->events.on_start(run->events.ctx, execution_id, 0);
}

static void on_output(void *ctx, enum output_stream stream, const char *data, size_t len)
{
	const struct op_run *run = ctx;

	if (run->events.on_output)
		run->events.on_output(run->events.ctx, stream, data, len, 0);
}

static void on_end(void *ctx, const struct outcome *outcome)
{
	end_run(ctx,
	        &(struct op_run_end){.outcome = outcome, .execution_id = outcome->execution_id});
}

static void on_error(void *ctx, const struct error *err)
{
	end_run(ctx, &(struct op_run_end){.failure = err});
}

/* In a session. */

static void end_record(struct op_run *run, const struct run_event *event)
{
	struct run_record_info info = {0};

	run_record_info(run->record, &info);
	end_run(run, &(struct op_run_end){.outcome = info.outcome,
	                                  .failure = info.failure,
	                                  .record = run->record,
	                                  .execution_id = info.id,
	                                  .session_id = info.session_id,
	                                  .session_reset = info.session_reset,
	                                  .number = event->number});
}

static void on_event(void *ctx, struct run_record *record, const struct run_event *event)
{
	struct op_run *run = ctx;
	const struct op_run_events *events = &run->events;
	bool is_start = event->kind == RUN_EVENT_START;
	struct run_record_info info = {0};

	if (event->kind == RUN_EVENT_END) {
		end_record(run, event);
	} else if (is_start && events->on_start) {
		run_record_info(record, &info);
		events->on_start(events->ctx, info.id, event->number);
	} else if (!is_start && events->on_output) {
		events->on_output(events->ctx,
		                  event->kind == RUN_EVENT_STDOUT ? OUTPUT_STDOUT : OUTPUT_STDERR,
		                  event->data, event->len, event->number);
	}
}

int op_run_start(struct router *r, const struct op_run_start *start, struct op_run **ret_run,
                 struct error *err)
{
	struct run_request request = *start->request; /* what it owns stays the caller's */
	struct op_run *run = NEW(struct op_run);
	const struct run_events events = {run, on_start, on_output, on_end, on_error};
	int started;

	request.tenant = start->who->tenant;
	request.key_id = start->who->key_id;
	request.request_id = (char *)(uintptr_t)start->request_id; /* core copies it */
	started = start->session ? session_execute(start->session, &request, &run->record, err)
	                         : run_start(r->runs, &request, &events, &run->once, err);
	if (started < 0) {
		free(run);
		return -1;
	}
	*ret_run = run;
	return 0;
}

struct op_run *op_run_of(struct run_record *record)
{
	struct op_run *run = NEW(struct op_run);

	run->record = record;
	return run;
}

void op_run_watch(struct op_run *run, const struct op_run_events *events)
{
	run->events = *events;
	if (run->record)
		run->watch = run_watch(run->record, 0, on_event, run);
}

struct run_record *op_run_record(const struct op_run *run)
{
	return run->record;
}

void op_run_leave(struct op_run *run)
{
	if (run->once)
		run_cancel(run->once);
	else if (run->watch)
		run_unwatch(run->watch);
	free(run);
}

void op_run_cancel(struct op_run *run)
{
	struct error ignored = {0}; /* it has ended */

	if (run->record)
		(void)!run_record_cancel(run->record, &ignored);
	op_run_leave(run);
}
