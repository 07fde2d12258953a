/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool.h"

#include "api/internal.h"
#include "api/json/json.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/observe/audit.h"
#include "core/observe/metrics.h"
#include "core/session/session.h"
#include "core/session/session_row.h"
#include <string.h>

/*
 * Theory of operation. A call is freed by its end, or by tool_cancel. Its end may come while its
 * handler is still on the stack, inside tool_start: then tool_start frees it, and says so by
 * returning NULL.
 */

static void call_free(struct tool_call *call)
{
	json_decref(call->arguments);
	free(call->tenant);
	free(call->key_id);
	free(call->request_id);
	free(call);
}

const char *tool_result_text(const struct tool_result *result)
{
	const char *text =
		json_string_value(json_object_get(json_array_get(result->content, 0), "text"));

	return text ? text : "";
}

static void count(const struct tool_call *call, const struct tool_result *result)
{
	struct metrics *m = call->router->parts.metrics;
	const char *how = result->failure ? "refused" : result->is_error ? "error" : "ok";

	metrics_count_for(m, METRIC_TOOL_CALLS, METRIC_LABELS(call->tool->name, how), 1);
	metrics_observe_for(m, METRIC_TOOL_DURATION, METRIC_LABELS(call->tool->name),
	                    (double)(clock_us() - call->started_us) / USEC_PER_SEC);
}

/* The end of a call: nothing of it may be used after this, but by tool_start. */
static void end(struct tool_call *call, const struct tool_result *result)
{
	assert(!call->over);
	call->over = true;
	count(call, result);
	call->events.on_done(call->events.ctx, result);
	if (!call->starting)
		call_free(call);
}

static json_t *text_item(const char *text)
{
	json_t *item = json_object();

	json_set(item, "type", json_string("text"));
	json_set(item, "text", json_text(text, strlen(text)));
	return item;
}

void tool_finish(struct tool_call *call, const char *text, json_t *structured, json_t *content,
                 bool is_error)
{
	struct tool_result result = {
		.content = content ? content : json_array(),
		.structured = structured,
		.is_error = is_error,
	};
	int r = json_array_insert_new(result.content, 0, text_item(text));

	assert(r == 0);
	(void)r;
	end(call, &result);
	json_decref(result.content);
	json_decref(result.structured);
}

static void log_failure(const struct tool_call *call, const struct error *err)
{
	char ctx[REPLY_CTX_LEN];

	(void)snprintf(ctx, sizeof(ctx), "request_id=%s", call->request_id);
	log_error_ctx(ctx, "tool failed", err);
}

/* What the caller of a model reads: what is wrong, where, and what to do about it. */
static char *describe(const json_t *error)
{
	return xasprintf("Error: %s %s\n%s",
	                 json_string_value(json_object_get(error, "description")),
	                 json_string_value(json_object_get(error, "error_detail")),
	                 json_string_value(json_object_get(error, "solution")));
}

void tool_refuse(struct tool_call *call, const struct error *err)
{
	cleanup_json json_t *error = reply_error_object(err, call->request_id);
	cleanup_json json_t *structured = json_object(), *content = json_array();
	cleanup_free char *text = describe(error);
	struct tool_result result = {content, structured, true, err};
	int r = json_array_append_new(content, text_item(text));

	assert(r == 0);
	(void)r;
	if (reply_is_internal(err))
		log_failure(call, err);
	audited_refusal(call->router, &call->principal, call->request_id, err, call->tool->name);
	metrics_count_for(call->router->parts.metrics, METRIC_REJECTED,
	                  METRIC_LABELS(error_text(err->code)), 1);
	json_set(structured, "code", json_string(error_text(err->code)));
	json_set(structured, "details", json_incref(json_object_get(error, "error_detail")));
	json_set(structured, "field", json_incref(json_object_get(error, "field")));
	json_set(structured, "request_id", json_string(call->request_id));
	end(call, &result);
}

