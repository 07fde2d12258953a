/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/run.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/runners.h"
#include "core/pool/pool.h"
#include "core/run/run_internal.h"
#include "core/run/run_metrics.h"
#include "core/template/images.h"
#include "core/template/template.h"
#include "io/loop.h"
#include "wire/layer.h"

/*
 * Theory of operation: box, files, program and input are handed to the driver in one go, before
 * anything answered: the round trips overlap with the building of the box. From then on everything
 * is an event of the box or of the one timer. Whatever settles the answer first wins (end());
 * events after that are ignored. The answer is given before the box is taken down, so that nobody
 * waits for the teardown.
 *
 * The deadline is ours alone: it counts from the start of the program and needs no cooperation of
 * agent or program (security rule LC-3).
 */

#define RUN_CTX_LEN 200

static const char *const state_names[] = {
	[RUN_NEW] = "new",         [RUN_QUEUED] = "queued", [RUN_BUILDING] = "building",
	[RUN_RUNNING] = "running", [RUN_ENDED] = "ended",
};
static_assert(ARRAY_SIZE(state_names) == RUN_COUNT, "every state has a name");

#define TO(state) (1u << RUN_##state)
static const unsigned transitions[] = {
	[RUN_NEW] = TO(QUEUED) | TO(BUILDING),
	[RUN_QUEUED] = TO(BUILDING) | TO(ENDED),
	[RUN_BUILDING] = TO(RUNNING) | TO(ENDED),
	[RUN_RUNNING] = TO(BUILDING) | TO(ENDED),
	[RUN_ENDED] = 0,
};
static_assert(ARRAY_SIZE(transitions) == RUN_COUNT, "every state has a row");

#define run_log(e, level, ...)                                                                     \
	do {                                                                                       \
		char run_ctx_[RUN_CTX_LEN];                                                        \
		if (log_is_on(level))                                                              \
			log_write(level, make_ctx(e, run_ctx_), __VA_ARGS__);                      \
	} while (0)

static const char *make_ctx(const struct run *e, char ret_ctx[RUN_CTX_LEN])
{
	/* Ids are short: it fits. */
	(void)snprintf(ret_ctx, RUN_CTX_LEN, "request_id=%s execution=%s box=%s",
	               e->decision.spec.request_id, e->outcome.execution_id, e->decision.spec.id);
	return ret_ctx;
}

static void set_state(struct run *e, enum run_state next)
{
	assert(transitions[e->state] & (1u << next));
	run_log(e, LOG_LEVEL_DEBUG, "%s -> %s", state_names[e->state], state_names[next]);
	e->state = next;
}

static void run_free(struct run *e)
{
	tenant_release(e->tenant);
	image_unref(e->image);
	given_done(&e->given);
	timer_free(e->timer);
	run_request_free(e->kept);
	policy_decision_done(&e->decision);
	outcome_done(&e->outcome);
	free(e);
}

static void leave_queue(struct run *e)
{
	if (e->queued)
		tenant_drop_queued(e->tenant);
	e->queued = false;
}

/* The last one out: the answer was given and nothing of the box is left. */
static void reap(struct run *e)
{
	struct run_service *s = e->service;

	if (e->state != RUN_ENDED || e->answering || e->leaving || e->box)
		return;
	list_remove(&e->node);
	if (s)
		run_service_forget(s, e);
	run_free(e);
}

static void answer(struct run *e)
{
	e->answering = false;
	if (e->muted)
		return;
	if (error_is_set(&e->failure))
		e->events.on_error(e->events.ctx, &e->failure);
	else
		e->events.on_end(e->events.ctx, &e->outcome);
}

enum answer_when {
	ANSWER_NOW,   /* called from the loop */
	ANSWER_LATER, /* called from inside a call of the caller's */
};

/* One of a session is told by its record, which also knows those that never came here. */
static void tell_end(const struct run *e)
{
	const struct run_service_config *c = &e->service->config;
	const struct outcome *outcome = error_is_set(&e->failure) ? NULL : &e->outcome;

	if (e->entry.patient)
		return;
	run_metrics_end(c->metrics, e->decision.runner->name, outcome);
	run_audit_end(c->audit, &(struct run_audit){
					.tenant = e->tenant_name,
					.key_id = e->key_id[0] ? e->key_id : NULL,
					.request_id = e->decision.spec.request_id,
					.id = e->outcome.execution_id,
					.language = e->decision.runner->name,
					.code_hash = e->code_hash,
					.timeout_us = e->decision.timeout_us,
					.limits = &e->decision.spec.limits,
					.outcome = outcome,
					.failure = &e->failure,
				});
}

