/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: connections to ports of a session's box, as in box_port.h. Bytes count as activity; an open
 * connection alone does not keep a session. A pause stops the bytes; the end of the box ends all.
 *
 * Only persistent sessions have them: nothing listens in a box between the executions of an
 * ephemeral one.
 */

#include "base/error.h"
#include "driver/box_port.h"

struct port_conn;
struct port_listing;
struct session;

#define PORTS_PER_SESSION 60                    /* concurrent; the box allows a few more */
#define PORTS_OPEN_US     (10 * 1000 * 1000ULL) /* a program that does not accept */
#define PORTS_LEAVE_US    (5 * 1000 * 1000ULL)

/* Borrowed for the call; for the audit log. */
struct port_caller {
	const char *key_id; /* NULL: none */
	const char *request_id;
};

/**
 * port_open - as box_port_open; @events are copied. ERR_CONFLICT if the session is ephemeral,
 * paused or over, ERR_BUSY if too many are open.
 */
int port_open(struct session *session, uint16_t port, const struct port_caller *caller,
              const struct box_port_events *events, struct port_conn **ret_conn,
              struct error *err) attr_must_check;
size_t port_write(struct port_conn *conn, const char *data, size_t len);
void port_finish(struct port_conn *conn);
void port_grant(struct port_conn *conn, size_t bytes);
/** port_reset - no callback follows. */
void port_reset(struct port_conn *conn);
/**
 * port_leave - the client has closed its side: what it wrote reaches the program, whose bytes are
 * discarded; reset after PORTS_LEAVE_US. No callback follows.
 */
void port_leave(struct port_conn *conn);

/** port_list - as box_port_list. Errors as of port_open. */
int port_list(struct session *session, box_port_list_fn *fn, void *ctx,
              struct port_listing **ret_listing, struct error *err) attr_must_check;
void port_list_cancel(struct port_listing *listing);
