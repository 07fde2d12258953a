/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "cli/resource.h"

static const struct resource_column columns[] = {
	{"NAME", "name", NULL, 20},   {"KIND", "kind", NULL, 8},     {"STATE", "state", NULL, 10},
	{"CALLS", "calls", NULL, 9},  {"ERRORS", "errors", NULL, 9}, {"STARTS", "starts", NULL, 8},
	{"TOOLS", "tools", NULL, 40}, {"DETAIL", "detail", NULL, 0},
};

static const struct resource servers = {
	.base = "/api/v1/mcp/servers",
	.what = "server name",
	.list = "servers",
	.name_key = "name",
	RESOURCE_COLUMNS(columns),
};

COMMAND(gateway_list, "gateway list", "", "List outside MCP servers and their tools",
        resource_run_list, resource_rows, struct common_options, .data = &servers,
        .text = "Code in a box can call tools of these servers if a request names them (--mcp) "
                "and the policy allows it. CALLS, ERRORS and STARTS need scope admin.\n");
