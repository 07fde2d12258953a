/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one session that the test plays: the functions below take the place of core's. Its
 * executions are core's own records.
 */

#include "unit.h"

#include "base/alloc.h"
#include "base/str.h"
#include "core/run/run_record.h"
#include "core/session/session.h"
#include "core/session/session_list.h"
#include "core/session/session_row.h"
#include <string.h>

struct session {
	struct session_service *service;
	char id[SESSION_ID_MAX + 1];
	char language[16], agent_id[16];
	enum session_state state;
	enum session_mode mode;
	uint64_t idle_timeout_us, lifetime_us, memory_bytes;
};

struct session_service {
	struct session one;
	bool exists, reuses, refuses;
	struct run_records *executions;
	struct run_record *latest;
	/* of the last request for an execution */
	char asked_language[16], asked_code[64], asked_stdin[16];
	bool asked_open;
	uint64_t asked_timeout_us;
	char done[32]; /* what was done to the session last */
};

static inline int fake_refusal(const struct session_service *s, struct error *err)
{
	return s->refuses ? error_set(err, ERR_CONFLICT, 0, "not in this state") : 0;
}

struct store_search *store_load_session(struct session_service *sessions, const char *tenant,
                                        const char *id, store_done_fn *fn, void *ctx,
                                        struct error *err)
{
	(void)sessions, (void)tenant, (void)id, (void)fn, (void)ctx;
	(void)error_set(err, ERR_BUSY, 0, "there is no store");
	return NULL;
}

/* There is none: whoever gets here has not asked for it. */
struct store_list *store_list_sessions(struct session_service *sessions,
                                       const struct store_query *query, store_page_fn *fn,
                                       void *ctx, struct error *err)
{
	(void)sessions, (void)query, (void)fn, (void)ctx;
	(void)error_set(err, ERR_BUSY, 0, "there is no store");
	return NULL;
}

struct store_list *store_list_executions(struct run_records *executions,
                                         const struct store_query *query, store_page_fn *fn,
                                         void *ctx, struct error *err)
{
	(void)executions, (void)query, (void)fn, (void)ctx;
	(void)error_set(err, ERR_BUSY, 0, "there is no store");
	return NULL;
}

void store_list_cancel(struct store_list *list)
{
	(void)list;
}

void session_request_done(struct session_request *request)
{
	free(request->id);
	free(request->language);
	free(request->agent_id);
	str_list_free(request->env);
	*request = (struct session_request){0};
}

/* Policies have tests of their own, with a daemon. */
void session_explain(const struct session_service *s, const struct session_request *request,
                     struct policy_explanation *ret_explanation)
{
	(void)s;
	(void)request;
	(void)ret_explanation;
}

int session_create(struct session_service *s, const struct session_request *request,
                   struct session **ret_session, bool *ret_reused, struct error *err)
{
	if (fake_refusal(s, err) < 0)
		return -1;
	s->one = (struct session){
		.service = s,
		.mode = request->mode,
		.idle_timeout_us = request->idle_timeout_us,
		.lifetime_us = request->lifetime_us,
		.memory_bytes = request->memory_bytes,
	};
	assert_int_equal(
		str_copy(s->one.id, sizeof(s->one.id), request->id ? request->id : "sess_made"), 0);
	assert_int_equal(str_copy(s->one.language, sizeof(s->one.language),
	                          request->language ? request->language : "python"),
	                 0);
	assert_int_equal(str_copy(s->one.agent_id, sizeof(s->one.agent_id),
	                          request->agent_id ? request->agent_id : ""),
	                 0);
	s->exists = true;
	*ret_session = &s->one;
	*ret_reused = s->reuses;
	return 0;
}

struct session *session_find(struct session_service *s, const char *tenant, const char *id)
{
	assert_string_equal(tenant, TENANT_DEFAULT);
	return s && s->exists && str_equal(s->one.id, id) ? &s->one : NULL;
}

struct session *session_at(struct session_service *s, const char *tenant, size_t offset)
{
	assert_string_equal(tenant, TENANT_DEFAULT);
	return s->exists && offset == 0 ? &s->one : NULL;
}

struct session *session_older(const struct session *session)
{
	(void)session;
	return NULL;
}

struct session *session_find_box(struct session_service *s, const char *tenant,
                                 const char *container_id)
{
	(void)s;
	(void)tenant;
	(void)container_id;
	return NULL;
}

