/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: WebSocket (RFC 6455) on a connection of the server: microhttpd hands the socket over, wslay
 * (only lib/http includes its header) reads and writes frames, the loop tells when. Messages are
 * text and whole; binary ones close it. Pings keep it alive and find out who is dead.
 *
 * Life: http_ws_accept answers the request; messages come by on_message; on_closed comes once,
 * from the loop, whoever ended it, and the handle is invalid when it returns. A client that does
 * not read what it is sent is cut off.
 */

#include "base/attr.h"
#include "base/error.h"
#include "http/server.h"
#include <stddef.h>

struct http_ws;

struct http_ws_events {
	void *ctx;
	void (*on_message)(void *ctx, const char *text, size_t len);
	void (*on_closed)(void *ctx);
};

struct http_ws_config {
	size_t max_message;   /* bytes of one that is received */
	size_t max_waiting;   /* bytes that may wait for the client to read */
	const char *protocol; /* that is chosen where the client offers it; NULL: none */
};

/* Why it is closed, as the client is told. */
enum http_ws_code {
	HTTP_WS_NORMAL = 1000,
	HTTP_WS_GOING_AWAY = 1001,
	HTTP_WS_NOT_TEXT = 1003,
	HTTP_WS_POLICY = 1008,
};

/**
 * http_ws_accept - answer @req, which has no body, with 101. ERR_INVALID names the header that is
 * wrong: nothing was answered then.
 */
int http_ws_accept(struct http_request *req, const struct http_ws_config *config,
                   const struct http_ws_events *events, struct http_ws **ret_ws,
                   struct error *err) attr_must_check;
/** http_ws_send - copied. What does not fit cuts the client off: on_closed follows. */
void http_ws_send(struct http_ws *ws, const char *text, size_t len);
/** http_ws_close - say why, then close; on_closed follows. */
void http_ws_close(struct http_ws *ws, enum http_ws_code code);
