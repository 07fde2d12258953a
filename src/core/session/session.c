/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session.h"

#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/runners.h"
#include "core/observe/metrics.h"
#include "core/session/session_audit.h"
#include "core/session/session_build.h"
#include "core/session/session_internal.h"
#include "core/session/session_pause.h"
#include "core/session/session_reattach.h"
#include "core/session/session_row.h"
#include "core/template/images.h"
#include "io/loop.h"

/*
 * Theory of operation. A session has a state, a box, a queue of runs and at most one current run.
 * It reacts to its owner, its box, its timer and the scheduler. None of these nests in another of
 * the same session, except that a run may fail at once while the queue is pumped (session.pumping).
 *
 * One timer serves three clocks: building the box, idle time and lifetime. It is set to the nearest
 * and, if the session was used, set again when it fires. So using a session costs no timer.
 *
 * A deleted session leaves the tables at once; it is freed when its box is gone.
 */

static const char *const state_names[] = {
	[SESSION_CREATING] = "creating",     [SESSION_READY] = "ready",
	[SESSION_RUNNING] = "running",       [SESSION_PAUSED] = "paused",
	[SESSION_TERMINATED] = "terminated", [SESSION_FAILED] = "failed",
};
static_assert(ARRAY_SIZE(state_names) == SESSION_STATE_COUNT, "every state has a name");

#define TO(state) (1u << SESSION_##state)
#define ENDS      (TO(TERMINATED) | TO(FAILED))
static const unsigned transitions[] = {
	[SESSION_CREATING] = TO(READY) | ENDS,
	[SESSION_READY] = TO(RUNNING) | TO(PAUSED) | ENDS,
	[SESSION_RUNNING] = TO(READY) | TO(PAUSED) | ENDS,
	[SESSION_PAUSED] = TO(READY) | TO(RUNNING) | ENDS,
	[SESSION_TERMINATED] = 0,
	[SESSION_FAILED] = 0,
};
static_assert(ARRAY_SIZE(transitions) == SESSION_STATE_COUNT, "every state has a row");

const char *session_state_name(enum session_state state)
{
	return state_names[state];
}

const char *session_log_ctx(const struct session *session, char ret_ctx[SESSION_CTX_LEN])
{
	struct run_record_info info = {.id = "", .request_id = session->spec.request_id};

	if (session->current && session->current->record)
		run_record_info(session->current->record, &info);
	/* Ids are short: it fits. */
	(void)snprintf(ret_ctx, SESSION_CTX_LEN, "request_id=%s session=%s box=%s%s%s",
	               info.request_id, session->id, session->spec.id,
	               info.id[0] ? " execution=" : "", info.id);
	return ret_ctx;
}

void session_service_watch(struct session_service *s, const struct session_watcher *watcher)
{
	s->watcher = watcher ? *watcher : (struct session_watcher){0};
}

void session_changed(const struct session *session, enum session_change change, const char *path)
{
	const struct session_watcher *w = session->service ? &session->service->watcher : NULL;

	if (w && w->on_change)
		w->on_change(w->ctx, session, change, path);
}

void session_set_state(struct session *session, enum session_state next)
{
	enum session_state before = session->state;

	assert(transitions[before] & (1u << next));
	session_log(session, LOG_LEVEL_DEBUG, "%s -> %s", state_names[session->state],
	            state_names[next]);
	session->state = next;
	session->updated_ms = clock_real_ms();
	session->steps[session->steps_count++ % SESSION_HISTORY_MAX] =
		(struct session_step){next, session->updated_ms};
	session_row_changed(session);
	/* A list shows which sessions exist, not whether they are busy. */
	if (before == SESSION_CREATING || session_is_over(session))
		session_changed(session, SESSION_CHANGE_LIST, NULL);
	session_arm(session);
}

size_t session_history(const struct session *session,
                       struct session_step ret_steps[SESSION_HISTORY_MAX])
{
	size_t count = session->steps_count;
	size_t kept = count < SESSION_HISTORY_MAX ? count : SESSION_HISTORY_MAX;

