/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/run.h"

#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/config/config.h"
#include "core/language/runners.h"
#include "core/run/facts.h"
#include "core/run/receipt.h"
#include "core/run/remedy.h"
#include "core/run/run_internal.h"
#include "core/run/run_record_internal.h"
#include "core/template/images.h"
#include "io/loop.h"
#include "wire/layer.h"

/*
 * Theory of operation. A run reacts to its owner, its box, its timer and the scheduler. The first
 * event that settles the outcome wins; later ones are ignored. Record and caller get the outcome
 * before anything is torn down.
 */

#define RUN_CTX_LEN 200
/* For the report of proxy or bridge: at once, between two looks, together. */
#define NETWORK_WAIT_US  2000
#define NETWORK_PAUSE_US 2000
#define NETWORK_TIME_US  (1000 * 1000ULL)

static const char *const state_names[] = {
	[RUN_QUEUED] = "queued",       [RUN_WAITING] = "waiting",   [RUN_STARTING] = "starting",
	[RUN_RUNNING] = "running",     [RUN_STOPPING] = "stopping", [RUN_KILLING] = "killing",
	[RUN_GATHERING] = "gathering", [RUN_ENDED] = "ended",
};
static_assert(ARRAY_SIZE(state_names) == RUN_STATE_COUNT, "every state has a name");

#define TO(state) (1u << RUN_##state)
/* Every state can end. WAITING -> QUEUED: the session was paused. STARTING or RUNNING -> STARTING:
 * handed over again, because nothing of it has run. */
static const unsigned transitions[] = {
	[RUN_QUEUED] = TO(WAITING) | TO(STARTING) | TO(ENDED),
	[RUN_WAITING] = TO(QUEUED) | TO(STARTING) | TO(ENDED),
	[RUN_STARTING] =
		TO(STARTING) | TO(RUNNING) | TO(STOPPING) | TO(KILLING) | TO(GATHERING) | TO(ENDED),
	[RUN_RUNNING] = TO(STARTING) | TO(STOPPING) | TO(KILLING) | TO(GATHERING) | TO(ENDED),
	[RUN_STOPPING] = TO(KILLING) | TO(GATHERING) | TO(ENDED),
	[RUN_KILLING] = TO(GATHERING) | TO(ENDED),
	[RUN_GATHERING] = TO(ENDED),
	[RUN_ENDED] = 0,
};
static_assert(ARRAY_SIZE(transitions) == RUN_STATE_COUNT, "every state has a row");

#define run_log(r, level, ...)                                                                     \
	do {                                                                                       \
		char run_ctx_[RUN_CTX_LEN];                                                        \
		if (log_is_on(level))                                                              \
			log_write(level, make_ctx(r, run_ctx_), __VA_ARGS__);                      \
	} while (0)

static const char *make_ctx(const struct run *r, char ret_ctx[RUN_CTX_LEN])
{
	const struct run_record *record = r->record;

	/* Ids are short: it fits. */
	(void)snprintf(ret_ctx, RUN_CTX_LEN, "request_id=%s execution=%s box=%s",
	               record ? record->request_id : "", record ? record->id : "",
	               r->box ? box_id(r->box) : r->decision.spec.id);
	return ret_ctx;
}

static void set_state(struct run *r, enum run_state next)
{
	assert(transitions[r->state] & (1u << next));
	run_log(r, LOG_LEVEL_DEBUG, "%s -> %s", state_names[r->state], state_names[next]);
	r->state = next;
	if (r->queued && next >= RUN_STARTING) {
		tenant_drop_queued(r->tenant);
		r->queued = false;
	}
}

/* Whether it accepts events of the box. */
static bool is_in_box(const struct run *r)
{
	return r->state >= RUN_STARTING && r->state <= RUN_KILLING;
}

static void drop_request(struct run *r)
{
	if (r->request_owned) {
		run_request_done(r->request);
		free(r->request);
	}
	r->request = NULL;
	r->request_owned = false;
}

void run_drop_request(struct run *r)
{
	if (!r->on_ended)
		drop_request(r);
}

struct run *run_new(struct run_service *s, struct run_record *record,
                    struct policy_decision *decision)
{
	struct run *r = NEW(struct run);

