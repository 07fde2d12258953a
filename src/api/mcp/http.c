/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/config/config.h"
#include "http/status.h"
#include <string.h>
#include <strings.h>

/*
 * Theory of operation. Streamable HTTP: each POST has one message. The response is JSON if the
 * answer is ready, else a stream of events that ends with the answer; a disconnected client resumes
 * it with GET and Last-Event-ID. Any other GET opens the stream for messages of no request. DELETE
 * ends the session.
 *
 * Disconnecting cancels nothing: requests continue, and their messages are kept.
 */

#define BATCH_MAX 100

/* @text is taken. */
static void answer_text(struct http_request *req, int status, const char *text, size_t len)
{
	http_reply_owned(req,
	                 &(struct http_answer){status, "application/json", text, len, NULL, 0});
}

static void reply_rpc_error(struct http_request *req, int status, int code, const char *message)
{
	size_t len;
	char *text = rpc_error(NULL, code, message, NULL, &len);

	answer_text(req, status, text, len);
}

static void reply_rpc_failure(struct http_request *req, const struct error *err)
{
	size_t len;
	char *text = rpc_failure(NULL, err, http_request_id(req), &len);

	http_set_tag(req, REQUEST_TAG_ERROR, (uintptr_t)err->code);
	reply_add_retry(req, err, error_http(err->code));
	answer_text(req, error_http(err->code), text, len);
}

/* @accept is a list of media types. */
static bool accepts(const char *accept, const char *type)
{
	size_t slash = strcspn(type, "/") + 1, len = strlen(type);

	if (!accept)
		return true;
	for (; *accept; accept += strcspn(accept, ","), accept += *accept == ',') {
		size_t n;

		accept += strspn(accept, " \t");
		n = strcspn(accept, ",; \t");
		if ((n == len && strncasecmp(accept, type, n) == 0) ||
		    (n == 3 && strncmp(accept, "*/*", n) == 0) ||
		    (n == slash + 1 && strncasecmp(accept, type, slash) == 0 &&
		     accept[slash] == '*'))
			return true;
	}
	return false;
}

/* Return: false: answered. */
static bool is_served(const struct router *r, struct http_request *req)
{
	static const char name[] = "Mcp-Protocol-Version";
	const char *version = http_header(req, name);
	size_t len;
	char *text;

	if (!r->config->mcp_enabled) {
		reply_rpc_error(req, HTTP_NOT_FOUND, RPC_INVALID_REQUEST,
		                "MCP is not enabled here");
		return false;
	}
	if (!version || mcp_session_version_find(version) != MCP_VERSION_COUNT)
		return true;
	text = rpc_error(NULL, RPC_INVALID_REQUEST,
	                 "Mcp-Protocol-Version must be 2024-11-05, 2025-03-26, 2025-06-18 or "
	                 "2025-11-25",
	                 json_pack("{s:s}", "field", name), &len);
	answer_text(req, HTTP_BAD_REQUEST, text, len);
	return false;
}

/* NULL: answered. */
static struct mcp_session *find_session_of(struct mcp *mcp, struct http_request *req,
                                           const struct principal *who)
{
	const char *id = http_header(req, "Mcp-Session-Id");
	struct mcp_session *s;

	if (!id) {
		reply_rpc_error(req, HTTP_BAD_REQUEST, RPC_INVALID_REQUEST,
		                "Server not initialized: send initialize first, over HTTP then its "
		                "Mcp-Session-Id");
		return NULL;
	}
	s = mcp_session_find(mcp, who->tenant, id);
	if (!s)
		reply_rpc_error(req, HTTP_NOT_FOUND, RPC_INVALID_REQUEST,
		                "no such session: initialize again");
	return s;
}

void mcp_post_answer(struct mcp_post *p, const char *text, size_t len)
{
	if (p->answers_count++ > 0)
		(void)!buf_add_str(&p->answers, ",");
	(void)!buf_add(&p->answers, text, len);
}

