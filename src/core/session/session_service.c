/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/map.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/runners.h"
#include "core/observe/metrics.h"
#include "core/run/host_memory.h"
#include "core/session/memory_guard.h"
#include "core/session/session_audit.h"
#include "core/session/session_beside.h"
#include "core/session/session_build.h"
#include "core/session/session_internal.h"
#include "core/session/session_pause.h"
#include "core/session/session_reattach.h"
#include "core/session/session_row.h"
#include "core/template/templates.h"
#include "io/loop.h"

#define SESSION_BOXES_LEFT 4 /* part of the boxes that sessions leave to runs */

/*
 * Theory of operation. The configuration bounds live sessions; as many ended ones are remembered,
 * then the first to end is forgotten. Every look-up is by map: only listings and the drain walk.
 */

static void on_drain_timer(void *ctx)
{
	struct session_service *s = ctx;
	void (*on_drained)(void *ctx) = TAKE_PTR(s->on_drained);

	if (on_drained)
		on_drained(s->drained_ctx);
}

/* What an execution made in a box of its own is gone. */
static bool has_files(void *ctx, const char *tenant, const char *session_id)
{
	const struct session *session = session_find(ctx, tenant, session_id);

	return session && session_mode_has_box(session->mode) && !session_is_over(session);
}

struct session_service *session_service_new(const struct session_service_config *config)
{
	struct session_service *s = NEW(struct session_service);

	s->config = *config;
	s->rules = &config->runs->rules;
	s->scheduler = &config->runs->scheduler;
	s->owners = map_new();
	list_init(&s->all);
	list_init(&s->ended);
	list_init(&s->deleted);
	s->drain_timer = timer_new(config->loop, on_drain_timer, s);
	run_records_set_files(config->executions, has_files, s);
	s->memory_guard = memory_guard_new(
		&(struct memory_guard_config){.loop = config->loop,
	                                      .sessions = s,
	                                      .metrics = config->metrics,
	                                      .low_bytes = run_service_memory_low(config->runs),
	                                      .measure = host_memory_available});
	return s;
}

static void drop_run(struct run *run)
{
	session_queue_detach(run);
	run_drop(run);
}

static bool is_left(const struct session *session)
{
	return session->service->leaving && session->spec.keep && !session_is_over(session);
}

/* Without callbacks; freed with its box. */
static void orphan_session(struct session *session)
{
	bool left = is_left(session);
	struct run *run;

	if (left)
		session->box = NULL; /* the driver keeps it */
	else if (!session_is_over(session))
		session_set_state(session, SESSION_TERMINATED);
	if (session_awaits_box(session))
		list_remove(&session->entry.node);
	session_files_drop(session);
	session_ports_drop(session);
	LIST_FOREACH (run, &session->queue, struct run, queue_node)
		drop_run(run);
	if (session->current)
		drop_run(session->current);
	LIST_FOREACH (run, &session->beside, struct run, queue_node)
		drop_run(run);
	timer_free(TAKE_PTR(session->timer));
	timer_free(TAKE_PTR(session->unknown_timer));
	session_unsettle(session, &(struct error){.code = ERR_UNAVAILABLE,
	                                          .sys = ECANCELED,
	                                          .msg = "the daemon is stopping"});
	timer_free(TAKE_PTR(session->settle_timer));
	session_owner_leave(session);
	list_remove(&session->node);
	session->deleted = true;
	tenant_release(TAKE_PTR(session->account));
	session_row_gone(session);
	session_drop_acks(session); /* later ends are not acknowledged */
	session->service = NULL;
	if (session->box)
		box_destroy(session->box);
	session_reap(session);
}

void session_service_free(struct session_service *s)
{
	struct session *session;

	if (!s)
		return;
	run_records_set_files(s->config.executions, NULL, NULL);
	memory_guard_free(s->memory_guard);
	LIST_FOREACH (session, &s->all, struct session, node)
		orphan_session(session);
	LIST_FOREACH (session, &s->deleted, struct session, node)
		orphan_session(session);
	map_free(s->owners);
	timer_free(s->drain_timer);
	free(s);
}

void session_service_stats(const struct session_service *s, struct session_service_stats *ret_stats)
{
	*ret_stats = (struct session_service_stats){
		.live = s->count - s->ended_count,
		.boxes = s->boxes,
		.ports = s->ports,
		.beside = s->beside,
		.terminals = s->terminals,
	};
}

static const char *tenant_of(const struct session_request *request)
{
	return request->tenant ? request->tenant : TENANT_DEFAULT;
}