	list_init(&r->node);
	list_init(&r->queue_node);
	r->service = s;
	r->record = record;
	r->decision = *decision;
	/* For its readers, also after the end; a restored record has none. */
	free(record->cuts);
	record->cuts = TAKE_PTR(r->decision.cuts);
	r->arrived_us = clock_us();
	r->entry.ctx = r;
	r->left[OUTPUT_STDOUT] = r->left[OUTPUT_STDERR] = decision->output_bytes;
	r->outcome.trace.us[TRACE_DECIDED] = r->arrived_us;
	r->outcome.driver = s->config.driver->ops->name;
	r->outcome.isolation = config_isolation_name(s->config.config->isolation);
	r->outcome.handler = decision->handler;
	r->outcome.net_sent = r->outcome.net_received = r->outcome.net_connections =
		COUNTER_UNKNOWN;
	buf_init(&r->outcome.report, decision->report_bytes);
	return r;
}

void run_reap(struct run *r)
{
	struct run_service *s = r->service;

	if (r->state != RUN_ENDED || r->answering || r->leaving || r->box)
		return;
	list_remove(&r->node);
	if (r->record)
		run_record_free(r->record);
	tenant_release(r->tenant);
	image_unref(r->image);
	image_unref(r->packages);
	image_unref(r->library);
	given_done(&r->given);
	build_free(r->build);
	timer_free(r->timer);
	drop_request(r);
	policy_decision_done(&r->decision);
	outcome_done(&r->outcome);
	free(r);
	if (s && s->draining)
		run_service_check_drained(s);
}

struct exec_source run_code(const struct run *r, const char *name)
{
	const struct run_record *record = r->record;

	if (record->code)
		return (struct exec_source){name, record->code, record->code_len};
	return (struct exec_source){name, r->request->code, r->request->code_len};
}

static void on_timer(void *ctx);

static void set_timer(struct run *r, uint64_t delay_us)
{
	if (!r->timer)
		r->timer = timer_new(r->service->config.loop, on_timer, r);
	r->due_us = clock_us() + delay_us;
	timer_start(r->timer, delay_us);
}

void run_stop_clock(struct run *r)
{
	r->due_us = 0;
	if (r->timer)
		timer_stop(r->timer);
}

void run_freeze(struct run *r)
{
	uint64_t now = clock_us();

	r->left_us = r->due_us > now ? r->due_us - now : 1;
	r->frozen = true;
	run_stop_clock(r);
}

void run_thaw(struct run *r, uint64_t paused_us)
{
	if (r->started_us)
		r->started_us += paused_us;
	run_record_paused(r->record, paused_us / USEC_PER_MS);
	if (!r->frozen)
		return;
	r->frozen = false;
	set_timer(r, r->left_us);
}

/*
 * Order matters: record and answer first; then the box goes and its place is free for the next run,
 * whose box is made inside leave. The place does not wait for the client to read the answer, or a
 * few slow clients could hold all places. http.max_answers bounds the cost of unread answers.
 */
static void end_run(struct run *r)
{
	set_state(r, RUN_ENDED);
	run_stop_clock(r);
	if (r->gather.file)
		gather_cancel(&r->gather);
	r->start_us = r->outcome.start_us;
	r->outcome.receipt_form = (uint32_t)r->record->receipt;
	if (r->record->receipt == RECEIPT_SIGNED && !error_is_set(&r->failure)) {
		r->record->completed_ms = clock_real_ms();
		r->outcome.receipt = receipt_sign(r->service->config.seal, r->record, &r->outcome);
	}
	if (error_is_set(&r->failure))
		run_record_failed(r->record, &r->failure);
	else
		run_record_ended(r->record, &r->outcome, r->reset);
	if (r->on_ended) {
		r->record = NULL; /* the table's, which may free it any time */
		r->place->leave(r);
		r->on_ended(r);
	} else if (!r->answer_later) {
		run_record_add_event(r->record, RUN_EVENT_END);
		r->place->leave(r);
	} else {
		r->answering = true;
		set_timer(r, 0);
		r->place->leave(r);
	}
	run_reap(r);
}

void run_fail(struct run *r, const struct error *err)
{
	r->failure = *err;
	if (r->place->settle)
		r->place->settle(r);
	end_run(r);
}

static uint64_t growth(uint64_t now, uint64_t before)
{
	if (now == COUNTER_UNKNOWN || before == COUNTER_UNKNOWN)
		return COUNTER_UNKNOWN;
	return now < before ? now : now - before;
}

static void add_remedies(struct run *r)
{
	const struct remedy_scope scope = {
		.decision = &r->decision,
		.spec = r->box ? box_applied(r->box) : &r->decision.spec,
		.in_session = r->on_ended,
	};
	struct outcome *o = &r->outcome;

	for (unsigned i = 0; i < o->denials_count; i++)
		if (!o->denials[i].remedy)
			o->denials[i].remedy = remedy_for(&o->denials[i], o, &scope);
}