	for (size_t i = 0; i < kept; i++)
		ret_steps[i] = session->steps[(count - kept + i) % SESSION_HISTORY_MAX];
	return kept;
}

int session_refuse(const struct session *session, const char *what, struct error *err)
{
	return error_set(err, ERR_CONFLICT, 0, "session %s is %s and cannot be %s", session->id,
	                 state_names[session->state], what);
}

void session_touch(struct session *session)
{
	session->active_us = clock_us();
	session->active_ms = clock_real_ms();
	session->updated_ms = session->active_ms;
	session_row_changed(session);
}

static uint64_t next_end(const struct session *session)
{
	uint64_t end = session->created_us + session->lifetime_us;
	uint64_t other = end;

	if (session_awaits_box(session))
		other = end;
	else if (session->state == SESSION_CREATING)
		other = session->making_us + session->service->config.runs->config.build_timeout_us;
	else if ((session->state == SESSION_READY && session->files_count == 0 &&
	          session->beside_count == 0) ||
	         session->state == SESSION_PAUSED) /* work keeps it alive, up to its lifetime */
		other = session->active_us + session->idle_us;
	return other < end ? other : end;
}

void session_arm(struct session *session)
{
	uint64_t now = clock_us();
	uint64_t end;

	if (session_is_over(session)) {
		timer_stop(session->timer);
		return;
	}
	end = next_end(session);
	timer_start(session->timer, end > now ? end - now : 0);
}

static void on_timer(void *ctx)
{
	struct session *session = ctx;
	struct error err = {0};
	uint64_t now = clock_us();

	if (now < next_end(session)) {
		session_arm(session);
	} else if (now >= session->created_us + session->lifetime_us) {
		session_terminate(session, "its lifetime is over");
	} else if (session->state == SESSION_CREATING) {
		(void)error_set(&err, ERR_BOX_FAILED, 0, "the box was not ready in time");
		session_fail(session, &err);
	} else {
		session_terminate(session, "it was idle for longer than its idle time-out");
	}
}

struct session *session_new_blank(struct session_service *s)
{
	struct session *session = NEW(struct session);

	list_init(&session->node);
	list_init(&session->ended_node);
	list_init(&session->owner_node);
	list_init(&session->owner_ended_node);
	list_init(&session->queue);
	list_init(&session->beside);
	list_init(&session->acks);
	list_init(&session->runners);
	list_init(&session->dirty.node);
	list_init(&session->files);
	list_init(&session->ports);
	list_init(&session->port_listings);
	list_init(&session->settle_waits);
	session->service = s;
	session->secrets = str_list_copy(NULL);
	return session;
}

/* Wall-clock time on the monotonic clock. */
static uint64_t to_monotonic_us(uint64_t at_ms)
{
	uint64_t now_ms = clock_real_ms(), now = clock_us();
	uint64_t ago = now_ms > at_ms ? (now_ms - at_ms) * USEC_PER_MS : 0;

	return now > ago ? now - ago : 0;
}

void session_wake(struct session *session)
{
	struct loop *loop = session->service->config.loop;
	size_t steps = session->steps_count;

	session->created_us = to_monotonic_us(session->created_ms);
	session->active_us = to_monotonic_us(session->active_ms);
	session->making_us = clock_us();
	session->paused_us =
		to_monotonic_us(steps > 0 ? session->steps[(steps - 1) % SESSION_HISTORY_MAX].at_ms
	                                  : session->updated_ms);
	session->timer = timer_new(loop, on_timer, session);
}

