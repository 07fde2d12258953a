/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"

/*
 * Theory of operation. A method answers while it is dispatched, or later. Until it was seen which,
 * an answer is only kept: whoever sent the request then knows whether to answer at once or to open
 * a stream. An id that is under way is not given twice, so that a cancellation means one request.
 */

static const char instructions[] =
	"Runs code in isolated Linux sandboxes without network. For a single piece of code call "
	"execute_code. For work in steps call create_sandbox, give its sandbox_id to the other "
	"tools "
	"(and as session_id to execute_code, which then keeps variables), and terminate_sandbox at "
	"the end. Files are in /workspace. Output that is too long is shortened; read the resource "
	"that is named for all of it.";

static void request_free(struct mcp_request *q)
{
	if (q->holder)
		*q->holder = NULL;
	json_decref(q->id);
	json_decref(q->params);
	json_decref(q->token);
	free(q->request_id);
	free(q->answer);
	free(q);
}

const char *mcp_request_text(const struct mcp_request *q, const char *name)
{
	const json_t *value = json_object_get(q->params, name);
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static void leave(struct mcp_request *q)
{
	list_remove(&q->node);
	q->session->requests_count--;
	mcp_session_touch(q->session);
}

static void deliver(struct mcp_request *q, char *text, size_t len)
{
	struct mcp_session *s = q->session;
	struct http_request *http = TAKE_PTR(q->http);

	if (q->stream) {
		mcp_stream_send(q->stream, text, len);
		mcp_stream_answered(q->stream);
	} else if (s->sink.send) {
		s->sink.send(s->sink.ctx, text, len);
	} else if (http) {
		http_set_gone(http, NULL, NULL);
		http_reply_owned(
			http, &(struct http_answer){200, "application/json", text, len, NULL, 0});
		return;
	}
	free(text);
}

/* @text is taken. */
static void end(struct mcp_request *q, char *text, size_t len)
{
	q->cancel = NULL;
	if (q->starting || q->holder) {
		q->answer = text;
		q->answer_len = len;
		return;
	}
	leave(q);
	deliver(q, text, len);
	request_free(q);
}

void mcp_request_result(struct mcp_request *q, json_t *result)
{
	size_t len;
	char *text = rpc_result(q->id, result, &len);

	end(q, text, len);
}

void mcp_request_error(struct mcp_request *q, int code, const char *message, json_t *data)
{
	size_t len;
	char *text = rpc_error(q->id, code, message, data, &len);

	end(q, text, len);
}

void mcp_request_fail(struct mcp_request *q, const struct error *err)
{
	char ctx[REPLY_CTX_LEN];
	size_t len;
	char *text = rpc_failure(q->id, err, q->request_id, &len);

	(void)snprintf(ctx, sizeof(ctx), "request_id=%s", q->request_id);
	if (reply_is_internal(err))
		log_error_ctx(ctx, "request failed", err);
	end(q, text, len);
}

void mcp_request_tell(struct mcp_request *q, const char *method, json_t *params)
{
	struct mcp_session *s = q->session;
	size_t len;
	cleanup_free char *text = rpc_notification(method, params, &len);

	if (q->stream)
		mcp_stream_send(q->stream, text, len);
	else if (s->sink.send)
		s->sink.send(s->sink.ctx, text, len);
}

static void on_over(struct mcp_request *q)
{
	if (q->stream)
		mcp_stream_answered(q->stream);
	if (q->http) {
		http_set_gone(q->http, NULL, NULL);
		reply_nothing(q->http, 202);
	}
}

void mcp_request_drop(struct mcp_request *q)
{
	if (q->cancel)
		q->cancel(q->work);
	leave(q);
	on_over(q);
	request_free(q);
}

/* Pages. */

int mcp_cursor_read(struct mcp_request *q, uint64_t *ret_offset)
{
	const json_t *cursor = json_object_get(q->params, "cursor");
	const char *text = json_string_value(cursor);

	*ret_offset = 0;
	if (!cursor || json_is_null(cursor))
		return 0;
	if (text && text[0] == 'p' && parse_u64(text + 1, ret_offset) == 0)
		return 0;
	mcp_request_error(q, RPC_INVALID_PARAMS, "cursor is not one of ours", NULL);
	return -1;
}

void mcp_cursor_set(json_t *page, uint64_t offset)
{
	json_set(page, "nextCursor", json_sprintf("p%llu", (unsigned long long)offset));
}

/* Methods of the protocol itself. */

static json_t *capabilities(void)
{
	return json_pack("{s:{s:b}, s:{s:b,s:b}, s:{s:b}, s:{}, s:{}}", "tools", "listChanged", 0,
	                 "resources", "subscribe", 1, "listChanged", 1, "prompts", "listChanged", 0,
	                 "logging", "completions");
}

static json_t *server_info(void)
{
	return json_pack("{s:s, s:s, s:s}", "name", "millibox", "title", "Millibox sandboxes",
	                 "version", MILLIBOX_VERSION);
}

static void initialize(struct mcp_request *q)
{
	struct mcp_session *s = q->session;
	const char *asked = mcp_request_text(q, "protocolVersion");
	enum mcp_version version = asked ? mcp_version_find(asked) : MCP_VERSION_COUNT;
	json_t *result;

	if (s->ready) {
		mcp_request_error(q, RPC_INVALID_REQUEST, "already initialized", NULL);
		return;
	}
	if (!asked) {
		mcp_request_error(q, RPC_INVALID_PARAMS, "protocolVersion is missing", NULL);
		return;
	}
	/* What is not known here is answered with the newest that is; the client then decides. */
	s->version = version == MCP_VERSION_COUNT ? MCP_2025_11_25 : version;
	s->ready = true;
	result = json_object();
	json_set(result, "protocolVersion", json_string(mcp_version_name(s->version)));
	json_set(result, "capabilities", capabilities());
	json_set(result, "serverInfo", server_info());
	json_set(result, "instructions", json_string(instructions));
	mcp_request_result(q, result);
}

static void nothing(struct mcp_request *q)
{
	mcp_request_result(q, json_object());
}

static const char *const log_levels[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};

static void set_level(struct mcp_request *q)
{
	const char *level = mcp_request_text(q, "level");

	for (size_t i = 0; level && i < ARRAY_SIZE(log_levels); i++)
		if (str_equal(log_levels[i], level)) {
			q->session->log_level = (int)i;
			nothing(q);
			return;
		}
	mcp_request_error(q, RPC_INVALID_PARAMS,
	                  "level must be debug, info, notice, warning, error, critical, alert or "
	                  "emergency",
	                  NULL);
}

static const struct method {
	const char *name;
	mcp_method_fn *run;
	enum scope scope;
	bool early; /* before initialize */
} methods[] = {
	{"initialize", initialize, SCOPE_ANY, true},
	{"ping", nothing, SCOPE_ANY, true},
	{"tools/list", mcp_tools_list, SCOPE_ANY, false},
	{"tools/call", mcp_tools_call, SCOPE_ANY, false},
	{"resources/list", mcp_resources_list, SCOPE_READ, false},
	{"resources/templates/list", mcp_resource_templates_list, SCOPE_ANY, false},
	{"resources/read", mcp_resources_read, SCOPE_READ, false},
	{"resources/subscribe", mcp_resources_subscribe, SCOPE_READ, false},
	{"resources/unsubscribe", mcp_resources_unsubscribe, SCOPE_READ, false},
	{"prompts/list", mcp_prompts_list, SCOPE_ANY, false},
	{"prompts/get", mcp_prompts_get, SCOPE_ANY, false},
	{"completion/complete", mcp_complete, SCOPE_READ, false},
	{"logging/setLevel", set_level, SCOPE_ANY, false},
	{"shutdown", nothing, SCOPE_ANY, false}, /* of older clients */
};

static const struct method *find_method(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (str_equal(methods[i].name, name))
			return &methods[i];
	return NULL;
}

static struct mcp_request *find_request(const struct mcp_session *s, json_t *id)
{
	struct mcp_request *q;

	LIST_FOREACH (q, &s->requests, struct mcp_request, node)
		if (json_equal(q->id, id))
			return q;
	return NULL;
}

/* The error for a request that is not begun, or NULL. */
static char *refuse(const struct mcp_session *s, const struct principal *who,
                    const char *request_id, const struct rpc_message *m, size_t *ret_len)
{
	const struct method *method = find_method(m->method);
	struct error err = {0};

	if (find_request(s, m->id))
		return rpc_error(m->id, RPC_INVALID_REQUEST, "a request with this id is under way",
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
		(void)error_set(&err, ERR_BUSY, 0, "%d requests of this session are under way",
		                MCP_PENDING_MAX);
	return error_is_set(&err) ? rpc_failure(m->id, &err, request_id, ret_len) : NULL;
}

static struct mcp_request *request_new(struct mcp_session *s, const struct rpc_message *m,
                                       const char *request_id)
{
	struct mcp_request *q = NEW(struct mcp_request);
	json_t *token;

	q->session = s;
	q->id = json_incref(m->id);
	q->params = m->params ? json_incref(m->params) : json_object();
	q->request_id = xstrdup(request_id);
	token = json_object_get(json_object_get(q->params, "_meta"), "progressToken");
	if (json_is_integer(token) ||
	    (json_is_string(token) && json_string_length(token) <= RPC_ID_MAX))
		q->token = json_incref(token);
	list_append(&s->requests, &q->node);
	s->requests_count++;
	return q;
}

/* Return: whether there is one; then @q is gone. */
static bool take_answer(struct mcp_request *q, struct buf *ret_answer)
{
	if (!q->answer)
		return false;
	(void)!buf_add(ret_answer, q->answer, q->answer_len);
	leave(q);
	request_free(q);
	return true;
}

void mcp_request_hold(struct mcp_request *q, struct mcp_request **holder)
{
	*holder = q;
	q->holder = holder;
}

bool mcp_request_let_go(struct mcp_request *q, struct buf *ret_answer)
{
	q->holder = NULL;
	return take_answer(q, ret_answer);
}

struct mcp_request *mcp_dispatch(struct mcp_session *s, const struct principal *who,
                                 const char *request_id, const struct rpc_message *m,
                                 struct buf *ret_answer)
{
	const struct method *method = find_method(m->method);
	size_t len;
	cleanup_free char *refusal = refuse(s, who, request_id, m, &len);
	struct mcp_request *q;

	mcp_session_touch(s);
	if (refusal || !method) {
		(void)!buf_add_str(ret_answer, refusal ? refusal : "");
		return NULL;
	}
	q = request_new(s, m, request_id);
	q->principal = who;
	q->starting = true;
	method->run(q);
	q->starting = false;
	q->principal = NULL;
	return take_answer(q, ret_answer) ? NULL : q;
}

/* Notifications. */

static void cancelled(struct mcp_session *s, const json_t *params)
{
	json_t *id = json_object_get(params, "requestId");
	struct mcp_request *q = id ? find_request(s, id) : NULL;

	/* What is not known has been answered already: such a notification may come late. */
	if (q)
		mcp_request_drop(q);
}

void mcp_notify(struct mcp_session *s, const struct rpc_message *m)
{
	mcp_session_touch(s);
	if (str_equal(m->method, "notifications/cancelled"))
		cancelled(s, m->params);
	/* Others are for who asked for them; that the client is ready is seen by what it asks. */
}
