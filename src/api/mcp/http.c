/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/config/config.h"
#include <string.h>
#include <strings.h>

/*
 * Theory of operation. Streamable HTTP: a message is the body of a POST. What can be answered at
 * once is the answer; what takes longer is a stream of events, which ends with the answer and which
 * a client that was cut off takes up again by a GET with Last-Event-ID. A GET without one is for
 * what the server says by itself. DELETE ends the session.
 *
 * Who leaves has not changed its mind: what runs goes on, and what it says is kept.
 */

#define BATCH_MAX 100

/* A POST on its way. */
struct post {
	struct mcp *mcp;
	struct http_request *req;
	const struct principal *who;
	struct mcp_session *session;
	bool takes_events, takes_json;
	bool array;                             /* a batch: so is its answer */
	struct buf answers;                     /* finished ones, with commas between them */
	struct mcp_request *pending[BATCH_MAX]; /* held; NULL: dropped meanwhile */
	size_t taken, pending_count, answers_count;
	bool invalid; /* the message was none */
};

/* @text is taken. */
static void answer_text(struct http_request *req, int status, const char *text, size_t len)
{
	http_reply_owned(req,
	                 &(struct http_answer){status, "application/json", text, len, NULL, 0});
}

static void refuse(struct http_request *req, int status, int code, const char *message)
{
	size_t len;
	char *text = rpc_error(NULL, code, message, NULL, &len);

	answer_text(req, status, text, len);
}

static void refuse_error(struct http_request *req, const struct error *err)
{
	size_t len;
	char *text = rpc_failure(NULL, err, http_request_id(req), &len);

	http_set_tag(req, REQUEST_TAG_ERROR, (uintptr_t)err->code);
	answer_text(req, error_http(err->code), text, len);
}

/* Whether a list of media types has @type, or a pattern that covers it. */
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

static bool is_served(const struct router *r, struct http_request *req)
{
	if (r->config->mcp_enabled)
		return true;
	refuse(req, 404, RPC_INVALID_REQUEST, "MCP is not enabled here");
	return false;
}

/* Return: 0, or -1: answered. */
static int check_version(struct http_request *req)
{
	static const char name[] = "Mcp-Protocol-Version";
	const char *version = http_header(req, name);
	json_t *data;
	size_t len;
	char *text;

	if (!version || mcp_version_find(version) != MCP_VERSION_COUNT)
		return 0;
	data = json_object();
	json_set(data, "field", json_string(name));
	text = rpc_error(NULL, RPC_INVALID_REQUEST,
	                 "Mcp-Protocol-Version must be 2024-11-05, 2025-03-26, 2025-06-18 or "
	                 "2025-11-25",
	                 data, &len);
	answer_text(req, 400, text, len);
	return -1;
}

/* NULL: answered. */
static struct mcp_session *find_session_of(struct mcp *mcp, struct http_request *req,
                                           const struct principal *who)
{
	const char *id = http_header(req, "Mcp-Session-Id");
	struct mcp_session *s;

	if (!id) {
		refuse(req, 400, RPC_INVALID_REQUEST,
		       "Server not initialized: Mcp-Session-Id is missing");
		return NULL;
	}
	s = mcp_session_find(mcp, who->tenant, id);
	if (!s)
		refuse(req, 404, RPC_INVALID_REQUEST, "no such session: initialize again");
	return s;
}

/* POST */

static bool is_initialize(const json_t *message)
{
	const char *method = json_string_value(json_object_get(message, "method"));

	return method && str_equal(method, "initialize");
}

static void add_answer(struct post *p, const char *text, size_t len)
{
	if (p->answers_count++ > 0)
		(void)!buf_add_str(&p->answers, ",");
	(void)!buf_add(&p->answers, text, len);
}

static void take_request(struct post *p, const struct rpc_message *m)
{
	cleanup_buf struct buf answer = BUF_INIT(p->mcp->router->config->max_answers_bytes);
	struct mcp_request *q =
		mcp_dispatch(p->session, p->who, http_request_id(p->req), m, &answer);

	if (q)
		mcp_request_hold(q, &p->pending[p->pending_count++]);
	else
		add_answer(p, answer.data, answer.len);
}