/* At the end, when it is known which of its boxes was the last. */
static void tell_start(const struct run *e)
{
	struct metrics *metrics = e->service->config.metrics;

	if (e->pooled)
		pools_confirm(e->service->pools);
	if (e->started_us)
		metrics_observe(metrics, e->pooled ? METRIC_WARM_START : METRIC_COLD_START,
		                (double)e->outcome.start_us / 1e6);
}

static void give_up(struct run *e)
{
	struct scheduler *scheduler = &e->service->scheduler;

	e->leaving = false;
	tell_end(e);
	tell_start(e);
	if (e->box) {
		box_destroy(e->box);
		scheduler_leave(scheduler, &e->entry, clock_us());
	} else {
		scheduler_out(scheduler, &e->entry, clock_us());
	}
}

static void leave(void *ctx)
{
	struct run *e = ctx;

	give_up(e);
	reap(e);
}

/*
 * The answer is settled. The order matters: first the answer, then what is told of it, the kill,
 * and the place for the next one, whose box is made inside scheduler_leave.
 *
 * The place does not wait for the answer to be read. Places are for what costs processes and
 * memory of boxes; a few clients that do not read would else hold all of them, for as long as an
 * answer may take. What unread answers cost is bounded where they are kept (http.max_answers).
 */
static void end(struct run *e, enum answer_when when)
{
	set_state(e, RUN_ENDED);
	leave_queue(e);
	timer_stop(e->timer);
	gather_cancel(&e->gather);
	e->leaving = true;
	if (when == ANSWER_NOW) {
		answer(e);
		/* Behind the answer, which is on its way to the client when this dispatch ends. */
		loop_defer(e->service->config.loop, leave, e);
		return;
	}
	if (!e->muted) {
		e->answering = true;
		timer_start(e->timer, 0);
	}
	leave(e);
}

static void fail(struct run *e, const struct error *err, enum answer_when when)
{
	e->failure = *err;
	end(e, when);
}

static void unknown_counters(struct box_counters *ret_counters)
{
	/* COUNTER_UNKNOWN is all ones. */
	memset(ret_counters, 0xff, sizeof(*ret_counters));
}

/* What its box had used before it was taken from its pool is not its own. */
static void leave_out_before(struct run *e)
{
	struct box_counters *c = &e->evidence.counters;

	if (e->pooled && c->cpu_us != COUNTER_UNKNOWN && e->before.cpu_us != COUNTER_UNKNOWN &&
	    c->cpu_us >= e->before.cpu_us)
		c->cpu_us -= e->before.cpu_us;
}

/* The evidence is in: judge, and answer. */
static void conclude(struct run *e, enum answer_when when)
{
	unknown_counters(&e->evidence.counters);
	if (e->box) {
		box_counters(e->box, COUNTERS_FOR_RESULT, &e->evidence.counters);
		leave_out_before(e);
		e->outcome.layers = box_layers(e->box);
		e->outcome.start = box_start(e->box);
		e->outcome.layers_missing = LAYERS_ALL & ~e->outcome.layers;
	}
	outcome_take_usage(&e->evidence, &e->outcome);
	if (!e->evidence.ended && e->started_us)
		e->outcome.duration_us = clock_us() - e->started_us;
	outcome_judge(&e->evidence, &e->outcome);
	trace_note(&e->outcome.trace, TRACE_JUDGED);
	end(e, when);
}

static struct box_events events_of(struct run *e);

static bool is_open(const struct run *e)
{
	return e->state == RUN_BUILDING || e->state == RUN_RUNNING;
}

static void on_box_ready(void *ctx attr_unused)
{
	/* The program was handed over already. */
}

static void on_box_started(void *ctx, uint32_t exec_id attr_unused)
{
	struct run *e = ctx;

	if (e->state != RUN_BUILDING)
		return;
	set_state(e, RUN_RUNNING);
	e->started_us = e->outcome.trace.us[TRACE_STARTED] = clock_us();
	e->outcome.start_us = e->started_us - e->admitted_us;
	e->outcome.pooled = e->pooled;
	timer_start(e->timer, e->decision.timeout_us);
	if (e->events.on_start && !e->announced)
		e->events.on_start(e->events.ctx, e->outcome.execution_id);
	e->announced = true;
}

/* It is no longer as if it had never been asked for: it is not asked for again. */
static void drop_kept(struct run *e)
{
	run_request_free(TAKE_PTR(e->kept));
}