static int check_names(const struct session_request *request, struct error *err)
{
	if (request->id && !id_is_valid(request->id, SESSION_ID_MAX))
		return error_field(err, "session_id", "must be 1 to %d of A-Z a-z 0-9 _ -",
		                   SESSION_ID_MAX);
	if (request->agent_id && !id_is_valid(request->agent_id, SESSION_ID_MAX))
		return error_field(err, "agent_id", "must be 1 to %d of A-Z a-z 0-9 _ -",
		                   SESSION_ID_MAX);
	return 0;
}

/* Boxes are shared with one-shot runs: leave enough for those. */
bool session_service_has_box(const struct session_service *s)
{
	size_t all = s->scheduler->config.boxes_max;
	size_t most = all - all / SESSION_BOXES_LEFT;

	return all == 0 || (s->boxes < most && s->scheduler->boxes < all);
}

static int check_room(const struct session_service *s, enum session_mode mode, struct error *err)
{
	size_t live = s->count - s->ended_count;

	if (live >= s->config.config->sessions_max)
		return error_set(err, ERR_BUSY, 0,
		                 "there are %zu sessions, as many as this daemon may have "
		                 "(sessions.max): end one",
		                 live);
	if (session_mode_has_box(mode) && !session_service_has_box(s))
		return error_set(err, ERR_BUSY, 0,
		                 "sessions have %zu boxes, and may have no more: end one",
		                 s->boxes);
	return 0;
}

static bool same_env(char *const *a, char *const *b)
{
	for (; *a && *b && str_equal(*a, *b); a++, b++)
		;
	return !*a && !*b;
}

/* NULL is an empty list. */
static bool same_list(char *const *a, char *const *b)
{
	static char *const none[] = {NULL};

	return same_env(a ? a : none, b ? b : none);
}

static bool is_met(uint64_t asked, uint64_t has)
{
	return asked == 0 || asked == has;
}

/* By name: policies may have been reloaded. */
static bool same_policy(const struct policy *a, const struct policy *b)
{
	return a == b || (a && b && str_equal(a->name, b->name));
}

/* NULL: none. */
static bool same_names(char *const *a, char *const *b)
{
	for (; a && *a && *b; a++, b++)
		if (!str_equal(*a, *b))
			return false;
	return (!a || !*a) && !*b;
}

/* What its boxes can reach. */
static bool has_same_reach(const struct session *session, const struct session_request *request,
                           const struct policy_decision *decision)
{
	return session->spec.network == decision->spec.network &&
	       !session->network_allow == !request->network_allow &&
	       same_list(session->network_allow, request->network_allow) &&
	       same_list(session->mcp, request->mcp) &&
	       same_names(request->secrets, session->secrets);
}

static bool is_reusable(const struct session *session, const struct session_request *request,
                        const struct policy_decision *decision)
{
	const struct box_limits *limits = &session->spec.limits;

	return session->state == SESSION_READY && session->queued == 0 &&
	       session->template == request->template &&
	       same_policy(session->stack.own, decision->stack.own) &&
	       same_policy(session->stack.chosen, decision->stack.chosen) &&
	       has_same_reach(session, request, decision) &&
	       (!request->id || str_equal(request->id, session->id)) &&
	       (!request->env || same_env(request->env, session->env)) &&
	       is_met(request->memory_bytes, limits->memory_bytes) &&
	       is_met(request->disk_bytes, limits->workspace_bytes) &&
	       is_met(request->cpu_millicores, limits->cpu_millicores) &&
	       is_met(request->max_processes, limits->pids);
}

static struct session *find_reusable(const struct session_service *s,
                                     const struct session_request *request,
                                     const struct policy_decision *decision)
{
	const struct session_owner *owner = session_owner_of(s, tenant_of(request));
	struct session *session;

	if (request->mode != SESSION_PERSISTENT || !request->agent_id || !owner)
		return NULL;
	session = map_get(owner->by_agent, request->agent_id);
	return session && is_reusable(session, request, decision) ? session : NULL;
}

static void reuse_session(struct session *session, const struct session_request *request,
                          const struct policy_decision *decision)
{
	uint64_t idle = decision->idle_us;

	if (request->language) {
		free(session->language);
		session->language = xstrdup(decision->runner->name);
	}
	if (request->idle_timeout_us)
		session->idle_us = idle < session->lifetime_us ? idle : session->lifetime_us;
	session_touch(session);
	session_arm(session);
}

