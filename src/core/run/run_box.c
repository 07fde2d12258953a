/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/observe/metrics.h"
#include "core/policy/policies.h"
#include "core/pool/pool.h"
#include "core/run/run_internal.h"
#include "core/run/run_record_internal.h"
#include "core/template/images.h"
#include "core/template/template.h"
#include "io/loop.h"

/*
 * Theory of operation. A fresh box comes from a pool or is made now. Box, files, program and input
 * go to the driver without waiting for replies, so that round trips overlap with building the box.
 * The box is destroyed after the answer: the caller does not wait.
 *
 * A pooled box, or the process waiting in it, may have died unnoticed. So the request is kept until
 * the program is known to run; until then a new box is made, once, without the pool. An agent lost
 * before it reported anything may have given the code to its process; but nothing leaves the box
 * except through the agent, so that had no effect.
 */

static_assert(RUN_BOX_EXEC_ID == POOL_EXEC_ID, "what waits in a box of a pool is its one program");

static struct box_events events_of(struct run *r);

int run_box_prepare(struct run *r, struct error *err)
{
	struct run_service *s = r->service;
	const struct template *template = r->request->template;
	uint64_t memory = r->decision.spec.limits.memory_bytes;

	if (s->draining)
		return error_stopping(err);
	if (tenant_check_memory(r->tenant, memory, err) < 0)
		return -1;
	r->entry.work = SCHEDULER_FRESH;
	r->entry.memory_bytes = memory;
	r->entry.queue = r->tenant ? &r->tenant->queue : NULL;
	r->image = image_ref(template ? template->image : NULL);
	r->packages = image_ref(template ? template->packages : NULL);
	box_spec_make_id(r->decision.spec.id);
	/* Names of tenants were checked when those were made. */
	(void)!str_copy(r->decision.spec.tenant, BOX_TENANT_LEN, r->record->tenant);
	/* A longer one is not our id. */
	(void)!str_copy(r->decision.spec.request_id, BOX_REQUEST_LEN, r->record->request_id);
	list_append(&s->all, &r->node);
	return 0;
}

static int hand_to_process(struct run *r, const struct run_plan *common, struct error *err)
{
	const struct exec_plan plan = {
		.id = common->id,
		.argv = (const char *const *)r->decision.argv,
		.env = (const char *const *)r->decision.env,
		.cwd = r->request->cwd ? r->request->cwd : "",
		.files = common->files,
		.files_count = common->files_count,
		.stdout_max = common->stdout_max,
		.stderr_max = common->stderr_max,
		.report_max = common->report_max,
		.stdin_open = common->stdin_open,
	};

	return box_exec(r->box, &plan, err);
}

/* The waiting process has its environment; it gets "" and arguments. */
static int hand_to_prepared(struct run *r, struct run_plan *plan, struct error *err)
{
	char *const *args = r->request->args;
	size_t count = args ? str_list_count(args) : 0;
	cleanup_free const char **words = xcalloc(count + 2, sizeof(*words));

	words[0] = "";
	for (size_t i = 0; i < count; i++)
		words[i + 1] = args[i];
	plan->runner = RUN_BOX_EXEC_ID;
	plan->args = words;
	return box_run(r->box, plan, err);
}

/* The code and files go in; the compiled program and its messages come out. */
static int hand_to_compiler(struct run *r, struct error *err)
{
	const struct run_request *request = r->request;
	struct exec_source source = run_code(r, r->decision.runner->source);
	cleanup_free struct exec_file *files = run_request_files(request, &source);
	const struct exec_plan plan = {
		.id = RUN_BOX_EXEC_ID,
		.argv = (const char *const *)r->decision.compile_argv,
		.env = (const char *const *)r->decision.compile_env,
		.cwd = "",
		.files = files,
		.files_count = request->files_count + 1,
		.stdout_max = BUILD_ARTIFACT_MAX + 1,
		.stderr_max = r->decision.output_bytes + 1,
	};

	r->id = RUN_BOX_EXEC_ID;
	build_begin(r);
	return box_exec(r->box, &plan, err);
}

/* Instead of the code. */
static void put_artifact(const struct run *r, struct exec_file *file)
{
	size_t len = 0;
	const void *data = build_artifact(r, &len);

	*file = (struct exec_file){
		.path = POLICY_ARTIFACT, .data = data ? data : "", .len = len, .mode = 0755};
}