/* A box can lose its network while the run is in it. */
static enum box_network network_of(const struct run *r)
{
	enum box_network now = box_applied(r->box)->network;

	return now > r->net_entered ? now : r->net_entered;
}

void run_conclude(struct run *r)
{
	struct box_counters *c = &r->evidence.counters;
	struct outcome *out = &r->outcome;

	if (r->gather.file)
		gather_cancel(&r->gather);
	if (r->build && r->build->state == BUILD_COMPILING)
		(void)build_end(r, NULL);
	memset(c, 0xff, sizeof(*c)); /* COUNTER_UNKNOWN is all ones */
	if (r->box && r->state >= RUN_STARTING) {
		box_counters(r->box, COUNTERS_FOR_RESULT, c);
		/* The box may have run something before. */
		c->cpu_us = growth(c->cpu_us, r->before.cpu_us);
		c->oom_kills = growth(c->oom_kills, r->before.oom_kills);
		c->pids_denied = growth(c->pids_denied, r->before.pids_denied);
		if (r->beside)
			run_keep_own(r, c);
		out->layers = box_layers(r->box);
		out->start = box_start(r->box);
		out->layers_missing = LAYERS_ALL & ~out->layers;
		run_network_leave(r);
	}
	/* The kernel's counters override the agent's figures. */
	if (c->cpu_us != COUNTER_UNKNOWN)
		out->cpu_us = c->cpu_us;
	if (c->memory_peak_bytes != COUNTER_UNKNOWN || out->memory_peak_bytes == 0)
		out->memory_peak_bytes = c->memory_peak_bytes;
	out->processes_peak = c->pids_peak;
	if (!r->evidence.ended && r->started_us)
		out->duration_us = clock_us() - r->started_us;
	outcome_judge(&r->evidence, out);
	if (r->box)
		out->facts = facts_make(r->service->facts, &r->decision, box_applied(r->box),
		                        network_of(r));
	if (out->denials_count > 0)
		add_remedies(r);
	trace_note(&out->trace, TRACE_JUDGED);
	if (r->place->settle)
		r->place->settle(r);
	end_run(r);
}

void run_drop(struct run *r)
{
	set_state(r, RUN_ENDED);
	run_stop_clock(r);
	gather_cancel(&r->gather);
	run_record_set_control(r->record, NULL, NULL, NULL);
	r->record = NULL;
	r->answer_later = true;
	r->place->leave(r);
	run_reap(r);
}

/* Its caller disconnected. */
static void on_unwatched(void *ctx)
{
	struct run *r = ctx;

	if (r->state == RUN_ENDED)
		return;
	r->outcome.status = OUTCOME_CANCELLED;
	r->answer_later = true;
	end_run(r);
}

void run_abort(struct run *r)
{
	if (r->state == RUN_ENDED)
		return;
	r->answer_later = true;
	r->evidence.cancelled |= r->state != RUN_GATHERING;
	if (r->state == RUN_STARTING || r->state == RUN_RUNNING)
		r->place->stop(r, RUN_STOP_CANCEL);
	else if (!is_in_box(r) && (!r->reattached || r->state == RUN_GATHERING))
		run_conclude(r);
	/* else it is being stopped, or waits in the box behind another run and is stopped at its
	 * turn */
}

void run_end_for_memory(struct run *r)
{
	if (r->state != RUN_RUNNING)
		return;
	r->evidence.host_memory = true;
	r->place->stop(r, RUN_STOP_MEMORY);
}

void run_orphan(struct run *r)
{
	r->answering = false;
	if (r->leaving)
		run_box_leave(r); /* its report needs the service */
	timer_free(TAKE_PTR(r->timer));
	gather_cancel(&r->gather);
	if (r->state != RUN_ENDED) {
		if (r->box)
			box_destroy(r->box);
		set_state(r, RUN_ENDED);
	}
	if (r->on_ended)
		r->record = NULL; /* owned by the table */
	list_remove(&r->node);
	if (r->entry.place == SCHEDULER_WAITING)
		list_remove(&r->entry.node);
	tenant_release(TAKE_PTR(r->tenant));
	r->service = NULL;
	run_reap(r);
}

