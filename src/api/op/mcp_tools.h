/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: tools of outside MCP servers, for those who write programs that call them: which a caller
 * may ask for, and how a program in a box calls each.
 */

#include "base/attr.h"
#include "base/buf.h"
#include <jansson.h>
#include <stdbool.h>

struct box_rules;
struct principal;
struct router;

/** mcp_tools_allowed - what boxes of @who can call at most. A reference. */
struct box_rules *mcp_tools_allowed(const struct router *r, const struct principal *who);
/** mcp_tools_add_line - "server.tool(a: str, b: int = ...): What it does". */
void mcp_tools_add_line(struct buf *to, const char *server, const json_t *tool);
/** mcp_tools_add_arguments - a line for each argument. */
void mcp_tools_add_arguments(struct buf *to, const json_t *tool);
/** mcp_tools_score - how well a tool fits the words of @query; 0: not at all. */
unsigned mcp_tools_score(const char *server, const json_t *tool, const char *query);