static int hand_to_box(struct run *r, bool prepared, struct error *err)
{
	const struct run_request *request = r->request;
	struct exec_source source = run_code(r, r->decision.runner->source);
	attr_unused cleanup_free char *packed = exec_source_ask(&source, request);
	cleanup_free struct exec_file *files = run_request_files(request, &source);
	struct run_plan plan = {
		.id = RUN_BOX_EXEC_ID,
		.source = source.name,
		.files = files,
		.files_count = request->files_count + 1,
		/* One byte more than is kept, to detect truncation. */
		.stdout_max = r->decision.output_bytes + 1,
		.stderr_max = r->decision.output_bytes + 1,
		.report_max = r->decision.report_bytes,
		.stdin_open = request->stdin_len > 0 || request->stdin_open,
	};

	r->id = RUN_BOX_EXEC_ID;
	if (r->build && !r->decision.runner->compile_if)
		put_artifact(r, &files[0]);
	if ((prepared ? hand_to_prepared(r, &plan, err) : hand_to_process(r, &plan, err)) < 0)
		return -1;
	if (request->stdin_len > 0 &&
	    box_stdin(r->box, r->id, request->stdin_data, request->stdin_len, err) < 0)
		return -1;
	return plan.stdin_open && !request->stdin_open ? box_stdin_end(r->box, r->id, err) : 0;
}

static void count_box(struct run *r)
{
	r->service->boxes++;
	tenant_add_box(r->tenant);
	trace_note(&r->outcome.trace, TRACE_BOX);
}

static void discard_box(struct run *r)
{
	r->service->boxes--;
	tenant_drop_box(r->tenant);
	r->pooled = false;
	r->before = (struct box_counters){0};
	pools_discard(r->service->pools, r->pool_key, TAKE_PTR(r->box));
	box_spec_make_id(r->decision.spec.id);
}

static bool take_from_pool(struct run *r, struct pool_hit *ret_hit)
{
	const struct box_events events = events_of(r);
	uint64_t cpu_us;

	/* A pooled process waits in the workspace itself. */
	if (r->retried || r->request->cwd ||
	    !pools_take(r->service->pools, &r->decision, r->record->tenant, ret_hit))
		return false;
	cpu_us = ret_hit->before.cpu_us;
	r->box = ret_hit->box;
	r->before.cpu_us = cpu_us == COUNTER_UNKNOWN ? 0 : cpu_us;
	r->pooled = true;
	r->pool_key = ret_hit->key;
	count_box(r);
	(void)!str_copy(r->decision.spec.id, BOX_ID_LEN, box_id(r->box));
	box_give(r->box, &events, r->decision.spec.request_id);
	return true;
}

/* From now on the box uses the processor as its tenant. May launch other runs. */
static void note_built(struct run *r)
{
	if (r->service)
		scheduler_built(&r->service->scheduler, &r->entry, clock_us());
}

/* A box for the compiler alone. */
static int compile_first(struct run *r, struct error *err)
{
	const struct box_events events = events_of(r);
	struct box_spec spec = r->decision.spec;

	spec.limits = r->decision.compile_limits;
	spec.network = BOX_NETWORK_NONE;
	spec.rules = NULL;
	spec.tools = NULL;
	spec.zygote[0] = '\0';
	image_unref(r->library); /* of an earlier attempt */
	r->library =
		run_service_library(r->service, r->request->template, r->decision.runner, &spec);
	if (box_create(r->service->config.driver, &spec, &events, &r->box, err) < 0)
		return -1;
	count_box(r);
	return hand_to_compiler(r, err);
}

/* Policies may have changed while it was queued or compiled. */
static int check_network(struct run *r, struct error *err)
{
	const struct run_service *s = r->service;
	const struct policy *chosen = r->decision.stack.chosen;
	struct box_spec *spec = &r->decision.spec;
	struct policy_stack stack;

	if (spec->network <= BOX_NETWORK_ALLOWLIST)
		return 0;
	if (run_service_choose(s, r->tenant, chosen ? chosen->name : NULL, &stack, err) < 0)
		return -1;
	return policy_check_network(&s->rules, &stack, spec->network, &spec->ranges, err);
}

static int fresh_hand_over(struct run *r, struct error *err)
{
	const struct box_events events = events_of(r);
	struct error lost = {0};
	struct pool_hit hit;

	/* What the cache had may be gone when the run is handed over again. */
	if (r->build && (r->build->state == BUILD_DUE || r->build->cached) && !build_find(r))
		return compile_first(r, err);
	if (check_network(r, err) < 0)
		return -1;
	r->repeatable = take_from_pool(r, &hit);
	if (r->repeatable && hand_to_box(r, hit.prepared, &lost) < 0) {
		r->repeatable = false;
		discard_box(r);
	}
	if (!r->repeatable) {
		if (box_create(r->service->config.driver, &r->decision.spec, &events, &r->box,
		               err) < 0)
			return -1;
		count_box(r);
		if (hand_to_box(r, false, err) < 0)
			return -1;
	}
	trace_note(&r->outcome.trace, TRACE_SENT);
	if (r->pooled) /* nothing to build */
		note_built(r);
	return 0;
}

/* The pooled box was dead, or its process was killed before it took the code. Return: false if
 * there is nothing more to try. */
static bool begin_again(struct run *r)
{
	if (!r->repeatable || !r->pooled)
		return false;
	log_debug("execution=%s gets a new box: the one of the pool was dead", r->record->id);
	discard_box(r);
	r->retried = true;
	r->started_us = r->outcome.trace.us[TRACE_STARTED] = 0;
	run_hand_over(r);
	return true;
}