/* The agent keeps the same limit; it is not trusted to. */
/* Its end follows, and says which signal it was. */
static void end_program(struct run *e)
{
	struct error err = {0};

	/* An agent that takes no order is as good as gone: what there is is the outcome. */
	if (box_signal(e->box, EXEC_ID, SIGKILL, &err) < 0)
		conclude(e, ANSWER_NOW);
}

static void on_box_output(void *ctx, uint32_t exec_id attr_unused, enum output_stream stream,
                          const char *data, size_t len)
{
	struct run *e = ctx;
	bool is_err = stream == OUTPUT_STDERR;
	size_t added;

	if (!is_open(e))
		return;
	drop_kept(e);
	trace_note(&e->outcome.trace, TRACE_FIRST_OUTPUT);
	added = buf_add_some(is_err ? &e->outcome.err : &e->outcome.out, data, len);
	*(is_err ? &e->outcome.stderr_bytes : &e->outcome.stdout_bytes) += len;
	if (added < len)
		*(is_err ? &e->evidence.err_truncated : &e->evidence.out_truncated) = true;
	if (added > 0 && e->events.on_output)
		e->events.on_output(e->events.ctx, stream, data, added);
	if (added < len && e->decision.kill_on_overflow)
		end_program(e);
}

static void on_box_report(void *ctx, uint32_t exec_id attr_unused, const char *data, size_t len)
{
	struct run *e = ctx;

	drop_kept(e);
	/* More than was allowed does not come through the link; half a report would be none. */
	if (is_open(e) && buf_add(&e->outcome.report, data, len) < 0)
		buf_reset(&e->outcome.report);
}

static void on_box_denial(void *ctx, uint32_t exec_id attr_unused, const char *what, uint64_t count)
{
	struct run *e = ctx;

	drop_kept(e);
	if (is_open(e))
		outcome_add_syscall(&e->outcome, what, count);
}

static void on_gathered(void *ctx)
{
	conclude(ctx, ANSWER_NOW);
}

/*
 * Its process waited in a pool, and was killed as the code came: nothing of it has run. Return:
 * whether there is another box. Else how the process ended is the outcome: as of one whose caller
 * has signalled it.
 */
static bool begin_again(struct run *e)
{
	const struct box_events events = events_of(e);
	struct error err = {0};

	if (e->state != RUN_RUNNING || !e->kept)
		return false;
	run_log(e, LOG_LEVEL_DEBUG, "was not taken by what waited for it");
	set_state(e, RUN_BUILDING);
	e->started_us = e->outcome.trace.us[TRACE_STARTED] = 0;
	timer_start(e->timer, e->service->config.build_timeout_us);
	if (!run_build_again(e, &events, &err))
		fail(e, &err, ANSWER_NOW);
	return true;
}

static void on_box_done(void *ctx, uint32_t exec_id attr_unused, const struct exec_facts *facts)
{
	struct run *e = ctx;

	if (!is_open(e) || (facts->untaken && begin_again(e)))
		return;
	trace_note(&e->outcome.trace, TRACE_DONE);
	outcome_take_facts(facts, e->decision.output_bytes, &e->evidence, &e->outcome);
	e->gather.into = &e->outcome.artifacts;
	e->gather.on_over = on_gathered;
	e->gather.given = &e->given;
	e->gather.ctx = e;
	if (facts->changed_since_ns && gather_start(&e->gather, e->box, facts->changed_since_ns))
		timer_start(e->timer, ARTIFACTS_TIME_US);
	else
		conclude(e, ANSWER_NOW);
}

/* Before the program started: once more without pools, or it has failed. */
static void fail_to_start(struct run *e, const struct error *err)
{
	const struct box_events events = events_of(e);
	struct error again = {0};

	run_log(e, LOG_LEVEL_DEBUG, "was not started: %s", err->msg);
	if (run_build_again(e, &events, &again))
		return;
	fail(e, error_is_set(&again) ? &again : err, ANSWER_NOW);
}

static void on_box_exec_failed(void *ctx, uint32_t exec_id attr_unused, const struct error *err)
{
	struct run *e = ctx;

	if (e->state == RUN_BUILDING)
		fail_to_start(e, err);
	else if (is_open(e))
		fail(e, err, ANSWER_NOW);
}

/* Before the program started nothing was run, and the caller may try again. After that it did. */
static void on_box_lost(void *ctx, const struct error *err)
{
	struct run *e = ctx;

	if (!is_open(e))
		return;
	if (e->state == RUN_BUILDING) {
		fail_to_start(e, err);
		return;
	}
	run_log(e, LOG_LEVEL_DEBUG, "lost its box: %s", err->msg);
	e->evidence.lost = true;
	conclude(e, ANSWER_NOW);
}