/* An agent that cannot be signalled counts as lost. */
static void send_signal(struct run *r, uint32_t id, int signo)
{
	struct error err = {0};

	if (box_signal(r->box, id, signo, &err) < 0)
		r->place->give_up(r, &err);
}

static void kill_program(struct run *r)
{
	set_state(r, RUN_KILLING);
	set_timer(r, RUN_KILL_US);
	send_signal(r, r->runner_id ? r->runner_id : r->id, SIGKILL);
}

void run_interrupt(struct run *r)
{
	if (!r->runner_id) {
		kill_program(r);
		return;
	}
	set_state(r, RUN_STOPPING);
	set_timer(r, RUN_GRACE_US);
	send_signal(r, r->id, SIGINT);
}

/*
 * Proxy and bridge answer in microseconds if they have a processor. The loop waits a moment for
 * them, and comes back if a busy host takes longer. If they hang, their last report counts.
 */
static void conclude_reported(struct run *r)
{
	uint64_t wait_us = r->awaits_network ? 0 : NETWORK_WAIT_US;

	if (box_settle_network(r->box, wait_us) || clock_us() >= r->network_by_us) {
		run_conclude(r);
		return;
	}
	if (r->state != RUN_GATHERING)
		set_state(r, RUN_GATHERING);
	r->awaits_network = true;
	set_timer(r, NETWORK_PAUSE_US);
}

static void on_timer(void *ctx)
{
	struct run *r = ctx;
	struct error err = {0};

	if (r->state == RUN_STARTING) {
		(void)error_set(
			&err, ERR_BOX_FAILED, 0, "the program was not started within %llu ms",
			(unsigned long long)(r->service->config.build_timeout_us / USEC_PER_MS));
		r->place->give_up(r, &err);
	} else if (r->state == RUN_RUNNING) {
		r->evidence.timed_out = true;
		r->place->stop(r, RUN_STOP_DEADLINE);
	} else if (r->state == RUN_STOPPING) {
		run_log(r, LOG_LEVEL_DEBUG, "ignored the interrupt");
		kill_program(r);
	} else if (r->state == RUN_KILLING) {
		(void)error_set(&err, ERR_AGENT_LOST, 0, "what was killed did not end in time");
		r->place->give_up(r, &err);
	} else if (r->state == RUN_GATHERING && r->awaits_network) {
		conclude_reported(r);
	} else if (r->state == RUN_GATHERING) {
		run_conclude(r);
	} else if (r->state == RUN_ENDED) {
		r->answering = false;
		run_record_add_event(r->record, RUN_EVENT_END);
		run_reap(r);
	}
}

void run_queue(struct run *r)
{
	set_state(r, RUN_QUEUED);
}

int run_enter(struct run *r, struct error *err)
{
	int waits = scheduler_enter(&r->service->scheduler, &r->entry, clock_us(), err);

	if (waits >= 0)
		set_state(r, RUN_WAITING);
	return waits;
}

void run_hand_over(struct run *r)
{
	struct error err = {0};

	set_state(r, RUN_STARTING);
	set_timer(r, r->service->config.build_timeout_us);
	if (r->place->hand_over(r, &err) < 0)
		run_fail(r, &err);
}

void run_launch(struct run *r)
{
	r->admitted_us = r->outcome.trace.us[TRACE_ADMITTED] = clock_us();
	r->outcome.queue_us = r->admitted_us - r->arrived_us;
	if (r->box) {
		box_counters(r->box, COUNTERS_FOR_BASELINE, &r->before);
		run_network_enter(r);
	}
	if (!r->build)
		r->build = build_new(r, r->place != &run_place_fresh);
	run_hand_over(r);
}

void run_reattach(struct run *r)
{
	r->admitted_us = clock_us();
	r->outcome.queue_us = r->past_queue_us == COUNTER_UNKNOWN ? 0 : r->past_queue_us;
	run_network_enter(r);
	if (!r->beside)
		scheduler_resume(&r->service->scheduler, &r->entry, r->admitted_us);
	set_state(r, RUN_STARTING);
	set_timer(r, r->service->config.build_timeout_us);
}

/* Reattached: time already run. */
static uint64_t past_us(const struct run_record *record)
{
	uint64_t now = clock_real_ms();

	if (record->started_ms == 0 || record->started_ms + record->paused_ms > now)
		return 0;
	return (now - record->started_ms - record->paused_ms) * USEC_PER_MS;
}

