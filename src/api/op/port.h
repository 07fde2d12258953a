/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a WebSocket that is a connection to a port of a session's box. Binary messages are bytes, in
 * both directions; an empty one is the end of its sender's bytes. Either close ends both.
 */

#include <stdint.h>

struct http_request;
struct principal;
struct router;
struct session;

/**
 * op_port_connect - answer @req: 101 when the program has accepted the connection, else the error.
 */
void op_port_connect(struct router *r, struct http_request *req, struct session *session,
                     uint16_t port, const struct principal *principal);
