/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/sandboxes/tool.h"
#include "base/attr.h"

/* SANDBOX_V2_ROWS exist only in version 2. */
/* clang-format off */
#define SANDBOX "/sandboxes/{id}"
#define SANDBOX_ROWS(P) \
	{"GET",    P "/sandboxes",                        ROUTE_BODY_NONE,     false, sandboxes_list, "List sandboxes", SCOPE_READ, .query = &sandboxes_list_query}, \
	{"POST",   P "/sandboxes",                        ROUTE_BODY_JSON,     false, sandboxes_create, "Create a sandbox", SCOPE_SESSIONS, .request = &sandboxes_create_fields, .upstream = true}, \
	{"GET",    P SANDBOX,                             ROUTE_BODY_NONE,     false, sandboxes_show, "Get a sandbox", SCOPE_READ}, \
	{"PUT",    P SANDBOX,                             ROUTE_BODY_JSON,     false, sandboxes_update, "Replace a sandbox's name, environment or metadata", SCOPE_SESSIONS, .request = &sandboxes_change_fields, .upstream = true}, \
	{"PATCH",  P SANDBOX,                             ROUTE_BODY_JSON,     false, sandboxes_update, "Update parts of a sandbox's environment or metadata", SCOPE_SESSIONS, .request = &sandboxes_change_fields, .upstream = true}, \
	{"DELETE", P SANDBOX,                             ROUTE_BODY_OPTIONAL, false, sandboxes_delete, "Terminate a sandbox", SCOPE_SESSIONS}, \
	{"POST",   P SANDBOX "/start",                    ROUTE_BODY_OPTIONAL, false, sandboxes_start, "Resume a stopped sandbox", SCOPE_SESSIONS}, \
	{"POST",   P SANDBOX "/stop",                     ROUTE_BODY_OPTIONAL, false, sandboxes_stop, "Pause a sandbox", SCOPE_SESSIONS}, \
	{"POST",   P SANDBOX "/restart",                  ROUTE_BODY_OPTIONAL, false, sandboxes_restart, "Kill every program in a sandbox; its files stay", SCOPE_SESSIONS}, \
	{"GET",    P SANDBOX "/files",                    ROUTE_BODY_NONE,     false, sandboxes_files, "List files of a sandbox", SCOPE_FILES, .query = &sandboxes_files_query}, \
	{"POST",   P SANDBOX "/files",                    ROUTE_BODY_JSON,     false, sandboxes_file_upload, "Create a file in a sandbox", SCOPE_FILES, .request = &sandboxes_upload_fields, .upstream = true}, \
	{"GET",    P SANDBOX "/files/{path...}",          ROUTE_BODY_NONE,     false, sandboxes_file_get, "Read a file of a sandbox", SCOPE_FILES, .query = &sandboxes_file_get_query}, \
	{"PUT",    P SANDBOX "/files/{path...}",          ROUTE_BODY_JSON,     false, sandboxes_file_put, "Write a file of a sandbox", SCOPE_FILES, .request = &sandboxes_put_fields, .upstream = true}, \
	{"DELETE", P SANDBOX "/files/{path...}",          ROUTE_BODY_NONE,     false, sandboxes_file_delete, "Delete a file of a sandbox", SCOPE_FILES, .query = &sandboxes_file_delete_query}, \
	{"POST",   P SANDBOX "/exec",                     ROUTE_BODY_JSON,     false, sandboxes_exec, "Run a command in a sandbox", SCOPE_EXECUTE, .request = &sandboxes_exec_fields, .upstream = true}, \
	{"POST",   P SANDBOX "/code",                     ROUTE_BODY_JSON,     false, sandboxes_run_code, "Run code in a new process in a sandbox", SCOPE_EXECUTE, .request = &sandboxes_code_fields, .upstream = true}, \
	{"GET",    P "/tools",                            ROUTE_BODY_NONE,     false, sandboxes_tool_list, "List tools", SCOPE_ANY, .query = &sandboxes_tool_query}, \
	{"GET",    P "/tools/{id}",                       ROUTE_BODY_NONE,     false, sandboxes_tool_show, "Get a tool", SCOPE_ANY}, \
	{"POST",   P "/tools/{id}/execute",               ROUTE_BODY_JSON,     false, sandboxes_tool_execute, "Call a tool; each tool requires its own scope", SCOPE_ANY, .request = &sandboxes_execute_fields, .upstream = true}, \
	{"GET",    P "/resources",                        ROUTE_BODY_NONE,     false, sandboxes_resources, "List resources", SCOPE_READ, .query = &sandboxes_page_query}, \
	{"GET",    P "/resources/{path...}",              ROUTE_BODY_NONE,     false, sandboxes_resource, "Read a resource by URI", SCOPE_READ}, \
	{"GET",    P "/prompts",                          ROUTE_BODY_NONE,     false, sandboxes_prompts, "List prompts", SCOPE_ANY, .query = &sandboxes_page_query}, \
	{"GET",    P "/prompts/{id}",                     ROUTE_BODY_NONE,     false, sandboxes_prompt, "Get a prompt, or fill it in", SCOPE_ANY}