/* Reattached: from admission to start, by the record's times. */
static uint64_t past_start_us(const struct run *r)
{
	const struct run_record *record = r->record;
	uint64_t both_us = record->started_ms > record->created_ms
	                           ? (record->started_ms - record->created_ms) * USEC_PER_MS
	                           : 0;

	return both_us > r->outcome.queue_us ? both_us - r->outcome.queue_us : 0;
}

void run_started(struct run *r)
{
	uint64_t timeout_us =
		build_is_due(r) ? r->decision.compile_timeout_us : r->decision.timeout_us;
	bool starting = r->state == RUN_STARTING;
	uint64_t before_us;

	if (!is_in_box(r))
		return;
	before_us = r->reattached ? past_us(r->record) : 0;
	timeout_us = before_us < timeout_us ? timeout_us - before_us : 1;
	r->started_us = r->outcome.trace.us[TRACE_STARTED] = clock_us();
	if (starting)
		set_state(r, RUN_RUNNING);
	run_record_started(r->record);
	if (r->state == RUN_ENDED)
		return; /* the caller just cancelled it */
	r->outcome.start_us = r->reattached ? past_start_us(r) : r->started_us - r->admitted_us;
	if (r->build && !build_is_due(r) && r->outcome.start_us > r->build->duration_us)
		r->outcome.start_us -= r->build->duration_us;
	r->outcome.pooled = r->pooled;
	if (before_us < r->started_us)
		r->started_us -= before_us;
	/* Cancelled before it began: keep the timer of the stop. */
	if (!starting)
		return;
	if (r->frozen)
		r->left_us = timeout_us;
	else
		set_timer(r, timeout_us);
}

/* It had an effect, or its caller signalled it: never hand it over again. */
static void forbid_repeat(struct run *r)
{
	r->repeatable = false;
	/* A kept run needs the request at its end, to compare files. */
	if (!r->on_ended)
		drop_request(r);
}

/* The agent enforces the same limit; it is not trusted to. */
void run_add_output(struct run *r, enum output_stream stream, const char *data, size_t len)
{
	bool is_err = stream == OUTPUT_STDERR;
	size_t kept = len < r->left[stream] ? len : r->left[stream];
	bool is_over;

	if (!is_in_box(r))
		return;
	if (build_is_due(r)) {
		build_add_output(r, stream, data, len);
		return;
	}
	forbid_repeat(r);
	trace_note(&r->outcome.trace, TRACE_FIRST_OUTPUT);
	if (r->terminal) {
		run_add_shown(r, data, len);
		return;
	}
	r->left[stream] -= kept;
	*(is_err ? &r->outcome.stderr_bytes : &r->outcome.stdout_bytes) += len;
	is_over = kept < len;
	kept = run_beside_room(r, stream, kept);
	if (kept < len)
		*(is_err ? &r->evidence.err_truncated : &r->evidence.out_truncated) = true;
	if (kept > 0)
		run_record_add_output(r->record, stream, data, kept);
	run_beside_count(r);
	/* The caller may have cancelled it. */
	if (is_over && r->decision.kill_on_overflow && r->state == RUN_RUNNING)
		r->place->stop(r, RUN_STOP_OVERFLOW);
}

void run_add_report(struct run *r, const char *data, size_t len)
{
	if (!is_in_box(r))
		return;
	forbid_repeat(r);
	/* The link enforces the limit; half a report is useless. */
	if (buf_add(&r->outcome.report, data, len) < 0)
		buf_reset(&r->outcome.report);
}

void run_add_denial(struct run *r, const char *what, uint64_t count)
{
	if (!is_in_box(r))
		return;
	if (!build_is_due(r))
		forbid_repeat(r);
	outcome_add_syscall(&r->outcome, what, count);
}

static void note_given(struct run *r)
{
	const struct run_request *request = r->request;

	r->given.budget = GIVEN_HASHED;
	for (size_t i = 0; i < request->files_count; i++)
		given_add(&r->given, request->files[i].name, request->files[i].data,
		          request->files[i].len);
}

static void on_gathered(void *ctx)
{
	conclude_reported(ctx);
}

void run_done(struct run *r, const struct exec_facts *facts, struct artifacts *seen)
{
	if (!is_in_box(r))
		return;
	trace_note(&r->outcome.trace, TRACE_DONE);
	box_ask_network(r->box);
	r->network_by_us = clock_us() + NETWORK_TIME_US;
	outcome_take_facts(facts, r->terminal ? UINT64_MAX : r->decision.output_bytes, &r->evidence,
	                   &r->outcome);
	r->gather.into = &r->outcome.artifacts;
	r->gather.seen = seen;
	r->gather.given = &r->given;
	r->gather.on_over = on_gathered;
	r->gather.ctx = r;
	if (facts->changed_since_ns && r->on_ended)
		note_given(r);
	if (!facts->changed_since_ns ||
	    !gather_start(&r->gather, r->box, facts->changed_since_ns)) {
		conclude_reported(r);
		return;
	}
	set_state(r, RUN_GATHERING);
	set_timer(r, ARTIFACTS_TIME_US);
}

