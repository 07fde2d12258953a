/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "core/config/config.h"
#include "core/observe/metrics.h"
#include "http/ws.h"

/*
 * Theory of operation. A WebSocket is an MCP session: each text message is a JSON-RPC message, and
 * both end together. The client is authenticated once; messages count against its tenant's rate. An
 * invalid key closes the connection.
 */

#define WAITING_MAX (16u << 20)

struct socket {
	struct mcp *mcp;
	struct http_ws *ws;
	struct mcp_session *session;       /* NULL: ended */
	const struct principal *principal; /* borrowed */
	char *request_id;
};

static void publish_count(const struct mcp *mcp)
{
	metrics_set(mcp->router->parts.metrics, METRIC_WEBSOCKETS, (double)mcp->sockets);
}

static void socket_free(struct socket *s)
{
	free(s->request_id);
	free(s);
}

static void send_text(void *ctx, const char *text, size_t len)
{
	const struct socket *s = ctx;

	http_ws_send(s->ws, text, len);
}

/* on_closed frees @ctx. */
static void close_socket(void *ctx)
{
	struct socket *s = ctx;

	s->session = NULL;
	http_ws_close(s->ws, HTTP_WS_GOING_AWAY);
}

static void check_key(void *ctx)
{
	struct socket *s = ctx;
	struct mcp_session *session = s->session;

	if (!session || mcp_tenant_key_is_valid(s->mcp, s->principal->key_id))
		return;
	http_ws_close(s->ws, HTTP_WS_POLICY);
	s->session = NULL;
	session->sink = (struct mcp_sink){0};
	mcp_session_free(session);
}

static void on_closed(void *ctx)
{
	struct socket *s = ctx;

	s->mcp->sockets--;
	publish_count(s->mcp);
	if (s->session) {
		s->session->sink = (struct mcp_sink){0};
		mcp_session_free(s->session);
	}
	socket_free(s);
}

/* @text is released. */
static void send_answer(const struct socket *s, char *text, size_t len)
{
	http_ws_send(s->ws, text, len);
	free(text);
}

static void take_message(struct socket *s, json_t *value)
{
	struct error err = {0};
	struct rpc_message m;
	size_t len;
	char *text;

	rpc_classify(value, &m);
	/* Only a request is answered. */
	if (mcp_tenant_take_message(s->mcp, s->principal->tenant, &err) < 0 &&
	    m.kind == RPC_REQUEST) {
		text = rpc_failure(m.id, &err, s->request_id, &len);
		send_answer(s, text, len);
	} else if (json_is_array(value) || m.kind == RPC_INVALID) {
		text = rpc_error(m.id, RPC_INVALID_REQUEST,
		                 json_is_array(value) ? "a WebSocket has no batches" : m.wrong,
		                 NULL, &len);
		send_answer(s, text, len);
	} else if (m.kind == RPC_REQUEST) {
		mcp_dispatch(s->session, NULL, s->principal, s->request_id, &m);
	} else if (m.kind == RPC_NOTIFICATION) {
		mcp_dispatch_notification(s->session, &m);
	}
}

static void on_message(void *ctx, const char *body, size_t len)
{
	struct socket *s = ctx;
	struct error err = {0};
	cleanup_json json_t *value = NULL;
	size_t text_len;
	char *text;

	check_key(s);
	if (!s->session)
		return;
	value = json_read(body, len, &err);
	if (value) {
		take_message(s, value);
		return;
	}
	text = rpc_failure(NULL, &err, s->request_id, &text_len);
	send_answer(s, text, text_len);
}

void mcp_ws(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct http_ws_config config = {r->config->max_body_bytes, WAITING_MAX, "mcp"};
	struct socket *s;
	struct error err = {0};

	if (!r->config->mcp_enabled) {
		(void)error_set(&err, ERR_NOT_FOUND, 0, "MCP is not enabled here");
		reply_error(req, &err);
		return;
	}
	s = NEW(struct socket);
	s->mcp = r->mcp;
	s->principal = args->principal;
	s->request_id = xstrdup(http_request_id(req));
	s->session = mcp_session_new(r->mcp, s->principal->tenant, &err);
	if (!s->session ||
	    http_ws_accept(req, &config,
	                   &(struct http_ws_events){
				   .ctx = s, .on_message = on_message, .on_closed = on_closed},
	                   &s->ws, &err) < 0) {
		if (s->session)
			mcp_session_free(s->session);
		socket_free(s);
		reply_upgrade_error(req, &err);
		return;
	}
	s->session->sink = (struct mcp_sink){send_text, close_socket, check_key, s};
	r->mcp->sockets++;
	publish_count(r->mcp);
}
