/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/str.h"
#include "http/internal.h"
#include "http/ws_proof.h"
#include "io/loop.h"
#include "io/timer.h"
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <wslay/wslay.h>

/*
 * Theory of operation. After the 101 response microhttpd leaves the socket alone, and keeps the
 * connection and its request until MHD_upgrade_action closes it. The request owns the WebSocket
 * until the hand-over, then the connection.
 *
 * wslay answers every ping, and unread pongs would fill the memory. So nothing is read while much
 * waits to be sent.
 *
 * The end is marked at once and done from the loop (finish), with neither wslay nor microhttpd on
 * the stack.
 */

#define KEY_LEN    24
#define NONCE_LEN  16
#define PING_US    (54 * USEC_PER_SEC)
#define SILENCE_US (120 * USEC_PER_SEC) /* two pings unanswered */
#define CLOSE_US   (5 * USEC_PER_SEC)   /* for the client's close */
/* Per round, so that no client starves others. A whole piece is processed at once, so pieces are
 * small. */
#define TURN_MESSAGES 8
#define TURN_BYTES    65536
#define PIECE_BYTES   1024
/* Read nothing while more messages wait. */
#define BEHIND_MESSAGES 256
#define MESSAGE_COST    256 /* wslay's overhead per message, about */

struct http_ws {
	struct http_request *req; /* until the hand-over */
	struct http_conn *conn;
	struct loop *loop;
	struct MHD_UpgradeResponseHandle *urh; /* NULL: before the hand-over */
	int fd;                                /* owned by microhttpd */
	struct watch *watch;
	struct timer *timer;
	wslay_event_context_ptr wslay;
	struct http_ws_config config;
	struct http_ws_events events;
	char *early; /* owned: bytes that came with the handshake */
	size_t early_len, early_off;
	uint64_t heard_us;
	size_t turn_messages, turn_bytes;
	bool inside; /* wslay is on the stack */
	bool closing, ending, aborted;
	bool lost;    /* the client disconnected */
	bool held;    /* read nothing */
	bool sending; /* on_sent is due */
};

static void continue_receiving(void *arg);
static void report_sent(void *arg);

static void ws_free(struct http_ws *ws)
{
	if (ws->wslay)
		wslay_event_context_free(ws->wslay);
	watch_free(ws->watch);
	timer_free(ws->timer);
	free(ws->early);
	free(ws);
}

static void finish_ws(void *arg)
{
	struct http_ws *ws = arg;
	struct http_listener *l = ws->conn->listener;

	ws->conn->ws = NULL;
	/* Unread input turns the close into a reset, and the client misses the close code. With TLS
	 * the socket is not the client's. */
	if (!ws->aborted && !l->is_tls && wslay_event_get_close_sent(ws->wslay))
		linger_start(l->server, ws->fd);
	loop_cancel(ws->loop, continue_receiving, ws);
	loop_cancel(ws->loop, report_sent, ws);
	watch_free(TAKE_PTR(ws->watch));
	(void)MHD_upgrade_action(ws->urh, MHD_UPGRADE_ACTION_CLOSE); /* cannot fail for this one */
	listener_run_soon(l);
	ws->events.on_closed(ws->events.ctx);
	ws_free(ws);
}

static void end_ws(struct http_ws *ws)
{
	if (ws->ending)
		return;
	ws->ending = true;
	watch_set(ws->watch, 0);
	timer_stop(ws->timer);
	loop_defer(ws->loop, finish_ws, ws);
}

void ws_abort(struct http_ws *ws)
{
	ws->aborted = true;
	loop_cancel(ws->loop, finish_ws, ws);
	finish_ws(ws);
}

void ws_hung_up(struct http_ws *ws)
{
	end_ws(ws);
}

void ws_unborn(struct http_ws *ws)
{
	ws->events.on_closed(ws->events.ctx);
	ws_free(ws);
}

static bool is_behind(const struct http_ws *ws)
{
	return wslay_event_get_queued_msg_count(ws->wslay) > BEHIND_MESSAGES;
}

static bool can_read(const struct http_ws *ws)
{
	return !ws->held && !is_behind(ws);
}