struct session *session_new(struct session_service *s, const struct session_request *request,
                            const struct policy_decision *decision)
{
	struct session *session = session_new_blank(s);

	/* Checked when the principal was made. */
	(void)!str_copy(session->tenant, sizeof(session->tenant),
	                request->tenant ? request->tenant : TENANT_DEFAULT);
	session->account = run_service_tenant(s->config.runs, session->tenant);
	tenant_hold(session->account);
	session->language = xstrdup(decision->runner->name);
	session->agent_id = request->agent_id ? xstrdup(request->agent_id) : NULL;
	session->key_id = request->key_id ? xstrdup(request->key_id) : NULL;
	session->env = str_list_copy(request->env);
	str_list_free(session->secrets);
	session->secrets = str_list_copy(request->secrets);
	session->mcp = request->mcp ? str_list_copy(request->mcp) : NULL;
	session->network_allow =
		request->network_allow ? str_list_copy(request->network_allow) : NULL;
	session->template = template_ref(request->template);
	session->image = image_ref(session->template ? session->template->image : NULL);
	session->packages = image_ref(session->template ? session->template->packages : NULL);
	session->mode = decision->mode;
	session->spec = decision->spec;
	(void)box_rules_ref(session->spec.rules);
	(void)box_rules_ref(session->spec.tools);
	(void)!str_copy(session->spec.tenant, sizeof(session->spec.tenant), session->tenant);
	if (request->request_id) /* a longer one is not our id */
		(void)!str_copy(session->spec.request_id, BOX_REQUEST_LEN, request->request_id);
	session->stack = decision->stack;
	policy_stack_ref(&session->stack);
	session->lifetime_us = decision->lifetime_us;
	session->idle_us = decision->idle_us;
	session->timer = timer_new(s->config.loop, on_timer, session);
	session_touch(session);
	session->created_us = session->making_us = session->active_us;
	session->created_ms = session->active_ms;
	session->steps[session->steps_count++] =
		(struct session_step){session->state, session->created_ms};
	return session;
}

const struct template *session_template(const struct session *session)
{
	return session->template;
}

const char *session_policy(const struct session *session)
{
	return session->stack.chosen ? session->stack.chosen->name : NULL;
}

const char *session_engine(const struct session *session)
{
	return session->spec.engine;
}

void session_leave_root(struct session *session)
{
	if (session->box || !session_is_over(session))
		return;
	if (session->template) {
		free(session->past_template);
		session->past_template = xstrdup(session->template->spec.id);
	}
	template_unref(TAKE_PTR(session->template));
	image_unref(TAKE_PTR(session->image));
	image_unref(TAKE_PTR(session->packages));
	image_unref(TAKE_PTR(session->library));
}

void session_reap(struct session *session)
{
	struct session_service *s = session->service;
	struct session_runner *runner;

	if (!session->deleted || session->box || session->current || session->beside_count > 0)
		return;
	session_row_gone(session);
	list_remove(&session->node);
	session_drop_acks(session);
	LIST_FOREACH (runner, &session->runners, struct session_runner, node) {
		list_remove(&runner->node);
		free(runner);
	}
	tenant_release(session->account);
	policy_stack_unref(&session->stack);
	timer_free(session->timer);
	timer_free(session->unknown_timer);
	timer_free(session->settle_timer);
	free(session->language);
	free(session->dependencies);
	free(session->cuts);
	free(session->notes);
	free(session->agent_id);
	free(session->past_template);
	free(session->past_policy);
	free(session->past_root);
	free(session->past_spec);
	box_rules_unref(session->spec.rules);
	box_rules_unref(session->spec.tools);
	str_list_free(session->mcp);
	str_list_free(session->network_allow);
	template_unref(session->template);
	image_unref(session->image);
	image_unref(session->packages);
	image_unref(session->library);
	free(session->key_id);
	str_list_free(session->env);
	str_list_free(session->secrets);
	free(session->reason);
	free(session->network_lost);
	artifacts_done(&session->seen);
	free(session);
	if (s)
		session_service_check_drained(s);
}

