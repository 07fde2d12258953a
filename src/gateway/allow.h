/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: which tools a box may call. Every text is a digit, the layer, and a pattern SERVER/TOOL in
 * which '*' stands for anything but a slash; as the whole TOOL for all of the server. A tool is
 * allowed if each layer that has a text has one that matches: what a request asks for, and what
 * each policy grants. Without layer 0 nothing is. Pure.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

enum allow_layer {
	ALLOW_REQUEST, /* mcp of the request */
	ALLOW_SERVERS, /* mcp.servers of a policy */
	ALLOW_TOOLS,   /* mcp.tools of it */
	ALLOW_SERVERS_CHOSEN,
	ALLOW_TOOLS_CHOSEN,
	ALLOW_LAYER_COUNT
};

/** allow_is_pattern - SERVER or SERVER/TOOL, of letters, digits and "._-*". */
bool allow_is_pattern(const char *text);
/** allow_text - the text of @layer for @pattern, which may lack its tool. Owned. */
char *allow_text(enum allow_layer layer, const char *pattern) attr_must_check;
/**
 * allow_tool - may @server's @tool be called? Return: NULL, or the rule that refuses it: "mcp",
 * "mcp.servers" or "mcp.tools".
 */
const char *allow_tool(char *const *texts, const char *server, const char *tool);
/** allow_server - may some tool of it be called? */
bool allow_server(char *const *texts, const char *server);
