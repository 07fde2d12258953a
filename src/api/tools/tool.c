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

const char *tool_result_text(const json_t *result)
{
	const json_t *first = json_array_get(json_object_get(result, "content"), 0);
	const char *text = json_string_value(json_object_get(first, "text"));

	return text ? text : "";
}

/* Takes @structured and @content. */
static void end_tool(struct call *call, const char *text, json_t *structured, json_t *content,
                     const struct error *failure, bool is_error)
{
	struct metrics *m = call->router->parts.metrics;
	const char *how = failure ? "refused" : is_error ? "error" : "ok";
	json_t *result = json_object(), *first = json_object();
	int r = json_array_insert_new(content, 0, first);

	assert(r == 0);
	(void)r;
	json_set(first, "type", json_string("text"));
	json_set(first, "text", json_text(text, strlen(text)));
	json_set(result, "content", content);
	json_set(result, "structuredContent", structured);
	json_set(result, "isError", json_boolean(is_error));
	metrics_count_for(m, METRIC_TOOL_CALLS, METRIC_LABELS(call->tool->name, how), 1);
	metrics_observe_for(m, METRIC_TOOL_DURATION, METRIC_LABELS(call->tool->name),
	                    (double)(clock_us() - call->started_us) / USEC_PER_SEC);
	call_end(call, result, failure);
}

void tool_finish(struct call *call, const char *text, json_t *structured, json_t *content,
                 bool is_error)
{
	end_tool(call, text, structured, content ? content : json_array(), NULL, is_error);
}

void tool_refuse(struct call *call, const struct error *err)
{
	cleanup_json json_t *error = reply_error_object(err, call->request_id);
	const char *detail = json_string_value(json_object_get(error, "error_detail"));
	/* For the model: what is wrong, where, and what to do about it. */
	cleanup_free char *text = xasprintf("Error: %s %s\n%s", error_describe(err->code), detail,
	                                    error_solution(err->code));
	json_t *structured = json_object();
	char ctx[REPLY_CTX_LEN];

	(void)snprintf(ctx, sizeof(ctx), "request_id=%s", call->request_id);
	if (error_is_internal(err))
		log_error_ctx(ctx, "tool failed", err);
	audit_request_refusal(call->router, &call->principal, call->request_id, err,
	                      call->tool->name);
	metrics_count_for(call->router->parts.metrics, METRIC_REJECTED,
	                  METRIC_LABELS(error_text(err->code)), 1);
	json_set(structured, "code", json_string(error_text(err->code)));
	json_set(structured, "details", json_string(detail));
	json_set(structured, "field", json_incref(json_object_get(error, "field")));
	json_set(structured, "request_id", json_string(call->request_id));
	end_tool(call, text, structured, json_array(), err, true);
}

void tool_start_decoded(struct call *call, const struct tool *tool)
{
	const char *scope = scope_name(tool->scope);
	struct error err = {0};

	call->tool = tool;
	call->started_us = clock_us();
	if (!scope_allows(call->principal.scopes, tool->scope))
		(void)error_set(&err, ERR_NO_SCOPE, 0, "tool %s needs scope %s", tool->name,
		                scope ? scope : "admin");
	else if (!(tool->hints & TOOL_READ_ONLY))
		/* With a required audit log, nothing is changed that could not be logged. */
		(void)!audit_check(call->router->parts.audit, &err);
	if (error_is_set(&err))
		tool_refuse(call, &err);
	else
		tool->run(call);
}

void tool_start(struct call *call, const struct tool *tool, const json_t *arguments)
{
	const struct decode_limits limits = {call->router->config->max_code_bytes};
	cleanup_json json_t *none = arguments ? NULL : json_object();
	struct error err = {0};

	call->tool = tool;
	call->started_us = clock_us();
	/* Without the scope the arguments do not matter: tool_start_decoded refuses. */
	if (scope_allows(call->principal.scopes, tool->scope) &&
	    fields_decode(tool->input, arguments ? arguments : none, &limits, &call->args, &err) <
	            0)
		tool_refuse(call, &err);
	else
		tool_start_decoded(call, tool);
}

/* Sessions. */

static void on_loaded(void *ctx, const struct error *err)
{
	struct call *call = ctx;
	struct session *session = session_find(call->router->parts.sessions, call->principal.tenant,
	                                       call->args.sandbox_id);
	struct error missing = {0};

	call->cancel = NULL;
	if (session) {
		call->with_session(call, session);
		return;
	}
	(void)error_set(&missing, ERR_SESSION_NOT_FOUND, 0, "no sandbox has the id '%.64s'",
	                call->args.sandbox_id);
	tool_refuse(call, err ? err : &missing);
}

void tool_with_session(struct call *call, call_session_fn *fn)
{
	const struct router_config *p = &call->router->parts;
	const char *id = call->args.sandbox_id;
	struct store_search *search;
	struct error err = {0};

	call->with_session = fn;
	if (!p->store || !id_is_valid(id, SESSION_ID_MAX) ||
	    session_find(p->sessions, call->principal.tenant, id)) {
		on_loaded(call, NULL);
		return;
	}
	search = store_load_session(p->sessions, call->principal.tenant, id, on_loaded, call, &err);
	if (search)
		call_wait_store(call, search);
	else
		tool_refuse(call, &err);
}
