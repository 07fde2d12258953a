/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/port.h"

#include "api/op/message_meter.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/size.h"
#include "core/session/session_ports.h"
#include "core/tenant/principal.h"
#include "http/ws.h"

/*
 * Theory of operation. The upgrade waits for the program's accept, so that "nothing listens" is an
 * HTTP error. Bytes of the program wait in @out, at most a window; one message at a time is in the
 * WebSocket, and its bytes are granted again when the socket has them. Bytes of the client that the
 * box has no room for wait in @in, at most a message, and meanwhile the client is not read. Nor is
 * it while its tenant is over its quota.
 *
 * The object lives as long as the request, then as long as the WebSocket.
 */

#define MESSAGE_MAX (256 * KIB)
#define WAITING_MAX (1 * MIB)
/* What http_ws_hold lets through. */
#define HOLD_SLACK (4 * KIB)
#define CHUNK      (64 * KIB)

struct port_socket {
	struct pending pending;
	struct port_conn *conn; /* NULL: closed */
	struct http_ws *ws;     /* NULL: not upgraded yet */
	bool is_open;           /* messages can be sent */
	struct buf in, out;
	size_t sending;         /* bytes of the message in the WebSocket */
	bool busy;              /* there is one */
	bool in_ended;          /* the client sends no more */
	bool out_ended;         /* the program sends no more */
	bool out_told;          /* and the client knows */
	enum http_ws_code code; /* once @conn is closed */
	struct message_meter meter;
};

static void socket_free(struct port_socket *s)
{
	meter_close(&s->meter);
	buf_done(&s->in);
	buf_done(&s->out);
	free(s);
}

static void send_message(struct port_socket *s, size_t len)
{
	s->busy = true;
	s->sending = len;
	http_ws_send_binary(s->ws, s->out.data ? s->out.data : "", len);
	buf_consume(&s->out, len);
}

/* From the box to the client. */
static void pump_out(struct port_socket *s)
{
	if (!s->is_open || s->busy)
		return;
	if (s->out.len > 0) {
		send_message(s, s->out.len < CHUNK ? s->out.len : CHUNK);
	} else if (s->out_ended && !s->out_told) {
		s->out_told = true;
		send_message(s, 0);
	} else if (!s->conn) {
		http_ws_close(s->ws, s->code);
	}
}

/* From the client to the box. */
static void pump_in(struct port_socket *s)
{
	if (!s->conn)
		return;
	if (s->in.len > 0)
		buf_consume(&s->in, port_write(s->conn, s->in.data, s->in.len));
	http_ws_hold(s->ws, s->in.len > 0 || meter_is_over(&s->meter));
	if (s->in.len == 0 && s->in_ended)
		port_finish(s->conn);
}

/* The box. */

static void on_data(void *ctx, const char *data, size_t len)
{
	struct port_socket *s = ctx;
	int r = buf_add(&s->out, data, len);

	assert(r == 0); /* within the window, which the link enforces */
	(void)r;
	pump_out(s);
}

static void on_room(void *ctx)
{
	struct port_socket *s = ctx;

	if (s->in.len > 0)
		pump_in(s);
}

static void on_finished(void *ctx)
{
	struct port_socket *s = ctx;

	s->out_ended = true;
	pump_out(s);
}

static void on_port_closed(void *ctx, const struct error *err)
{
	struct port_socket *s = ctx;

	s->conn = NULL;
	if (!s->ws) {
		reply_error(pending_resume(&s->pending), err);
		socket_free(s);
		return;
	}
	/* ERR_CONFLICT: the session has ended. */
	s->code = !err                        ? HTTP_WS_NORMAL
	          : err->code == ERR_CONFLICT ? HTTP_WS_GOING_AWAY
	                                      : HTTP_WS_FAILED;
	http_ws_hold(s->ws, false); /* for the client's close */
	pump_out(s);
}

/* The client. */

static void on_ws_opened(void *ctx)
{
	struct port_socket *s = ctx;

	s->is_open = true;
	pump_out(s);
}

static void on_ws_sent(void *ctx)
{
	struct port_socket *s = ctx;
	size_t sent = TAKE(s->sending, 0);

	s->busy = false;
	if (s->conn && sent > 0)
		port_grant(s->conn, sent);
	pump_out(s);
}

static void on_ws_binary(void *ctx, const char *data, size_t len)
{
	struct port_socket *s = ctx;

	if (!s->conn)
		return;
	if (s->in_ended || buf_add(&s->in, data, len) < 0) {
		http_ws_close(s->ws, HTTP_WS_POLICY);
		return;
	}
	s->in_ended = len == 0;
	meter_count(&s->meter);
	pump_in(s);
}

static void on_paid(void *ctx)
{
	struct port_socket *s = ctx;

	if (s->ws)
		pump_in(s);
}

static void on_ws_closed(void *ctx)
{
	struct port_socket *s = ctx;

	/* A lost client must not look like one that has sent everything. */
	if (s->conn && s->in.len == 0 && (s->in_ended || http_ws_closed_by_client(s->ws)))
		port_leave(s->conn);
	else if (s->conn)
		port_reset(s->conn);
	socket_free(s);
}

static void on_opened(void *ctx)
{
	static const struct http_ws_config config = {
		.max_message = MESSAGE_MAX, .max_waiting = WAITING_MAX, .protocol = "millibox"};
	struct port_socket *s = ctx;
	const struct http_ws_events events = {.ctx = s,
	                                      .on_closed = on_ws_closed,
	                                      .on_binary = on_ws_binary,
	                                      .on_opened = on_ws_opened,
	                                      .on_sent = on_ws_sent};
	struct http_request *req = pending_resume(&s->pending);
	struct error err = {0};

	if (http_ws_accept(req, &config, &events, &s->ws, &err) == 0)
		return;
	port_reset(s->conn);
	socket_free(s);
	reply_upgrade_error(req, &err);
}

static void on_left(struct pending *p)
{
	struct port_socket *s = CONTAINER_OF(p, struct port_socket, pending);

	port_reset(s->conn);
	socket_free(s);
}

void op_port_connect(struct router *r, struct http_request *req, struct session *session,
                     uint16_t port, const struct principal *principal)
{
	struct port_socket *s = NEW(struct port_socket);
	const struct port_caller caller = {principal->key_id, http_request_id(req)};
	const struct box_port_events events = {.ctx = s,
	                                       .on_opened = on_opened,
	                                       .on_data = on_data,
	                                       .on_room = on_room,
	                                       .on_finished = on_finished,
	                                       .on_closed = on_port_closed};
	struct error err = {0};

	buf_init(&s->in, MESSAGE_MAX + HOLD_SLACK);
	buf_init(&s->out, BOX_PORT_WINDOW);
	meter_open(&s->meter, r, principal->tenant, on_paid, s);
	if (http_ws_check(req, &err) < 0) {
		socket_free(s);
		reply_upgrade_error(req, &err);
		return;
	}
	if (port_open(session, port, &caller, &events, &s->conn, &err) < 0) {
		socket_free(s);
		reply_error(req, &err);
		return;
	}
	pending_wait(&s->pending, req, on_left);
}