static bool can_keep(const struct session_service *s, const struct session *session)
{
	const struct driver *d = driver_find(s->config.driver, session->spec.engine);

	return d && d->caps.can_keep;
}

int session_open(struct session_service *s, struct session *session,
                 const struct policy_decision *decision, struct error *err)
{
	if (!session_mode_has_box(session->mode)) {
		session_set_state(session, SESSION_READY);
		return 0;
	}
	session->spec.keep = can_keep(s, session);
	if (decision && session_take_box(session, decision))
		s->boxes++;
	else if (session_build_box(session, err) < 0)
		return -1;
	session_arm(session);
	return 0;
}

static int make_session(struct session_service *s, const struct session_request *request,
                        const struct policy_decision *decision, struct session **ret_session,
                        struct error *err)
{
	struct session_info info;
	struct session *session;

	if (request->id && session_find(s, tenant_of(request), request->id))
		return error_set(err, ERR_CONFLICT, 0, "session %s exists", request->id);
	if (check_room(s, decision->mode, err) < 0)
		return -1;
	session = session_new(s, request, decision);
	session_owner_enter(session, request->id);
	if (session_owner_take(session, err) < 0 || session_open(s, session, decision, err) < 0) {
		session_owner_drop(session);
		session_owner_drop_box(session);
		session_owner_leave(session);
		session->deleted = true;
		session_reap(session);
		return -1;
	}
	list_append(&s->all, &session->node);
	s->count++;
	metrics_count_for(s->config.metrics, METRIC_SESSIONS,
	                  METRIC_LABELS(session_mode_name(session->mode)), 1);
	if (session->template)
		templates_use(s->config.templates, session->template);
	session_info(session, &info);
	session_audit(s->config.audit, "session.create", &info);
	*ret_session = session;
	return 0;
}

int session_find_template(const struct session_service *s, struct session_request *request,
                          struct error *err)
{
	if (!s->config.templates)
		return request->template_id
		               ? error_field(err, "template_id", "there are no templates")
		               : 0;
	if (!request->template) {
		request->template = templates_get(s->config.templates, tenant_of(request),
		                                  request->template_id, err);
		if (!request->template)
			return -1;
		/* The table keeps it during the call. */
		template_unref(request->template);
	}
	if (request->idle_timeout_us == 0)
		request->idle_timeout_us = request->template->spec.timeout_us;
	return 0;
}

int session_create(struct session_service *s, const struct session_request *asked,
                   struct session **ret_session, bool *ret_reused, struct error *err)
{
	struct session_request filled = *asked, *request = &filled;
	struct policy_decision decision;
	struct policy_stack stack;
	struct session *session;
	bool reused;
	int r = 0;

	if (s->draining)
		return error_stopping(err);
	if (check_names(request, err) < 0 || session_find_template(s, request, err) < 0 ||
	    run_service_choose(s->config.runs, run_service_tenant(s->config.runs, request->tenant),
	                       request->policy, &stack, err) < 0 ||
	    policy_decide_session(s->rules, &stack, request, &decision, err) < 0)
		return -1;
	session = find_reusable(s, request, &decision);
	reused = session;
	if (reused)
		reuse_session(session, request, &decision);
	else
		r = make_session(s, request, &decision, &session, err);
	if (r == 0 && session) {
		free(session->cuts);
		session->cuts = TAKE_PTR(decision.cuts);
	}
	policy_decision_done(&decision);
	if (r < 0)
		return -1;
	*ret_session = session;
	*ret_reused = reused;
	return 0;
}

void session_explain(const struct session_service *s, const struct session_request *asked,
                     struct policy_explanation *ret_explanation)
{
	struct session_request request = *asked;
	struct policy_stack stack;
	struct error *err = &ret_explanation->err;

	*ret_explanation = (struct policy_explanation){0};
	if (check_names(&request, err) == 0 && session_find_template(s, &request, err) == 0 &&
	    run_service_choose(s->config.runs, run_service_tenant(s->config.runs, request.tenant),
	                       request.policy, &stack, err) == 0)
		policy_explain_session(s->rules, &stack, &request, ret_explanation);
}

static void forget_session(struct session *session);

void session_service_ended(struct session *session)
{
	struct session_service *s = session->service;

	if (session->template)
		templates_release(s->config.templates, session->template);
	session_owner_ended(session);
	list_append(&s->ended, &session->ended_node);
	s->ended_count++;
	/* A drain walks the list. */
	if (!s->draining && s->ended_count > s->config.config->sessions_max)
		forget_session(session_owner_oldest(session));
}

