/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/mcp.h"

#include "api/internal.h"

/* One row per endpoint. */
/* clang-format off */
static const struct route routes[] = {
	{"POST",   "/mcp",                                ROUTE_BODY_JSON,     false, mcp_post, "Send a Model Context Protocol message", SCOPE_ANY},
	{"GET",    "/mcp",                                ROUTE_BODY_NONE,     false, mcp_get, "Open or resume the event stream", SCOPE_ANY},
	{"DELETE", "/mcp",                                ROUTE_BODY_OPTIONAL, false, mcp_delete, "End a Model Context Protocol session", SCOPE_ANY},
	{"GET",    "/mcp/ws",                             ROUTE_BODY_NONE,     false, mcp_ws, "Open a WebSocket for the Model Context Protocol", SCOPE_ANY},
};
/* clang-format on */

static void open_mcp(struct router *r)
{
	r->mcp = mcp_new(r);
}

static void close_mcp(struct router *r)
{
	mcp_free(r->mcp);
}

static void stop_mcp(struct router *r)
{
	mcp_stop(r->mcp);
}

static void policies_changed(struct router *r)
{
	mcp_policies_changed(r->mcp);
}

static void keys_changed(struct router *r)
{
	mcp_check_keys(r->mcp);
}

const struct dialect mcp_dialect = {
	.name = "mcp",
	.routes = routes,
	.count = ARRAY_SIZE(routes),
	.open = open_mcp,
	.close = close_mcp,
	.stop = stop_mcp,
	.policies_changed = policies_changed,
	.keys_changed = keys_changed,
};