static void on_box_gone(void *ctx)
{
	struct run *e = ctx;
	struct run_service *s = e->service;

	e->box = NULL;
	if (s) {
		s->boxes--;
		tenant_drop_box(e->tenant);
		scheduler_out(&s->scheduler, &e->entry, clock_us());
	}
	reap(e);
}

static void on_build_timeout(struct run *e)
{
	struct error err = {0};

	error_set(&err, ERR_BOX_FAILED, 0, "the program was not started within %llu ms",
	          (unsigned long long)(e->service->config.build_timeout_us / USEC_PER_MS));
	fail(e, &err, ANSWER_NOW);
}

static void on_timer(void *ctx)
{
	struct run *e = ctx;

	if (e->state == RUN_ENDED) {
		answer(e);
		reap(e);
	} else if (e->state == RUN_BUILDING) {
		on_build_timeout(e);
	} else if (e->state == RUN_RUNNING) {
		e->evidence.timed_out = !e->gather.file; /* else it has ended by itself */
		conclude(e, ANSWER_NOW);
	}
}

static struct box_events events_of(struct run *e)
{
	return (struct box_events){
		.ctx = e,
		.on_ready = on_box_ready,
		.on_started = on_box_started,
		.on_output = on_box_output,
		.on_report = on_box_report,
		.on_denial = on_box_denial,
		.on_done = on_box_done,
		.on_exec_failed = on_box_exec_failed,
		.on_lost = on_box_lost,
		.on_gone = on_box_gone,
	};
}

/* Whether they changed is asked when the request is gone. */
static void note_given(struct run *e, const struct run_request *request)
{
	e->given.budget = GIVEN_HASHED;
	for (size_t i = 0; i < request->files_count; i++)
		given_add(&e->given, request->files[i].name, request->files[i].data,
		          request->files[i].len);
}

static void launch(struct run *e, const struct run_request *request)
{
	const struct box_events events = events_of(e);
	struct error err = {0};

	set_state(e, RUN_BUILDING);
	e->admitted_us = e->outcome.trace.us[TRACE_ADMITTED] = clock_us();
	e->outcome.queue_us = e->admitted_us - e->arrived_us;
	timer_start(e->timer, e->service->config.build_timeout_us);
	note_given(e, request);
	if (run_build(e, request, &events, &err) < 0)
		fail(e, &err, ANSWER_LATER);
	else
		trace_note(&e->outcome.trace, TRACE_SENT);
}

static void on_turn(void *ctx)
{
	struct run *e = ctx;
	struct run_request *request = TAKE_PTR(e->kept);

	leave_queue(e);
	launch(e, request);
	run_request_free(request);
}

static void make_ids(struct run *e)
{
	char day[16];
	char suffix[9];

	clock_format_day(clock_real_ms(), day, sizeof(day));
	id_random(suffix, sizeof(suffix) - 1);
	(void)snprintf(e->outcome.execution_id, sizeof(e->outcome.execution_id), "exec_%s_%s", day,
	               suffix);
	box_spec_make_id(e->decision.spec.id);
}

/* For logs and audit. What is too long is no name of ours. */
static void note_asker(struct run *e, const struct run_request *request)
{
	if (request->request_id)
		(void)!str_copy(e->decision.spec.request_id, BOX_REQUEST_LEN, request->request_id);
	(void)!str_copy(e->tenant_name, sizeof(e->tenant_name),
	                request->tenant ? request->tenant : TENANT_DEFAULT);
	if (request->key_id)
		(void)!str_copy(e->key_id, sizeof(e->key_id), request->key_id);
	if (e->service->config.audit)
		run_audit_hash(request->code, request->code_len, e->code_hash);
}

static struct run *run_new(struct run_service *s, const struct run_request *request,
                           const struct run_events *events, struct policy_decision *decision)
{
	struct run *e = NEW(struct run);

	list_init(&e->node);
	e->service = s;
	e->events = *events;
	e->entry.on_turn = on_turn;
	e->entry.ctx = e;
	e->arrived_us = e->outcome.trace.us[TRACE_DECIDED] = clock_us();
	e->timer = timer_new(s->config.loop, on_timer, e);
	e->decision = *decision; /* taken */
	note_asker(e, request);
	e->image = image_ref(request->template ? request->template->image : NULL);
	e->outcome.driver = s->config.driver->ops->name;
	e->outcome.handler = decision->handler;
	buf_init(&e->outcome.out, decision->output_bytes);
	buf_init(&e->outcome.err, decision->output_bytes);
	buf_init(&e->outcome.report, decision->report_bytes);
	make_ids(e);
	return e;
}