static int check_scope(const struct tool_call *call, struct error *err)
{
	const char *name = scope_name(call->tool->scope);

	if (scope_allows(call->principal.scopes, call->tool->scope))
		return 0;
	return error_set(err, ERR_NO_SCOPE, 0, "tool %s needs scope %s", call->tool->name,
	                 name ? name : "admin");
}

static int check(struct tool_call *call, struct error *err)
{
	if (check_scope(call, err) < 0 ||
	    tool_check_arguments(call->tool->input, call->arguments, err) < 0)
		return -1;
	/* Where a log is required nothing is done that would not be in it; looking is free. */
	return call->tool->hints & TOOL_READ_ONLY ? 0 : audit_check(call->router->parts.audit, err);
}

struct tool_call *tool_start(struct router *r, const struct tool_request *request,
                             const struct tool_events *events)
{
	struct tool_call *call = NEW(struct tool_call);
	const struct principal *who = request->principal;
	struct error err = {0};

	call->router = r;
	call->tool = request->tool;
	call->tenant = xstrdup(who->tenant);
	call->key_id = who->key_id ? xstrdup(who->key_id) : NULL;
	call->principal = (struct principal){call->tenant, call->key_id, who->scopes};
	call->request_id = xstrdup(request->request_id);
	call->arguments = request->arguments ? json_incref(request->arguments) : json_object();
	call->events = *events;
	call->started_us = clock_us();
	call->whole = request->whole;
	call->starting = true;
	if (check(call, &err) < 0)
		tool_refuse(call, &err);
	else
		call->tool->run(call);
	call->starting = false;
	if (!call->over)
		return call;
	call_free(call);
	return NULL;
}

void tool_cancel(struct tool_call *call)
{
	if (call->cancel)
		call->cancel(call->state);
	call_free(call);
}

/* Arguments. */

const json_t *tool_value(const struct tool_call *call, const char *name)
{
	return json_object_get(call->arguments, name);
}

const char *tool_text(const struct tool_call *call, const char *name)
{
	return json_string_value(tool_value(call, name));
}

double tool_number(const struct tool_call *call, const char *name)
{
	return json_number_value(tool_value(call, name));
}

bool tool_flag(const struct tool_call *call, const char *name)
{
	return json_is_true(tool_value(call, name));
}

/* Sessions. */

/* A call that waits for the store. */
struct lookup {
	struct tool_call *call;
	tool_session_fn *fn;
	char *id;
	struct store_search *search;
};

static void lookup_free(struct lookup *l)
{
	free(l->id);
	free(l);
}

static void cancel_lookup(void *state)
{
	struct lookup *l = state;

	store_search_cancel(l->search);
	lookup_free(l);
}

static void go_on(struct tool_call *call, const char *id, tool_session_fn *fn)
{
	struct session *session = session_find(call->router->parts.sessions, call->tenant, id);
	struct error err = {0};

	if (session) {
		fn(call, session);
		return;
	}
	(void)error_set(&err, ERR_SESSION_NOT_FOUND, 0, "no sandbox has the id '%.64s'", id);
	tool_refuse(call, &err);
}

static void on_loaded(void *ctx, const struct error *err)
{
	struct lookup *l = ctx;
	struct tool_call *call = l->call;

	call->cancel = NULL;
	if (err)
		tool_refuse(call, err);
	else
		go_on(call, l->id, l->fn);
	lookup_free(l);
}

void tool_with_session(struct tool_call *call, const char *id, tool_session_fn *fn)
{
	const struct router_config *p = &call->router->parts;
	struct error err = {0};
	struct lookup *l;

	if (!p->store || !id_is_valid(id, SESSION_ID_MAX) ||
	    session_find(p->sessions, call->tenant, id)) {
		go_on(call, id, fn);
		return;
	}
	l = NEW(struct lookup);
	l->call = call;
	l->fn = fn;
	l->id = xstrdup(id);
	l->search = store_load_session(p->sessions, call->tenant, id, on_loaded, l, &err);
	if (!l->search) {
		lookup_free(l);
		tool_refuse(call, &err);
		return;
	}
	call->state = l;
	call->cancel = cancel_lookup;
}