static size_t waiting_bytes(const struct http_ws *ws)
{
	return wslay_event_get_queued_msg_length(ws->wslay) +
	       wslay_event_get_queued_msg_count(ws->wslay) * MESSAGE_COST;
}

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *room, size_t len, int flags,
                       void *user)
{
	struct http_ws *ws = user;
	size_t early = ws->early_len - ws->early_off;
	ssize_t n;

	(void)flags;
	len = len < PIECE_BYTES ? len : PIECE_BYTES;
	if (ws->ending || ws->held || ws->turn_messages >= TURN_MESSAGES ||
	    ws->turn_bytes >= TURN_BYTES) {
		wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	if (early > 0) {
		early = early < len ? early : len;
		memcpy(room, ws->early + ws->early_off, early);
		ws->early_off += early;
		return (ssize_t)early;
	}
	if (is_behind(ws)) {
		wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	n = recv(ws->fd, room, len, MSG_DONTWAIT);
	if (n > 0) {
		ws->heard_us = clock_us();
		ws->turn_bytes += (size_t)n;
		return n;
	}
	ws->lost = n == 0 || (errno != EAGAIN && errno != EINTR);
	wslay_event_set_error(ctx, ws->lost ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
	return -1;
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t len, int flags,
                       void *user)
{
	struct http_ws *ws = user;
	ssize_t n = send(ws->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	(void)flags;
	if (n >= 0)
		return n;
	wslay_event_set_error(ctx, errno == EAGAIN || errno == EINTR ? WSLAY_ERR_WOULDBLOCK
	                                                             : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static void queue_close(struct http_ws *ws, enum http_ws_code code)
{
	ws->closing = true;
	/* Fails if a close is on its way. */
	(void)wslay_event_queue_close(ws->wslay, (uint16_t)code, NULL, 0);
}

static void take_message(struct http_ws *ws, void (*taker)(void *ctx, const char *data, size_t len),
                         const struct wslay_event_on_msg_recv_arg *arg)
{
	if (taker)
		taker(ws->events.ctx, (const char *)arg->msg, arg->msg_length);
	else
		queue_close(ws, HTTP_WS_BAD_KIND);
}

static void on_msg(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *arg,
                   void *user)
{
	struct http_ws *ws = user;

	(void)ctx;
	if (ws->closing || ws->ending)
		return;
	ws->turn_messages++;
	if (arg->opcode == WSLAY_TEXT_FRAME)
		take_message(ws, ws->events.on_message, arg);
	else if (arg->opcode == WSLAY_BINARY_FRAME)
		take_message(ws, ws->events.on_binary, arg);
	else if (arg->opcode == WSLAY_CONNECTION_CLOSE)
		ws->closing = true;
}

static void pump_ws(struct http_ws *ws)
{
	int r;

	if (ws->inside || ws->ending)
		return;
	ws->inside = true;
	r = wslay_event_send(ws->wslay);
	ws->inside = false;
	/* Clients that do not read must not fill the memory. */
	response_quota_set(ws->conn->req, waiting_bytes(ws));
	if (r < 0 || (!wslay_event_want_read(ws->wslay) && !wslay_event_want_write(ws->wslay))) {
		end_ws(ws);
		return;
	}
	watch_set(ws->watch, (wslay_event_want_read(ws->wslay) && can_read(ws) ? WATCH_READ : 0) |
	                             (wslay_event_want_write(ws->wslay) ? WATCH_WRITE : 0));
	if (ws->sending && ws->events.on_sent && wslay_event_get_queued_msg_count(ws->wslay) == 0) {
		ws->sending = false;
		loop_defer(ws->loop, report_sent, ws);
	}
	if (ws->closing)
		timer_start(ws->timer, CLOSE_US);
}

static void report_sent(void *arg)
{
	struct http_ws *ws = arg;

	/* Sending again: reported later. */
	if (!ws->closing && !ws->ending && !ws->sending)
		ws->events.on_sent(ws->events.ctx);
}

static void receive_messages(struct http_ws *ws)
{
	int r;

	ws->turn_messages = ws->turn_bytes = 0;
	ws->inside = true;
	r = wslay_event_recv(ws->wslay);
	/* wslay queues a close on malformed frames and reads no more. */
	if (r < 0 && !ws->lost)
		(void)wslay_event_send(ws->wslay);
	ws->inside = false;
	if (r < 0)
		end_ws(ws);
	else
		pump_ws(ws);
	/* The socket does not signal bytes of the handshake. */
	if (!ws->ending && !ws->held && ws->early_off < ws->early_len)
		loop_defer(ws->loop, continue_receiving, ws);
}

static void continue_receiving(void *arg)
{
	struct http_ws *ws = arg;

	if (!ws->ending && wslay_event_want_read(ws->wslay))
		receive_messages(ws);
}

static void on_ready(void *ctx, int events)
{
	struct http_ws *ws = ctx;

	if (ws->ending)
		return;
	if (events & WATCH_READ && wslay_event_want_read(ws->wslay))
		receive_messages(ws);
	else
		pump_ws(ws);
}

static void on_timer(void *ctx)
{
	struct http_ws *ws = ctx;
	const struct wslay_event_msg ping = {.opcode = WSLAY_PING, .msg = NULL, .msg_length = 0};

	/* Unread pongs prove nothing. */
	if (ws->held)
		ws->heard_us = clock_us();
	if (ws->closing || clock_us() - ws->heard_us > SILENCE_US ||
	    wslay_event_queue_msg(ws->wslay, &ping) != 0) {
		end_ws(ws);
		return;
	}
	timer_start(ws->timer, PING_US);
	pump_ws(ws);
}

static void send_message(struct http_ws *ws, uint8_t opcode, const char *data, size_t len)
{
	const struct wslay_event_msg msg = {
		.opcode = opcode, .msg = (const uint8_t *)data, .msg_length = len};

	if (!ws->urh || ws->closing || ws->ending)
		return;
	if (waiting_bytes(ws) > ws->config.max_waiting ||
	    wslay_event_queue_msg(ws->wslay, &msg) != 0) {
		end_ws(ws);
		return;
	}
	ws->sending = true;
	pump_ws(ws);
}

void http_ws_send(struct http_ws *ws, const char *text, size_t len)
{
	send_message(ws, WSLAY_TEXT_FRAME, text, len);
}

void http_ws_send_binary(struct http_ws *ws, const char *data, size_t len)
{
	send_message(ws, WSLAY_BINARY_FRAME, data, len);
}

void http_ws_hold(struct http_ws *ws, bool hold)
{
	if (ws->held == hold)
		return;
	ws->held = hold;
	ws->heard_us = clock_us();
	if (!ws->urh || ws->ending)
		return;
	pump_ws(ws);
	/* The socket does not signal bytes that were already read. */
	if (!hold)
		loop_defer(ws->loop, continue_receiving, ws);
}

bool http_ws_closed_by_client(const struct http_ws *ws)
{
	return ws->wslay && wslay_event_get_close_received(ws->wslay);
}

void http_ws_close(struct http_ws *ws, enum http_ws_code code)
{
	if (ws->closing || ws->ending)
		return;
	ws->closing = true;
	if (!ws->urh)
		return; /* on_upgraded continues */
	queue_close(ws, code);
	pump_ws(ws);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are microhttpd's */
static void on_upgraded(void *cls, struct MHD_Connection *mhd, void *req_cls, const char *extra,
                        size_t extra_len, MHD_socket sock, struct MHD_UpgradeResponseHandle *urh)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = on_recv, .send_callback = on_send, .on_msg_recv_callback = on_msg};
	struct http_ws *ws = cls;
	int r;

	(void)mhd;
	(void)req_cls;
	ws->req->ws = NULL;
	ws->req = NULL;
	ws->conn->ws = ws;
	ws->urh = urh;
	ws->fd = sock;
	ws->early = extra_len > 0 ? xmemdup0(extra, extra_len) : NULL;
	ws->early_len = extra_len;
	ws->heard_us = clock_us();
	conn_wait_end(ws->conn);
	r = wslay_event_context_server_init(&ws->wslay, &callbacks, ws);
	assert(r == 0); /* fails only without memory */
	(void)r;
	wslay_event_config_set_max_recv_msg_length(ws->wslay, ws->config.max_message);
	ws->watch = watch_new(ws->loop, sock, on_ready, ws);
	ws->timer = timer_new(ws->loop, on_timer, ws);
	timer_start(ws->timer, PING_US);
	if (ws->closing)
		queue_close(ws, HTTP_WS_GOING_AWAY);
	else if (ws->events.on_opened)
		ws->events.on_opened(ws->events.ctx);
	receive_messages(ws);
}

/* Whether the comma-separated @list has @word. */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (list && *list) {
		size_t n;

		list += strspn(list, ", \t");
		n = strcspn(list, ", \t");
		if (n == len && strncasecmp(list, word, n) == 0)
			return true;
		list += n;
	}
	return false;
}

int http_ws_check(const struct http_request *req, struct error *err)
{
	const char *version = http_header(req, "Sec-WebSocket-Version");
	const char *key = http_header(req, "Sec-WebSocket-Key");
	size_t len = 0;
	cleanup_free char *nonce = NULL;

	if (!str_equal(http_method(req), "GET") ||
	    !has_word(http_header(req, "Upgrade"), "websocket") ||
	    !has_word(http_header(req, "Connection"), "Upgrade"))
		return error_field(err, "Upgrade", "must be websocket");
	if (!version || !str_equal(version, "13"))
		return error_field(err, "Sec-WebSocket-Version", "must be 13");
	if (key && strlen(key) == KEY_LEN)
		nonce = base64_decode(key, KEY_LEN, &len);
	if (len != NONCE_LEN)
		return error_field(err, "Sec-WebSocket-Key", "must be 16 bytes in base64");
	if (req->conn->server->quiescing)
		return error_stopping(err);
	return 0;
}

int http_ws_accept(struct http_request *req, const struct http_ws_config *config,
                   const struct http_ws_events *events, struct http_ws **ret_ws, struct error *err)
{
	cleanup_free char *proof = NULL;
	struct http_ws *ws;

	if (http_ws_check(req, err) < 0)
		return -1;
	proof = ws_proof(http_header(req, "Sec-WebSocket-Key"));
	http_add_header(req, "Upgrade", "websocket");
	http_add_header(req, "Sec-WebSocket-Accept", proof);
	if (config->protocol &&
	    has_word(http_header(req, "Sec-WebSocket-Protocol"), config->protocol))
		http_add_header(req, "Sec-WebSocket-Protocol", config->protocol);
	ws = NEW(struct http_ws);
	*ws = (struct http_ws){.req = req,
	                       .conn = req->conn,
	                       .loop = req->conn->server->config.loop,
	                       .fd = -1,
	                       .config = *config,
	                       .events = *events};
	req->ws = ws;
	response_upgrade(req, on_upgraded, ws);
	*ret_ws = ws;
	return 0;
}
