/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: WebSocket (RFC 6455): microhttpd hands the connection's socket over, wslay (only lib/http
 * includes its header) reads and writes frames. Messages are complete; a kind without a callback
 * closes the connection. Pings detect dead clients.
 *
 * Life: http_ws_accept responds to the request; messages arrive in on_message and on_binary;
 * on_closed is called once, from the loop, whichever side closed, and invalidates the handle. A
 * client that does not read is cut off; a sender that waits for on_sent never comes to that.
 */

#include "base/attr.h"
#include "base/error.h"
#include "http/server.h"
#include <stdbool.h>
#include <stddef.h>

struct http_ws;

struct http_ws_events {
	void *ctx;
	void (*on_message)(void *ctx, const char *text, size_t len); /* NULL: no text */
	void (*on_closed)(void *ctx);
	/* All may be NULL. */
	void (*on_binary)(void *ctx, const char *data, size_t len);
	void (*on_opened)(void *ctx); /* http_ws_send works from now on */
	void (*on_sent)(void *ctx);   /* everything sent so far is in the socket */
};

struct http_ws_config {
	size_t max_message;   /* of one received message */
	size_t max_waiting;   /* bytes that may wait for the client to read */
	const char *protocol; /* selected if offered; NULL: none */
};

enum http_ws_code {
	HTTP_WS_NORMAL = 1000,
	HTTP_WS_GOING_AWAY = 1001,
	HTTP_WS_BAD_KIND = 1003,
	HTTP_WS_POLICY = 1008,
	HTTP_WS_FAILED = 1011,
};

/** http_ws_check - whether @req asks for a WebSocket, for those who answer it later. */
int http_ws_check(const struct http_request *req, struct error *err) attr_must_check;
/**
 * http_ws_accept - respond to @req, which has no body, with 101. ERR_INVALID names the bad header;
 * no response is sent.
 */
int http_ws_accept(struct http_request *req, const struct http_ws_config *config,
                   const struct http_ws_events *events, struct http_ws **ret_ws,
                   struct error *err) attr_must_check;
/** http_ws_send - copies. Cuts off a client without room; on_closed follows. */
void http_ws_send(struct http_ws *ws, const char *text, size_t len);
void http_ws_send_binary(struct http_ws *ws, const char *data, size_t len);
/**
 * http_ws_hold - stop reading the client's messages, or go on. What one turn has read, less than a
 * kilobyte, may still arrive.
 */
void http_ws_hold(struct http_ws *ws, bool hold);
/** http_ws_closed_by_client - in on_closed: the client said so, it was not lost. */
bool http_ws_closed_by_client(const struct http_ws *ws);
/** http_ws_close - send @code, then close; on_closed follows. */
void http_ws_close(struct http_ws *ws, enum http_ws_code code);