/* Messages count against the tenant's rate, the first as the HTTP request. */
static void take_message(struct mcp_post *p, json_t *value)
{
	const char *request_id = http_request_id(p->req);
	cleanup_free char *refusal = NULL;
	struct error err = {0};
	struct rpc_message m;
	size_t len;

	rpc_classify(value, &m);
	if (p->messages++ > 0 && mcp_tenant_take_message(p->mcp, p->session->tenant, &err) < 0 &&
	    m.kind == RPC_REQUEST) {
		refusal = rpc_failure(m.id, &err, request_id, &len);
	} else if (m.kind == RPC_INVALID) {
		p->invalid = true;
		refusal = rpc_error(m.id, RPC_INVALID_REQUEST, m.wrong, NULL, &len);
	} else if (m.kind == RPC_REQUEST) {
		mcp_dispatch(p->session, p, p->who, request_id, &m);
	} else if (m.kind == RPC_NOTIFICATION) {
		mcp_dispatch_notification(p->session, &m);
	}
	if (refusal)
		mcp_post_answer(p, refusal, len);
}

static void answer_now(struct mcp_post *p)
{
	size_t len;
	char *text;

	if (p->answers_count == 0) {
		reply_nothing(p->req, HTTP_ACCEPTED);
		return;
	}
	text = p->array ? xasprintf("[%s]", p->answers.data) : buf_take(&p->answers, &len);
	len = p->array ? p->answers.len + 2 : len;
	answer_text(p->req, p->invalid && !p->array ? HTTP_BAD_REQUEST : HTTP_OK, text, len);
}

static void on_gone(void *ctx)
{
	struct mcp_request *q = ctx;

	q->http = NULL; /* without a stream the answer is lost */
}

/* To @t; NULL: to the response itself. */
static void redirect_requests(struct mcp_post *p, struct mcp_stream *t)
{
	struct mcp_request *q;

	LIST_FOREACH (q, &p->session->requests, struct mcp_request, node) {
		if (q->post != p)
			continue;
		q->post = NULL;
		q->stream = t;
		if (!t && p->array) {
			mcp_request_drop(q);
		} else if (!t) {
			q->http = p->req;
			http_set_gone(p->req, on_gone, q);
		}
	}
}

static void answer_post(struct mcp_post *p)
{
	cleanup_free char *ready = NULL;
	struct mcp_stream *t;

	http_drop_body(p->req);
	if (p->pending == 0) {
		answer_now(p);
		return;
	}
	t = p->takes_events ? mcp_stream_new(p->session) : NULL;
	if (t)
		t->open = p->pending;
	redirect_requests(p, t);
	if (t) {
		mcp_stream_attach(t, p->req, 0);
		if (p->answers_count > 1)
			ready = xasprintf("[%s]", p->answers.data);
		if (p->answers_count > 0)
			mcp_stream_send(t, ready ? ready : p->answers.data,
			                ready ? strlen(ready) : p->answers.len);
	} else if (p->array) {
		reply_rpc_error(p->req, HTTP_NOT_ACCEPTABLE, RPC_INVALID_REQUEST,
		                "a batch needs Accept: text/event-stream");
	}
}

static void begin_session(struct mcp_post *p, json_t *message)
{
	struct error err = {0};
	struct mcp_session *s;

	if (http_header(p->req, "Mcp-Session-Id")) {
		reply_rpc_error(p->req, HTTP_BAD_REQUEST, RPC_INVALID_REQUEST,
		                "already initialized");
		return;
	}
	s = p->session = mcp_session_new(p->mcp, p->who->tenant, &err);
	if (!s) {
		reply_rpc_failure(p->req, &err);
		return;
	}
	take_message(p, message);
	if (s->ready)
		http_add_header(p->req, "Mcp-Session-Id", s->id);
	answer_post(p);
	if (!s->ready)
		mcp_session_free(s);
}

