/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "api/tools/prompt.h"
#include "api/tools/resource.h"
#include "api/tools/tool.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/run/language_check.h"
#include "core/run/run_service.h"
#include "http/status.h"

/*
 * Theory of operation. A request lives until its answer is sent, perhaps while its method is
 * dispatched. After dispatching its messages a POST knows whether to answer at once or to open a
 * stream. Request ids are unique within a session, so a cancellation is unambiguous.
 */

#define LOG_INFO    1
#define LOG_WARNING 3
#define TOOLS_PAGE  50

/* How the tools of a profile belong together. */
static const char *const instructions[] = {
	[false] = "For a single piece of code call execute_code. For several steps call "
		  "create_sandbox, pass its sandbox_id to the other tools (and as session_id to "
		  "execute_code, which then keeps variables), and call terminate_sandbox at the "
		  "end. Files are in /workspace. Long output is shortened; the text names the "
		  "resource that has all of it.",
	[true] = "One piece of code needs only execute_code. For several steps create a session "
		 "(manage_session), pass its session_id to the other tools, and end the session "
		 "when you are done.",
};

static json_t *instructions_for(bool brief, bool has_network)
{
	return json_sprintf("Runs code in isolated Linux boxes%s. %s",
	                    has_network ? ", which reach only hosts that the policy allows"
	                                : " without network",
	                    instructions[brief]);
}