void session_remember(struct session *session)
{
	struct session_service *s = session->service;
	cleanup_free char *id = xstrdup(session->id);

	session_owner_enter(session, id);
	list_append(&s->all, &session->node);
	s->count++;
	session_service_ended(session);
}

/* Drop an ended one from memory; the store keeps it. */
static void forget_session(struct session *session)
{
	struct session_service *s = session->service;

	list_remove(&session->ended_node);
	s->ended_count--;
	list_remove(&session->node);
	s->count--;
	session_owner_leave(session);
	run_records_forget(s->config.executions, session->tenant, session->id);
	list_append(&s->deleted, &session->node);
	session_row_gone(session);
	session->deleted = true;
	session_reap(session);
}

/* The deletion is on disk or on its way. */
static void remove_session(struct session *session)
{
	session_terminate(session, "it was deleted");
	run_records_delete(session->service->config.executions, session->tenant, session->id);
	list_remove(&session->dirty.node);
	forget_session(session);
}

void session_delete(struct session *session)
{
	struct error err = {0};

	/* It ends; retention removes the rest. */
	if (session->service->config.store && session_row_delete(session, NULL, NULL, &err) < 0)
		log_error("delete a session from the store", &err);
	remove_session(session);
}

struct removal {
	struct session_service *service;
	char tenant[TENANT_NAME_MAX + 1];
	char id[SESSION_ID_MAX + 1];
	uint64_t created_ms;
	session_kept_fn *fn;
	void *ctx;
};

/* After an error the service may be gone. */
static void on_removed(void *ctx, const struct error *err)
{
	cleanup_free struct removal *r = ctx;
	struct session *session = err ? NULL : session_find(r->service, r->tenant, r->id);

	/* Another request may have deleted and recreated it. */
	if (session && session->created_ms == r->created_ms)
		remove_session(session);
	r->fn(r->ctx, err);
}

int session_delete_kept(struct session *session, session_kept_fn *fn, void *ctx, struct error *err)
{
	struct removal *r;

	if (!session->service->config.store) {
		remove_session(session);
		return 1;
	}
	r = NEW(struct removal);
	*r = (struct removal){.service = session->service,
	                      .created_ms = session->created_ms,
	                      .fn = fn,
	                      .ctx = ctx};
	memcpy(r->tenant, session->tenant, sizeof(r->tenant));
	memcpy(r->id, session->id, sizeof(r->id));
	if (session_row_delete(session, on_removed, r, err) == 0)
		return 0;
	free(r);
	return -1;
}

int session_when_kept(struct session *session, session_kept_fn *fn, void *ctx, struct error *err)
{
	if (session->settling) {
		session_when_settled(session, fn, ctx);
		return 0;
	}
	return session_row_when_written(session, fn, ctx, err);
}

void session_expire(struct session_service *s, const char *tenant, const char *id,
                    uint64_t created_ms)
{
	struct session *session = session_find(s, tenant, id);

	if (!session || session->created_ms != created_ms || !session_is_over(session))
		return;
	list_remove(&session->dirty.node);
	forget_session(session);
}

void session_service_check_drained(struct session_service *s)
{
	if (s->on_drained && s->boxes <= s->left_boxes && s->runs <= s->left_runs)
		timer_start(s->drain_timer, 0);
}

void session_service_leave(struct session_service *s, void (*on_drained)(void *ctx), void *ctx)
{
	struct session *session;

	s->draining = s->leaving = true;
	s->on_drained = on_drained;
	s->drained_ctx = ctx;
	LIST_FOREACH (session, &s->all, struct session, node) {
		if (!is_left(session)) {
			session_terminate(session, "the daemon is stopping");
			continue;
		}
		/* The next daemon decides. */
		session_withdraw_box(session);
		timer_stop(session->timer);
		if (session->unknown_timer)
			timer_stop(session->unknown_timer);
		if (session->current)
			run_stop_clock(session->current);
		session_beside_stop_clocks(session);
		s->left_boxes += session->box != NULL;
		s->left_runs +=
			session->queued + session->beside_count + (session->current != NULL);
	}
	session_service_check_drained(s);
}

void session_service_drain(struct session_service *s, void (*on_drained)(void *ctx), void *ctx)
{
	struct session *session;

	s->draining = true;
	s->on_drained = on_drained;
	s->drained_ctx = ctx;
	LIST_FOREACH (session, &s->all, struct session, node)
		session_terminate(session, "the daemon is stopping");
	session_service_check_drained(s);
}