/* Batches ended with 2025-03-26. */
static int check_batch(struct mcp_post *p, const json_t *batch)
{
	size_t count = json_array_size(batch);

	if (p->session->version <= MCP_2025_03_26 && count > 0 && count <= BATCH_MAX)
		return 0;
	reply_rpc_error(p->req, HTTP_BAD_REQUEST, RPC_INVALID_REQUEST,
	                p->session->version > MCP_2025_03_26 ? "this version has no batches"
	                                                     : "a batch has 1 to 100 messages");
	return -1;
}

/* Allowed before a session begins. */
static bool answer_early_ping(const struct mcp_post *p, json_t *body)
{
	struct rpc_message m;
	size_t len;
	char *text;

	rpc_classify(body, &m);
	if (m.kind != RPC_REQUEST || !str_equal(m.method, "ping"))
		return false;
	text = rpc_result(m.id, json_object(), &len);
	answer_text(p->req, HTTP_OK, text, len);
	return true;
}

static void take_body(struct mcp_post *p, json_t *body)
{
	const char *method = json_string_value(json_object_get(body, "method"));

	if (method && str_equal(method, "initialize")) {
		begin_session(p, body);
		return;
	}
	if (!http_header(p->req, "Mcp-Session-Id") && answer_early_ping(p, body))
		return;
	p->array = json_is_array(body);
	p->session = find_session_of(p->mcp, p->req, p->who);
	if (!p->session || (p->array && check_batch(p, body) < 0))
		return;
	if (!p->array)
		take_message(p, body);
	for (size_t i = 0; p->array && i < json_array_size(body); i++)
		take_message(p, json_array_get(body, i));
	answer_post(p);
}

void mcp_post(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *accept = http_header(req, "Accept");
	struct mcp_post p = {
		.mcp = r->mcp,
		.req = req,
		.who = args->principal,
		.takes_events = accept && accepts(accept, "text/event-stream"),
		.answers = BUF_INIT(r->config->max_answers_bytes),
	};
	cleanup_json json_t *value = NULL;
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);

	if (!is_served(r, req))
		return;
	if (!p.takes_events && !accepts(accept, "application/json")) {
		reply_rpc_error(req, HTTP_NOT_ACCEPTABLE, RPC_INVALID_REQUEST,
		                "Accept must have application/json and text/event-stream");
		return;
	}
	value = json_read(body, len, &err);
	if (value)
		take_body(&p, value);
	else
		reply_rpc_failure(req, &err);
	buf_done(&p.answers);
}

void mcp_get(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *last = http_header(req, "Last-Event-ID");
	struct mcp_session *s;
	struct mcp_stream *t;
	uint64_t number = 0;

	if (!is_served(r, req))
		return;
	if (str_equal(http_method(req), "HEAD")) {
		reply_rpc_error(req, HTTP_METHOD_NOT_ALLOWED, RPC_INVALID_REQUEST,
		                "a stream has no HEAD");
		return;
	}
	if (!http_header(req, "Accept") ||
	    !accepts(http_header(req, "Accept"), "text/event-stream")) {
		reply_rpc_error(req, HTTP_NOT_ACCEPTABLE, RPC_INVALID_REQUEST,
		                "Accept must have text/event-stream");
		return;
	}
	s = find_session_of(r->mcp, req, args->principal);
	if (!s)
		return;
	mcp_session_touch(s);
	t = last ? mcp_stream_find(s, last, &number) : s->standing;
	if (last && !t) {
		reply_rpc_error(req, HTTP_NOT_FOUND, RPC_INVALID_REQUEST,
		                "the events after Last-Event-ID are no longer kept; send the "
		                "request again");
		return;
	}
	if (!t) {
		t = s->standing = mcp_stream_new(s);
		t->standing = true;
	}
	/* Without a number: only new events. */
	mcp_stream_attach(t, req, last ? number : t->next - 1);
}

void mcp_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct mcp_session *s;

	if (!is_served(r, req))
		return;
	s = find_session_of(r->mcp, req, args->principal);
	if (!s)
		return;
	mcp_session_free(s);
	reply_nothing(req, HTTP_NO_CONTENT);
}