/* Every message counts for the rate of its tenant; the first one has, as the request that it came
 * with. */
static void take_message(struct post *p, json_t *value)
{
	struct error err = {0};
	struct rpc_message m;
	size_t len;
	char *text;

	rpc_classify(value, &m);
	if (p->taken++ > 0 && mcp_take_message(p->mcp, p->session->tenant, &err) < 0 &&
	    m.kind == RPC_REQUEST) {
		text = rpc_failure(m.id, &err, http_request_id(p->req), &len);
		add_answer(p, text, len);
		free(text);
		return;
	}
	switch (m.kind) {
	case RPC_REQUEST:
		take_request(p, &m);
		break;
	case RPC_NOTIFICATION:
		mcp_notify(p->session, &m);
		break;
	case RPC_INVALID:
		text = rpc_error(m.id, RPC_INVALID_REQUEST, m.wrong, NULL, &len);
		p->invalid = true;
		add_answer(p, text, len);
		free(text);
		break;
	case RPC_RESPONSE: /* we ask nothing */
	case RPC_KIND_COUNT:
		break;
	}
}

/* Nothing is left to wait for. */
static void answer_now(struct post *p)
{
	size_t len;
	char *text;

	if (p->answers_count == 0) {
		reply_nothing(p->req, 202);
		return;
	}
	text = p->array ? xasprintf("[%s]", p->answers.data) : buf_take(&p->answers, &len);
	len = p->array ? p->answers.len + 2 : len;
	answer_text(p->req, p->invalid && !p->array ? 400 : 200, text, len);
}

static void on_gone(void *ctx)
{
	struct mcp_request *q = ctx;

	q->http = NULL; /* the answer is lost: it was to be one, not a stream */
}

/* As a stream: what is there already is its beginning. */
static void answer_later(struct post *p)
{
	struct mcp_stream *t = mcp_stream_new(p->session);

	t->open = p->pending_count;
	for (size_t i = 0; i < p->pending_count; i++)
		p->pending[i]->stream = t;
	if (p->answers_count > 1)
		(void)!buf_add_str(&p->answers, "]");
	mcp_stream_attach(t, p->req, 0);
	if (p->answers_count == 1)
		mcp_stream_send(t, p->answers.data, p->answers.len);
	if (p->answers_count > 1) {
		cleanup_free char *text = xasprintf("[%s", p->answers.data);

		mcp_stream_send(t, text, strlen(text));
	}
}

/* Those that are still to be answered stay. What came later in the same batch may have cancelled
 * some, or ended what they waited for. */
static void settle(struct post *p)
{
	size_t count = p->pending_count;

	p->pending_count = 0;
	for (size_t i = 0; i < count; i++) {
		cleanup_buf struct buf text = BUF_INIT(p->mcp->router->config->max_answers_bytes);
		struct mcp_request *q = p->pending[i];

		if (q && mcp_request_let_go(q, &text))
			add_answer(p, text.data, text.len);
		else if (q)
			p->pending[p->pending_count++] = q;
	}
}

static void answer(struct post *p)
{
	http_drop_body(p->req);
	settle(p);
	if (p->pending_count == 0) {
		answer_now(p);
	} else if (p->takes_events) {
		answer_later(p);
	} else if (p->array) {
		/* One answer, when all are there, would need what no client asks for. */
		for (size_t i = 0; i < p->pending_count; i++)
			mcp_request_drop(p->pending[i]);
		refuse(p->req, 406, RPC_INVALID_REQUEST, "a batch needs Accept: text/event-stream");
	} else {
		p->pending[0]->http = p->req;
		http_set_gone(p->req, on_gone, p->pending[0]);
	}
}

/* The first message of a session. */
static void begin_session(struct post *p, json_t *message)
{
	struct error err = {0};
	struct mcp_session *s;

	if (http_header(p->req, "Mcp-Session-Id")) {
		refuse(p->req, 400, RPC_INVALID_REQUEST, "already initialized");
		return;
	}
	s = p->session = mcp_session_new(p->mcp, p->who->tenant, &err);
	if (!s) {
		refuse_error(p->req, &err);
		return;
	}
	take_message(p, message);
	if (s->ready)
		http_add_header(p->req, "Mcp-Session-Id", s->id);
	answer(p);
	if (!s->ready)
		mcp_session_free(s);
}