const char *mcp_request_text(const struct mcp_request *q, const char *name)
{
	const json_t *value = json_object_get(q->params, name);
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

/* Send @text, which is taken; NULL: no answer. */
static void end_request(struct mcp_request *q, char *text, size_t len)
{
	struct mcp_session *s = q->session;
	struct mcp_stream *stream = q->stream;

	list_remove(&q->node);
	s->requests_count--;
	mcp_session_touch(s);
	if (q->http)
		http_set_gone(q->http, NULL, NULL);
	if (q->post) {
		q->post->pending--;
		if (text)
			mcp_post_answer(q->post, text, len);
	} else if (stream) {
		if (text)
			mcp_stream_send(stream, text, len);
		mcp_stream_answered(stream);
	} else if (q->http && text) {
		http_reply_owned(q->http, &(struct http_answer){HTTP_OK, "application/json",
		                                                TAKE_PTR(text), len, NULL, 0});
	} else if (q->http) {
		reply_nothing(q->http, HTTP_ACCEPTED);
	} else if (s->sink.send && text) {
		s->sink.send(s->sink.ctx, text, len);
	}
	free(text);
	call_release(&q->call);
	json_decref(q->id);
	json_decref(q->params);
	json_decref(q->token);
	free(q);
}

/* @result is taken; @q is freed. */
static void answer_request(struct mcp_request *q, json_t *result)
{
	size_t len;
	char *text = rpc_result(q->id, result, &len);

	end_request(q, text, len);
}

static void fail_with(struct mcp_request *q, int code, const char *message, json_t *data)
{
	size_t len;
	char *text = rpc_error(q->id, code, message, data, &len);

	end_request(q, text, len);
}

static void fail_request(struct mcp_request *q, const struct error *err)
{
	char ctx[REPLY_CTX_LEN];
	size_t len;
	char *text;

	/* Only resources are looked up by name. */
	if (err->code == ERR_NOT_FOUND) {
		fail_with(q, RPC_RESOURCE_NOT_FOUND, err->msg,
		          json_pack("{s:O?}", "uri", json_object_get(q->params, "uri")));
		return;
	}
	text = rpc_failure(q->id, err, q->call.request_id, &len);
	(void)snprintf(ctx, sizeof(ctx), "request_id=%s", q->call.request_id);
	if (error_is_internal(err))
		log_error_ctx(ctx, "request failed", err);
	end_request(q, text, len);
}

void mcp_request_drop(struct mcp_request *q)
{
	call_cancel(&q->call);
	end_request(q, NULL, 0);
}

/* @params is taken. */
static void notify_client(struct mcp_request *q, const char *method, json_t *params)
{
	struct mcp_session *s = q->session;
	size_t len;
	cleanup_free char *text = rpc_notification(method, params, &len);

	if (q->stream)
		mcp_stream_send(q->stream, text, len);
	else if (s->sink.send)
		s->sink.send(s->sink.ctx, text, len);
}

/* Where a page begins: 0, or params.cursor. */
static int read_cursor(const struct mcp_request *q, uint64_t *ret_offset, struct error *err)
{
	const json_t *cursor = json_object_get(q->params, "cursor");
	const char *text = json_string_value(cursor);

	*ret_offset = 0;
	if (!cursor || json_is_null(cursor))
		return 0;
	if (text && text[0] == 'p' && parse_u64(text + 1, ret_offset) == 0)
		return 0;
	return error_set(err, ERR_INVALID, 0, "cursor is not from this server");
}

static void set_cursor(json_t *page, uint64_t offset)
{
	json_set(page, "nextCursor", json_sprintf("p%llu", (unsigned long long)offset));
}

static bool is_brief(const struct mcp_request *q)
{
	return q->call.router->config->tools_profile == CONFIG_PROFILE_DEFAULT;
}

static void initialize(struct mcp_request *q)
{
	struct mcp_session *s = q->session;
	const char *wanted = mcp_request_text(q, "protocolVersion");
	enum mcp_version version = wanted ? mcp_session_version_find(wanted) : MCP_VERSION_COUNT;
	json_t *result;

	if (s->ready) {
		fail_with(q, RPC_INVALID_REQUEST, "already initialized", NULL);
		return;
	}
	if (!wanted) {
		fail_with(q, RPC_INVALID_PARAMS, "protocolVersion is missing", NULL);
		return;
	}
	/* For an unknown version offer the newest; the client decides. */
	s->version = version == MCP_VERSION_COUNT ? MCP_2025_11_25 : version;
	s->ready = true;
	result = json_object();
	json_set(result, "protocolVersion", json_string(mcp_session_version_name(s->version)));
	json_set(result, "capabilities",
	         json_pack("{s:{s:b}, s:{s:b,s:b}, s:{s:b}, s:{}, s:{}}", "tools", "listChanged", 1,
	                   "resources", "subscribe", 1, "listChanged", 1, "prompts", "listChanged",
	                   0, "logging", "completions"));
	json_set(result, "serverInfo",
	         json_pack("{s:s, s:s, s:s}", "name", "millibox", "title", "Millibox sandboxes",
	                   "version", MILLIBOX_VERSION));
	json_set(
		result, "instructions",
		instructions_for(is_brief(q), tool_has_network(q->call.router, q->call.principal)));
	answer_request(q, result);
}

static json_t *answer_empty(struct mcp_request *q, struct error *err)
{
	(void)q;
	(void)err;
	return json_object();
}

static json_t *set_level(struct mcp_request *q, struct error *err)
{
	static const char *const levels[] = {"debug", "info",     "notice", "warning",
	                                     "error", "critical", "alert",  "emergency"};
	const char *level = mcp_request_text(q, "level");

	for (size_t i = 0; level && i < ARRAY_SIZE(levels); i++)
		if (str_equal(levels[i], level)) {
			q->session->log_level = (int)i;
			return json_object();
		}
	(void)error_set(err, ERR_INVALID, 0,
	                "level must be debug, info, notice, warning, error, critical, alert or "
	                "emergency");
	return NULL;
}

static json_t *list_prompts(struct mcp_request *q, struct error *err)
{
	json_t *list, *prompt;
	uint64_t offset;
	size_t i;

	if (read_cursor(q, &offset, err) < 0)
		return NULL;
	list = offset == 0 ? prompt_list() : json_array();
	json_array_foreach (list, i, prompt)
		if (q->session->version < MCP_2025_06_18)
			(void)json_object_del(prompt, "title");
	return json_pack("{s:o}", "prompts", list);
}

static json_t *get_prompt(struct mcp_request *q, struct error *err)
{
	return prompt_fill(mcp_request_text(q, "name"), json_object_get(q->params, "arguments"),
	                   err);
}

static json_t *list_resource_templates(struct mcp_request *q, struct error *err)
{
	(void)q;
	(void)err;
	return json_pack("{s:o}", "resourceTemplates", resource_templates());
}

static void list_resources(struct mcp_request *q)
{
	struct error err = {0};
	uint64_t offset;

	if (read_cursor(q, &offset, &err) < 0)
		fail_request(q, &err);
	else
		resource_list(&q->call, offset);
}

static void read_resource(struct mcp_request *q)
{
	resource_read(&q->call, mcp_request_text(q, "uri"));
}

/*
 * Tools. With a progressToken the program's output is sent as progress: the message is the text,
 * the number counts bytes. Invalid arguments are a result with isError, which a model can correct;
 * an unknown tool is a protocol error.
 */

static json_t *view_tool(const struct mcp_request *q, const struct tool *tool)
{
	const struct tool_reader reader = {
		.router = q->call.router, .who = q->call.principal, .brief = is_brief(q)};
	enum mcp_version version = q->session->version;
	json_t *j = tool_view(tool, &reader);

	if (version < MCP_2025_06_18) {
		(void)json_object_del(j, "outputSchema");
		(void)json_object_del(j, "title");
	}
	if (version < MCP_2025_03_26)
		(void)json_object_del(j, "annotations");
	return j;
}

static void answer_tools(struct mcp_request *q)
{
	json_t *result, *list;
	const struct tool *tool;
	struct error err = {0};
	uint64_t offset;

	if (read_cursor(q, &offset, &err) < 0) {
		call_fail(&q->call, &err);
		return;
	}
	result = json_object();
	list = json_array();
	for (; (tool = tool_at(offset)) && json_array_size(list) < TOOLS_PAGE; offset++)
		if (tool_is_in_profile(q->call.router, tool) &&
		    scope_allows(q->call.principal->scopes, tool->scope))
			(void)!json_array_append_new(list, view_tool(q, tool));
	json_set(result, "tools", list);
	if (tool)
		set_cursor(result, offset);
	call_finish(&q->call, result);
}

static void on_languages(void *ctx)
{
	answer_tools(ctx);
}

static void stop_waiting(void *work)
{
	language_wait_cancel(work);
}

/* Schemas name the languages that work, which boxes have to say first. What they say later is
 * followed by notifications/tools/list_changed. */
static void list_tools(struct mcp_request *q)
{
	const struct language_query query = {.within_us = LANGUAGE_TOOLS_US};
	struct run_service *runs = q->call.router->runs;
	struct language_wait *wait = runs ? language_checks_want(run_service_language_checks(runs),
	                                                         &query, on_languages, q)
	                                  : NULL;

	if (wait)
		call_wait(&q->call, wait, stop_waiting);
	else
		answer_tools(q);
}

static void on_output(void *ctx, enum output_stream stream, const char *text, size_t len)
{
	struct mcp_request *q = ctx;
	json_t *params = json_object();

	(void)stream; /* progress does not tell them apart */
	q->progress += len;
	json_set(params, "progressToken", json_incref(q->token));
	json_set(params, "progress", json_integer((json_int_t)q->progress));
	if (q->session->version >= MCP_2025_03_26)
		json_set(params, "message", json_text(text, len));
	notify_client(q, "notifications/progress", params);
}

/* Older clients do not know links; the text names them. */
static void drop_links(json_t *content)
{
	for (size_t i = json_array_size(content); i-- > 0;) {
		const json_t *item = json_array_get(content, i);

		if (str_equal(json_string_value(json_object_get(item, "type")), "resource_link"))
			(void)json_array_remove(content, i);
	}
}

static void log_end(struct mcp_request *q, const json_t *result)
{
	bool is_error = json_is_true(json_object_get(result, "isError"));
	json_t *params;

	if (!q->call.log || (is_error ? LOG_WARNING : LOG_INFO) < q->session->log_level)
		return;
	params = json_object();
	json_set(params, "level", json_string(is_error ? "warning" : "info"));
	json_set(params, "logger", json_string("millibox"));
	json_set(params, "data", json_incref(q->call.log));
	notify_client(q, "notifications/message", params);
}

static void on_tool_done(void *ctx, json_t *result, const struct error *failure)
{
	struct mcp_request *q = ctx;

	(void)failure; /* in the result as well */
	log_end(q, result);
	if (q->session->version < MCP_2025_06_18) {
		drop_links(json_object_get(result, "content"));
		(void)json_object_del(result, "structuredContent");
	}
	answer_request(q, json_incref(result));
}

static void call_tool(struct mcp_request *q)
{
	const char *name = mcp_request_text(q, "name");
	cleanup_json json_t *none = json_object();
	const json_t *arguments = json_object_get(q->params, "arguments");
	const struct tool *tool = name ? tool_find(q->call.router->config, name) : NULL;
	struct error err = {0};

	if (!tool)
		(void)tool_unknown(q->call.router, name ? name : "", &err);
	else if (arguments && !json_is_object(arguments))
		(void)error_set(&err, ERR_INVALID, 0, "arguments of %s must be an object", name);
	if (!tool || error_is_set(&err)) {
		fail_request(q, &err);
		return;
	}
	q->call.events.on_output = q->token ? on_output : NULL;
	q->call.events.on_done = on_tool_done;
	/* Clients that call the others by name know their results from elsewhere. */
	q->call.brief = is_brief(q) && tool->hints & TOOL_BRIEF;
	tool_start(&q->call, tool, arguments ? arguments : none);
}

static const struct method {
	const char *name;
	mcp_answer_fn *answer;                /* one of both */
	void (*start)(struct mcp_request *q); /* answers now or later */
	enum scope scope;
	bool early; /* allowed before initialize */
} methods[] = {
	{"initialize", NULL, initialize, SCOPE_ANY, true},
	{"ping", answer_empty, NULL, SCOPE_ANY, true},
	{"tools/list", NULL, list_tools, SCOPE_ANY, false},
	{"tools/call", NULL, call_tool, SCOPE_ANY, false},
	{"resources/list", NULL, list_resources, SCOPE_READ, false},
	{"resources/templates/list", list_resource_templates, NULL, SCOPE_ANY, false},
	{"resources/read", NULL, read_resource, SCOPE_READ, false},
	{"resources/subscribe", mcp_resources_subscribe, NULL, SCOPE_READ, false},
	{"resources/unsubscribe", mcp_resources_unsubscribe, NULL, SCOPE_READ, false},
	{"prompts/list", list_prompts, NULL, SCOPE_ANY, false},
	{"prompts/get", get_prompt, NULL, SCOPE_ANY, false},
	{"completion/complete", mcp_complete, NULL, SCOPE_READ, false},
	{"logging/setLevel", set_level, NULL, SCOPE_ANY, false},
	{"shutdown", answer_empty, NULL, SCOPE_ANY, false}, /* of older clients */
};

static struct mcp_request *find_request(const struct mcp_session *s, json_t *id)
{
	struct mcp_request *q;

	LIST_FOREACH (q, &s->requests, struct mcp_request, node)
		if (json_equal(q->id, id))
			return q;
	return NULL;
}

/* Return: the error, or NULL. */
static char *refusal_of(const struct mcp_session *s, const struct method *method,
                        const struct principal *who, const char *request_id,
                        const struct rpc_message *m, size_t *ret_len)
{
	struct error err = {0};

	if (find_request(s, m->id))
		return rpc_error(m->id, RPC_INVALID_REQUEST, "a request with this id is pending",
		                 NULL, ret_len);
	if (!method)
		return rpc_error(m->id, RPC_METHOD_NOT_FOUND, "no such method", NULL, ret_len);
	if (!method->early && !s->ready)
		return rpc_error(m->id, RPC_INVALID_REQUEST, "Server not initialized", NULL,
		                 ret_len);
	if (!scope_allows(who->scopes, method->scope))
		(void)error_set(&err, ERR_NO_SCOPE, 0, "this needs scope %s",
		                scope_name(method->scope));
	else if (s->requests_count >= MCP_PENDING_MAX)
		(void)error_set(&err, ERR_BUSY, 0, "%d requests of this session are pending",
		                MCP_PENDING_MAX);
	return error_is_set(&err) ? rpc_failure(m->id, &err, request_id, ret_len) : NULL;
}

static void on_resource_done(void *ctx, json_t *result, const struct error *failure)
{
	struct mcp_request *q = ctx;
	json_t *next = json_object_get(result, "nextOffset");

	if (next)
		set_cursor(result, (uint64_t)json_integer_value(next));
	(void)json_object_del(result, "nextOffset");
	if (failure)
		fail_request(q, failure);
	else
		answer_request(q, json_incref(result));
}

void mcp_dispatch(struct mcp_session *s, struct mcp_post *post, const struct principal *who,
                  const char *request_id, const struct rpc_message *m)
{
	json_t *token = json_object_get(json_object_get(m->params, "_meta"), "progressToken");
	const struct method *method = NULL;
	cleanup_free char *refusal = NULL;
	struct error err = {0};
	struct mcp_request *q;
	json_t *result;
	size_t len;

	mcp_session_touch(s);
	for (size_t i = 0; i < ARRAY_SIZE(methods) && !method; i++)
		if (str_equal(methods[i].name, m->method))
			method = &methods[i];
	refusal = refusal_of(s, method, who, request_id, m, &len);
	if (refusal || !method) {
		if (post)
			mcp_post_answer(post, refusal, len);
		else
			s->sink.send(s->sink.ctx, refusal, len);
		return;
	}
	q = NEW(struct mcp_request);
	q->session = s;
	q->post = post;
	q->id = json_incref(m->id);
	q->params = m->params ? json_incref(m->params) : json_object();
	if (json_is_integer(token) ||
	    (json_is_string(token) && json_string_length(token) <= RPC_ID_MAX))
		q->token = json_incref(token);
	q->call.events = (struct call_events){.ctx = q, .on_done = on_resource_done};
	call_init(&q->call, s->mcp->router, who, request_id);
	list_append(&s->requests, &q->node);
	s->requests_count++;
	if (post)
		post->pending++;
	if (method->start) {
		method->start(q);
		return;
	}
	result = method->answer(q, &err);
	if (result)
		answer_request(q, result);
	else
		fail_request(q, &err);
}

void mcp_dispatch_notification(struct mcp_session *s, const struct rpc_message *m)
{
	json_t *id = json_object_get(m->params, "requestId");
	struct mcp_request *q = id ? find_request(s, id) : NULL;

	mcp_session_touch(s);
	/* An unknown id was answered already. */
	if (q && str_equal(m->method, "notifications/cancelled"))
		mcp_request_drop(q);
}