void session_service_stats(const struct session_service *s, struct session_service_stats *ret_stats)
{
	(void)s;
	*ret_stats = (struct session_service_stats){0};
}

size_t session_count(const struct session_service *s, const char *tenant)
{
	assert_string_equal(tenant, TENANT_DEFAULT);
	return s->exists;
}

void session_info(const struct session *session, struct session_info *ret_info)
{
	static char variable[] = "A=x=y";
	static char *env[] = {variable, NULL};

	*ret_info = (struct session_info){
		.tenant = TENANT_DEFAULT,
		.id = session->id,
		.language = session->language,
		.agent_id = session->agent_id[0] ? session->agent_id : NULL,
		.state = session->state,
		.mode = session->mode,
		.driver = "fake",
		.box_id = "box1",
		.env = env,
		.limits = {.memory_bytes = 512u << 20,
	                   .workspace_bytes = 256u << 20,
	                   .cpu_millicores = 1000,
	                   .pids = 128},
		.idle_timeout_us = session->idle_timeout_us,
		.lifetime_us = session->lifetime_us,
		.created_ms = 1000,
		.updated_ms = 2000,
		.last_activity_ms = 3000,
	};
}

const char *session_state_name(enum session_state state)
{
	static const char *const names[] = {"creating", "ready",      "running",
	                                    "paused",   "terminated", "failed"};

	return names[state];
}

const char *session_mode_name(enum session_mode mode)
{
	return mode == SESSION_EPHEMERAL ? "ephemeral" : "persistent";
}

int session_execute(struct session *session, const struct run_request *request,
                    struct run_record **ret_execution, struct error *err)
{
	struct session_service *s = session->service;
	const struct run_record_new what = {
		.session_id = session->id,
		.language = request->language,
		.code = request->code,
		.code_len = request->code_len,
		.timeout_us = request->timeout_us,
	};

	if (fake_refusal(s, err) < 0)
		return -1;
	(void)snprintf(s->asked_language, sizeof(s->asked_language), "%s", request->language);
	(void)snprintf(s->asked_code, sizeof(s->asked_code), "%s", request->code);
	(void)snprintf(s->asked_stdin, sizeof(s->asked_stdin), "%s",
	               request->stdin_data ? request->stdin_data : "");
	s->asked_open = request->stdin_open;
	s->asked_timeout_us = request->timeout_us;
	*ret_execution = s->latest = run_records_add(s->executions, &what);
	return 0;
}

static inline int fake_action(struct session *session, const char *what, struct error *err)
{
	(void)snprintf(session->service->done, sizeof(session->service->done), "%s", what);
	return fake_refusal(session->service, err);
}

int session_pause(struct session *session, struct error *err)
{
	return fake_action(session, "pause", err);
}

int session_resume(struct session *session, struct error *err)
{
	return fake_action(session, "resume", err);
}

int session_interrupt(struct session *session, struct error *err)
{
	return fake_action(session, "interrupt", err);
}

int session_keepalive(struct session *session, struct error *err)
{
	return fake_action(session, "keepalive", err);
}

void session_terminate(struct session *session, const char *reason)
{
	(void)reason;
	session->state = SESSION_TERMINATED;
}

void session_delete(struct session *session)
{
	run_records_forget(session->service->executions, TENANT_DEFAULT, session->id);
	session->service->exists = false;
}

int session_when_kept(struct session *session, session_kept_fn *fn, void *ctx, struct error *err)
{
	(void)session;
	(void)fn;
	(void)ctx;
	(void)err;
	return 1;
}

int session_delete_kept(struct session *session, session_kept_fn *fn, void *ctx, struct error *err)
{
	(void)fn;
	(void)ctx;
	(void)err;
	session_delete(session);
	return 1;
}

void session_counters(struct session *session, struct box_counters *ret_counters)
{
	(void)session;
	*ret_counters = (struct box_counters){
		.memory_bytes = 1u << 20,
		.memory_peak_bytes = 2u << 20,
		.cpu_us = 1500,
		.oom_kills = COUNTER_UNKNOWN,
		.pids_peak = 3,
		.pids_denied = COUNTER_UNKNOWN,
	};
}

#include "fake_changes.h"
#include "fake_files.h"
