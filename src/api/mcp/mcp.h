/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the Model Context Protocol: sessions of agents, requests, notifications. Transports:
 * Streamable HTTP (http.c) and WebSocket (ws.c); stdio is a command of the CLI, a client of the
 * first. A session belongs to its tenant.
 *
 * One per router, owned by the dialect mcp. On the loop only.
 */

#include "api/route.h"
#include "base/attr.h"

struct mcp;
struct metrics;
struct router;

extern const struct dialect mcp_dialect;

/** mcp_free - cancels everything; answers nothing. */
void mcp_free(struct mcp *mcp);
struct mcp *mcp_new(struct router *r) attr_owned(mcp_free);
/**
 * mcp_check_keys - disconnect clients with invalid keys: when keys change, and periodically for
 * expiry.
 */
void mcp_check_keys(struct mcp *mcp);
/** mcp_policies_changed - notify subscribers. */
void mcp_policies_changed(struct mcp *mcp);
/** mcp_stop - close standing streams, refuse new sessions. */
void mcp_stop(struct mcp *mcp);

/* http.c */
route_fn mcp_post;
route_fn mcp_get;
route_fn mcp_delete;
/* ws.c */
route_fn mcp_ws;