static void end_session(struct session *session, enum session_state state, const char *reason)
{
	struct session_info info;
	struct error err = {0};

	session_set_state(session, state);
	session->ended_ms = session->updated_ms;
	/* May hold secrets, and be large. */
	str_list_free(session->env);
	session->env = str_list_copy(NULL);
	session->reason = xstrdup(reason);
	session->resuming = false;
	(void)error_set(&err, ERR_CONFLICT, 0, "session %s is %s", session->id, state_names[state]);
	session_files_end(session, &err);
	session_ports_end(session, &err);
	session_unsettle(session, &err);
	metrics_count_for(session->service->config.metrics, METRIC_SESSION_ENDS,
	                  METRIC_LABELS(state_names[state]), 1);
	session_info(session, &info);
	session_audit(session->service->config.audit, "session.end", &info);
	session_service_ended(session);
}

void session_terminate(struct session *session, const char *reason)
{
	if (session_is_over(session))
		return;
	end_session(session, SESSION_TERMINATED, reason);
	session_queue_end(session, false, NULL); /* outcomes are read from the box */
	session_destroy_box(session);
	session_leave_root(session);
}

void session_fail(struct session *session, const struct error *err)
{
	bool never_ready = session->state == SESSION_CREATING;

	if (session_is_over(session))
		return;
	end_session(session, SESSION_FAILED, err->msg);
	session_queue_end(session, true, never_ready ? err : NULL);
	session_destroy_box(session);
	session_leave_root(session);
}

int session_keepalive(struct session *session, struct error *err)
{
	if (session_is_over(session))
		return session_refuse(session, "kept alive", err);
	session_touch(session);
	return 0;
}

int session_interrupt(struct session *session, struct error *err)
{
	if (session->state != SESSION_RUNNING || !session->current ||
	    session->current->state != RUN_RUNNING)
		return error_set(err, ERR_CONFLICT, 0, "nothing runs in session %s", session->id);
	return run_signal(session->current, SIGINT, err);
}

void session_counters(struct session *session, struct box_counters *ret_counters)
{
	/* COUNTER_UNKNOWN is all ones. */
	memset(ret_counters, 0xff, sizeof(*ret_counters));
	if (session->box)
		box_counters(session->box, COUNTERS_FOR_VIEW, ret_counters);
}

void session_info(const struct session *session, struct session_info *ret_info)
{
	const char *template = session->past_template ? session->past_template : TEMPLATE_DEFAULT;
	const struct policy *policy = session->stack.own;
	const struct driver *engine =
		driver_find(session->service->config.driver, session->spec.engine);

	if (session->template)
		template = session->template->spec.id;
	if (session->stack.chosen)
		policy = session->stack.chosen;
	*ret_info = (struct session_info){
		.tenant = session->tenant,
		.id = session->id,
		.language = session->language,
		.agent_id = session->agent_id,
		.template_id = template,
		.state = session->state,
		.mode = session->mode,
		.box_id = session->box ? box_id(session->box) : NULL,
		.container_id = session->spec.id[0] ? session->spec.id : NULL,
		.engine = engine ? engine->name : session->spec.engine,
		.grade = engine ? engine->caps.grade : BOX_GRADE_NAMESPACE,
		.network = session->spec.network,
		.network_allow = session->network_allow,
		.mcp = session->mcp,
		.env = session->env,
		.secrets = session->secrets,
		.limits = session->spec.limits,
		.idle_timeout_us = session->idle_us,
		.lifetime_us = session->lifetime_us,
		.created_ms = session->created_ms,
		.updated_ms = session->updated_ms,
		.last_activity_ms = session->active_ms,
		.ended_ms = session->ended_ms,
		.reason = session->reason,
		.request_id = session->spec.request_id,
		.key_id = session->key_id,
		.queued = session->queued,
		.background = session->beside_count,
		.executions = session->executions,
		.dependencies = session->dependencies,
		.cuts = session->cuts,
		.notes = session->notes,
	};
	if (session->past_policy)
		ret_info->policy = session->past_policy;
	else if (policy)
		ret_info->policy = policy->name;
}

void session_set_dependencies(struct session *session, const char *text)
{
	free(session->dependencies);
	session->dependencies = xstrdup(text);
	session_row_changed(session);
}