int run_stdin(struct run *r, const void *data, size_t len, bool end, struct error *err)
{
	struct error too_much = {0};

	if (r->state < RUN_STARTING || (build_is_due(r) && is_in_box(r)))
		return run_request_add_stdin(r->request, data, len, end, err);
	if (!is_in_box(r))
		return error_set(err, ERR_CONFLICT, 0, "the program has ended");
	/* A repeated hand-over repeats all input, within bounds. */
	if (r->repeatable && r->request &&
	    run_request_add_stdin(r->request, data, len, end, &too_much) < 0)
		forbid_repeat(r);
	if (len > 0 && box_stdin(r->box, r->id, data, len, err) < 0)
		return -1;
	return end ? box_stdin_end(r->box, r->id, err) : 0;
}

int run_signal(struct run *r, int signo, struct error *err)
{
	if (r->state != RUN_RUNNING)
		return error_set(err, ERR_CONFLICT, 0, "the program is not running");
	if (!build_is_due(r))
		forbid_repeat(r);
	return box_signal(r->box, r->id, signo, err);
}

/* If it fails inside its caller's call, the answer comes from the loop. */
static void launch_one_shot(struct run *r)
{
	r->answer_later = true;
	run_launch(r);
	if (r->state == RUN_ENDED)
		return;
	r->answer_later = false;
	if (!r->repeatable && !build_is_due(r))
		drop_request(r);
}

static void on_turn(void *ctx)
{
	launch_one_shot(ctx);
}

static void on_cancel(void *ctx)
{
	run_abort(ctx);
}

static struct run *new_one_shot(struct run_service *s, const struct run_request *request,
                                struct policy_decision *decision)
{
	const struct run_record_new what = {
		.request_id = request->request_id,
		.key_id = request->key_id,
		.tenant = request->tenant,
		.language = decision->runner->name,
		.code = request->code,
		.code_len = request->code_len,
		.timeout_us = decision->timeout_us,
		.receipt = request->receipt,
	};
	struct run *r = run_new(s, run_record_new_unkept(&what, s->config.audit), decision);

	run_record_set_control(r->record, on_cancel, NULL, r);
	r->record->on_unwatched = on_unwatched;
	r->place = &run_place_fresh;
	r->entry.on_turn = on_turn;
	r->request = (struct run_request *)request; // NOLINT: borrowed inside run_start
	r->tenant = run_service_tenant(s, request->tenant);
	tenant_hold(r->tenant);
	return r;
}

/* Get a place, or a queue entry, which counts for the tenant's quota. */
static int enter_scheduler(struct run *r, struct error *err)
{
	int waits = run_box_prepare(r, err) < 0 ? -1 : run_enter(r, err);

	if (waits <= 0)
		return waits;
	if (tenant_take_queued(r->tenant, &r->service->scheduler, err) < 0) {
		scheduler_out(&r->service->scheduler, &r->entry, r->arrived_us);
		return -1;
	}
	r->queued = true;
	return waits;
}

int run_start(struct run_service *s, const struct run_request *request,
              struct run_record **ret_record, struct error *err)
{
	struct policy_decision decision;
	struct policy_stack stack;
	struct run *r;
	int waits;

	if (s->draining)
		return error_stopping(err);
	if (run_service_choose(s, run_service_tenant(s, request->tenant), request->policy, &stack,
	                       err) < 0 ||
	    policy_decide(&s->rules, &stack, request, &decision, err) < 0)
		return -1;
	r = new_one_shot(s, request, &decision);
	waits = enter_scheduler(r, err);
	if (waits < 0) {
		r->request = NULL;
		set_state(r, RUN_ENDED);
		run_reap(r);
		return -1;
	}
	note_given(r);
	*ret_record = r->record;
	if (waits == 0)
		launch_one_shot(r);
	/* Borrowed until now; copy it if still needed. */
	r->request = r->state != RUN_ENDED && r->request ? run_request_copy(request) : NULL;
	r->request_owned = r->request;
	return 0;
}