/* A place, or one in the queue, which its session counts where there is one. */
static int enter(struct run *e, struct tenant *tenant, struct error *err)
{
	struct scheduler *s = &e->service->scheduler;
	uint64_t memory = e->decision.spec.limits.memory_bytes;
	int r;

	tenant_hold(tenant);
	e->tenant = tenant;
	e->entry.memory_bytes = memory;
	e->entry.queue = tenant ? &tenant->queue : NULL;
	if (tenant_check_memory(tenant, memory, err) < 0)
		return -1;
	r = scheduler_enter(s, &e->entry, e->arrived_us, err);
	if (r <= 0 || e->entry.patient)
		return r;
	if (tenant_take_queued(tenant, err) < 0) {
		scheduler_out(s, &e->entry, e->arrived_us);
		return -1;
	}
	e->queued = true;
	return r;
}

int run_begin(struct run_service *s, const struct run_request *request,
              const struct run_events *events, const struct policy_stack *session,
              struct run **ret_run, struct error *err)
{
	struct tenant *tenant = run_service_tenant(s, request->tenant);
	struct policy_decision decision;
	struct policy_stack stack;
	struct run *e;
	int r;

	if (s->draining)
		return error_set(err, ERR_UNAVAILABLE, 0, "the daemon is stopping");
	if (session)
		stack = *session;
	else if (run_service_choose(s, tenant, request->policy, &stack, err) < 0)
		return -1;
	if (policy_decide(&s->rules, &stack, request, &decision, err) < 0)
		return -1;
	e = run_new(s, request, events, &decision);
	e->entry.patient = session;
	r = enter(e, tenant, err);
	if (r < 0) {
		run_free(e);
		return -1;
	}
	list_append(&s->all, &e->node);
	*ret_run = e;
	if (r == 0) {
		launch(e, request);
	} else {
		e->kept = run_request_copy(request);
		set_state(e, RUN_QUEUED);
	}
	return 0;
}

int run_start(struct run_service *s, const struct run_request *request,
              const struct run_events *events, struct run **ret_run, struct error *err)
{
	return run_begin(s, request, events, NULL, ret_run, err);
}

/* Should it have to be asked for again, with all that came. One that runs takes more than can be
 * kept for that. */
static int keep_stdin(struct run *e, const void *data, size_t len, bool end, struct error *err)
{
	struct error much = {0};

	if (!e->kept || run_request_add_stdin(e->kept, data, len, end, &much) == 0)
		return 0;
	if (e->state == RUN_RUNNING) {
		drop_kept(e);
		return 0;
	}
	*err = much;
	return -1;
}

int run_stdin(struct run *e, const void *data, size_t len, bool end, struct error *err)
{
	if (e->state == RUN_QUEUED)
		return run_request_add_stdin(e->kept, data, len, end, err);
	if (!is_open(e))
		return error_set(err, ERR_CONFLICT, 0, "the program has ended");
	if (keep_stdin(e, data, len, end, err) < 0)
		return -1;
	if (len > 0 && box_stdin(e->box, EXEC_ID, data, len, err) < 0)
		return -1;
	return end ? box_stdin_end(e->box, EXEC_ID, err) : 0;
}

int run_signal(struct run *e, int signo, struct error *err)
{
	if (e->state != RUN_RUNNING)
		return error_set(err, ERR_CONFLICT, 0, "the program does not run");
	drop_kept(e);
	return box_signal(e->box, EXEC_ID, signo, err);
}

void run_cancel(struct run *e)
{
	e->muted = true;
	if (e->state == RUN_ENDED)
		return;
	e->outcome.status = EXEC_CANCELLED;
	end(e, ANSWER_LATER);
}

void run_abort(struct run *e)
{
	if (e->state == RUN_ENDED)
		return;
	e->evidence.cancelled = !e->gather.file;
	conclude(e, ANSWER_LATER);
}

void run_orphan(struct run *e)
{
	/* What is to be told of it needs the service. */
	if (e->leaving) {
		loop_cancel(e->service->config.loop, leave, e);
		give_up(e);
	}
	e->muted = true;
	e->answering = false;
	timer_free(TAKE_PTR(e->timer));
	if (e->state != RUN_ENDED && e->box)
		box_destroy(e->box);
	if (e->state != RUN_ENDED)
		set_state(e, RUN_ENDED);
	list_remove(&e->node);
	if (e->entry.place == SCHEDULER_WAITING)
		list_remove(&e->entry.node);
	leave_queue(e);
	tenant_release(TAKE_PTR(e->tenant));
	e->service = NULL;
	reap(e);
}