/* Batches came with one version and went with the next; older ones have them from JSON-RPC. */
static int check_batch(struct post *p, const json_t *batch)
{
	if (p->session->version > MCP_2025_03_26) {
		refuse(p->req, 400, RPC_INVALID_REQUEST, "this version has no batches");
		return -1;
	}
	if (json_array_size(batch) == 0 || json_array_size(batch) > BATCH_MAX) {
		refuse(p->req, 400, RPC_INVALID_REQUEST, "a batch has 1 to 100 messages");
		return -1;
	}
	return 0;
}

/* A client may ask whether somebody is there before it begins a session. */
static bool is_early_ping(const struct post *p, json_t *body, struct rpc_message *ret_m)
{
	if (http_header(p->req, "Mcp-Session-Id"))
		return false;
	rpc_classify(body, ret_m);
	return ret_m->kind == RPC_REQUEST && str_equal(ret_m->method, "ping");
}

static void answer_ping(const struct post *p, const struct rpc_message *m)
{
	size_t len;
	char *text = rpc_result(m->id, json_object(), &len);

	answer_text(p->req, 200, text, len);
}

static void take_body(struct post *p, json_t *body)
{
	struct rpc_message m;

	p->array = json_is_array(body);
	if (is_initialize(body)) {
		begin_session(p, body);
		return;
	}
	if (is_early_ping(p, body, &m)) {
		answer_ping(p, &m);
		return;
	}
	p->session = find_session_of(p->mcp, p->req, p->who);
	if (!p->session || (p->array && check_batch(p, body) < 0))
		return;
	if (!p->array)
		take_message(p, body);
	for (size_t i = 0; p->array && i < json_array_size(body); i++)
		take_message(p, json_array_get(body, i));
	answer(p);
}

void mcp_post(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *accept = http_header(req, "Accept");
	struct post p = {
		.mcp = r->mcp,
		.req = req,
		.who = args->principal,
		.takes_events = accept && accepts(accept, "text/event-stream"),
		.takes_json = accepts(accept, "application/json"),
		.answers = BUF_INIT(r->config->max_answers_bytes),
	};
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);
	cleanup_json json_t *value = NULL;

	if (!is_served(r, req) || check_version(req) < 0)
		return;
	if (!p.takes_json && !p.takes_events) {
		refuse(req, 406, RPC_INVALID_REQUEST,
		       "Accept must have application/json and text/event-stream");
		return;
	}
	value = json_read(body, len, &err);
	if (value)
		take_body(&p, value);
	else
		refuse_error(req, &err);
	buf_done(&p.answers);
}

/* GET */

void mcp_get(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *last = http_header(req, "Last-Event-ID");
	struct mcp_session *s;
	struct mcp_stream *t;
	uint64_t number = 0;

	if (!is_served(r, req) || check_version(req) < 0)
		return;
	if (str_equal(http_method(req), "HEAD")) {
		refuse(req, 405, RPC_INVALID_REQUEST, "there is nothing to be told of a stream");
		return;
	}
	if (!http_header(req, "Accept") ||
	    !accepts(http_header(req, "Accept"), "text/event-stream")) {
		refuse(req, 406, RPC_INVALID_REQUEST, "Accept must have text/event-stream");
		return;
	}
	s = find_session_of(r->mcp, req, args->principal);
	if (!s)
		return;
	mcp_session_touch(s);
	t = last ? mcp_stream_find(s, last, &number) : s->standing;
	if (last && !t) {
		refuse(req, 404, RPC_INVALID_REQUEST,
		       "Last-Event-ID names nothing that is kept: ask again for what you lack");
		return;
	}
	if (!t) {
		t = s->standing = mcp_stream_new(s);
		t->standing = true;
	}
	/* Who comes without a number wants what is new. */
	mcp_stream_attach(t, req, last ? number : t->next - 1);
}

/* DELETE */

void mcp_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct mcp_session *s;

	if (!is_served(r, req) || check_version(req) < 0)
		return;
	s = find_session_of(r->mcp, req, args->principal);
	if (!s)
		return;
	mcp_session_free(s);
	reply_nothing(req, 204);
}
