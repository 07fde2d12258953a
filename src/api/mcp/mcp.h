/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the Model Context Protocol: sessions of agents, what they ask and what they are told.
 * Transports: Streamable HTTP (mcp_http.c), WebSocket (mcp_ws.c); stdio is the command line's,
 * which is a client of the first. Everything a session does is its tenant's.
 *
 * Owned by the dialect mcp; one per router. On the loop only.
 */

#include "api/route.h"
#include "base/attr.h"

struct mcp;
struct metrics;
struct router;

extern const struct dialect mcp_dialect;

/** mcp_free - what runs for sessions is ended; nobody is answered any more. */
void mcp_free(struct mcp *mcp);
struct mcp *mcp_new(struct router *r) attr_owned(mcp_free);
/** mcp_check_keys - whoever listens with a key that is not valid any more is cut off. Looks at
 * every session: for changes of keys, and now and then for those that expire. */
void mcp_check_keys(struct mcp *mcp);
/** mcp_policies_changed - they were read again. */
void mcp_policies_changed(struct mcp *mcp);
/** mcp_stop - the daemon ends: streams that would stay open are closed, no session is made. */
void mcp_stop(struct mcp *mcp);

/* http.c */
route_fn mcp_post;
route_fn mcp_get;
route_fn mcp_delete;
/* ws.c */
route_fn mcp_ws;