/* The program was handed over before. */
static void on_ready(void *ctx)
{
	note_built(ctx);
}

static void on_started(void *ctx, uint32_t exec_id attr_unused)
{
	run_started(ctx);
}

static void on_output(void *ctx, uint32_t exec_id attr_unused, enum output_stream stream,
                      const char *data, size_t len)
{
	run_add_output(ctx, stream, data, len);
}

static void on_report(void *ctx, uint32_t exec_id attr_unused, const char *data, size_t len)
{
	run_add_report(ctx, data, len);
}

static void on_denial(void *ctx, uint32_t exec_id attr_unused, const char *what, uint64_t count)
{
	run_add_denial(ctx, what, count);
}

/* The compiler has ended: its box goes, the program gets another. */
static void go_on_compiled(struct run *r, const struct exec_facts *facts)
{
	if (!run_built(r, facts))
		return;
	r->service->boxes--;
	tenant_drop_box(r->tenant);
	pools_end(r->service->pools, TAKE_PTR(r->box));
	box_spec_make_id(r->decision.spec.id);
	run_hand_over(r);
	if (r->state != RUN_ENDED && !r->repeatable)
		run_drop_request(r);
}

/* Not after a signal of the caller, which may be why the process did not take the code. */
static void on_done(void *ctx, uint32_t exec_id attr_unused, const struct exec_facts *facts)
{
	struct run *r = ctx;

	if (build_is_due(r)) {
		go_on_compiled(r, facts);
		return;
	}
	if (r->state == RUN_RUNNING && facts->untaken && begin_again(r))
		return;
	run_done(r, facts, NULL);
}

static void on_exec_failed(void *ctx, uint32_t exec_id attr_unused, const struct error *err)
{
	struct run *r = ctx;

	if (r->state == RUN_STARTING && begin_again(r))
		return;
	if (r->state == RUN_STARTING || r->state == RUN_RUNNING)
		run_fail(r, err);
}

/* Before the start nothing ran: the caller may retry. */
static void on_lost(void *ctx, const struct error *err)
{
	struct run *r = ctx;

	if (r->state == RUN_ENDED)
		return;
	log_debug("execution=%s lost its box: %s", r->record->id, err->msg);
	if (r->state == RUN_STARTING) {
		if (!begin_again(r))
			run_fail(r, err);
		return;
	}
	r->evidence.lost = r->state != RUN_GATHERING; /* else it had ended */
	run_conclude(r);
}

static void on_box_gone(void *ctx)
{
	struct run *r = ctx;
	struct run_service *s = r->service;

	r->box = NULL;
	if (s) {
		s->boxes--;
		tenant_drop_box(r->tenant);
		scheduler_out(&s->scheduler, &r->entry, clock_us());
	}
	run_reap(r);
}

static struct box_events events_of(struct run *r)
{
	return (struct box_events){
		.ctx = r,
		.on_ready = on_ready,
		.on_started = on_started,
		.on_output = on_output,
		.on_report = on_report,
		.on_denial = on_denial,
		.on_done = on_done,
		.on_exec_failed = on_exec_failed,
		.on_lost = on_lost,
		.on_gone = on_box_gone,
	};
}

/* Destroying the box stops everything in it. After too much output, the outcome must say how the
 * program ended. */
static void fresh_stop(struct run *r, enum run_stop why)
{
	struct error err = {0};

	if (why != RUN_STOP_OVERFLOW || box_signal(r->box, r->id, SIGKILL, &err) < 0)
		run_conclude(r);
}

static void leave_now(struct run *r)
{
	const struct run_service_config *c = &r->service->config;
	struct scheduler *scheduler = &r->service->scheduler;

	r->leaving = false;
	if (r->record)
		run_report_end(r->record, c->metrics, c->audit, &r->decision.spec.limits);
	/* Only now the last box is known. */
	if (r->pooled)
		pools_confirm(r->service->pools);
	if (r->started_us)
		metrics_observe(c->metrics, r->pooled ? METRIC_WARM_START : METRIC_COLD_START,
		                (double)r->start_us / 1e6);
	if (r->box) {
		box_destroy(r->box);
		scheduler_leave(scheduler, &r->entry, clock_us());
	} else {
		scheduler_out(scheduler, &r->entry, clock_us());
	}
}

static void on_leave(void *ctx)
{
	leave_now(ctx);
	run_reap(ctx);
}

void run_box_leave(struct run *r)
{
	loop_cancel(r->service->config.loop, on_leave, r);
	leave_now(r);
}

/* After the answer, sent when this dispatch ends. */
static void fresh_leave(struct run *r)
{
	if (r->answer_later || !r->box) {
		leave_now(r);
		return;
	}
	r->leaving = true;
	loop_defer(r->service->config.loop, on_leave, r);
}

const struct run_place run_place_fresh = {
	.hand_over = fresh_hand_over,
	.stop = fresh_stop,
	.give_up = run_fail,
	.leave = fresh_leave,
};