#define SANDBOX_V2_ROWS(P) \
	{"POST",   P "/sandboxes:batch",                  ROUTE_BODY_JSON,     false, sandboxes_batch, "Apply one action to several sandboxes; each action requires its own scope", SCOPE_ANY, .request = &sandboxes_batch_fields, .upstream = true}, \
	{"GET",    P SANDBOX "/logs",                     ROUTE_BODY_NONE,     false, sandboxes_logs, "Get the output of a sandbox's programs, line by line", SCOPE_READ, .query = &sandboxes_log_query}, \
	{"GET",    P SANDBOX "/metrics",                  ROUTE_BODY_NONE,     false, sandboxes_metrics, "Get the current resource usage of a sandbox", SCOPE_READ}

static const struct route routes[] = {
	SANDBOX_ROWS("/api/v1"),
	SANDBOX_ROWS("/api/v2"),
	SANDBOX_V2_ROWS("/api/v2"),
	SANDBOX_ROWS("/api"),
	SANDBOX_V2_ROWS("/api"),
};

static const struct route tool_routes[] = {
	{"GET",    "/mcp/tools",                          ROUTE_BODY_NONE,     false, sandboxes_tool_names, "List tools in MCP's format", SCOPE_ANY},
	{"POST",   "/mcp/tools/{id}",                     ROUTE_BODY_JSON,     false, sandboxes_tool_call, "Call a tool with bare arguments; each tool requires its own scope", SCOPE_ANY},
};

static const struct route about_routes[] = {
	{"GET",    "/health",                             ROUTE_BODY_NONE,     true,  sandboxes_health, "Get health, in SandboxRunner's format", SCOPE_ANY},
	{"GET",    "/info",                               ROUTE_BODY_NONE,     true,  sandboxes_info, "Get the name of the service and its endpoints", SCOPE_ANY},
	{"GET",    "/api/docs",                           ROUTE_BODY_NONE,     false, sandboxes_docs, "Get this API description as a web page", SCOPE_ANY},
};
/* clang-format on */

#define NOUNS(P) P "/sandboxes", P "/tools", P "/resources", P "/prompts"

const struct dialect sandboxes_dialect = {
	.name = "sandboxes",
	.routes = routes,
	.count = ARRAY_SIZE(routes),
	.prefixes = (const char *const[]){NOUNS("/api/v1"), "/api/v2", NOUNS("/api"), NULL},
	.error_body = sandboxes_error_body,
};

const struct dialect sandboxes_tool_dialect = {
	.name = "sandboxes_tool",
	.routes = tool_routes,
	.count = ARRAY_SIZE(tool_routes),
	.prefixes = (const char *const[]){"/mcp/tools", NULL},
	.error_body = sandboxes_tool_error_body,
};

/* Their errors have the common envelope. */
const struct dialect sandboxes_about_dialect = {
	.name = "sandboxes_about",
	.routes = about_routes,
	.count = ARRAY_SIZE(about_routes),
};
