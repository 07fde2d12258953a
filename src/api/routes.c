/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#define V1        "/api/v1"
#define SESSION   V1 "/sessions/{id}"
#define SE        "/workspace/se"
#define TEMPLATE  V1 "/templates/{id}"
#define EXECUTION V1 "/executions/{id}"
/* A later spelling of the control plane's. */
#define BY_NAME V1 "/executions/sessions/{id}"

/* Every endpoint, one row each, however long its line. */
/* clang-format off */
/* SandboxRunner's dialect, for each version that a path may name: @P, and those that only the second
 * version has. */
#define SANDBOX "/sandboxes/{id}"
#define SANDBOX_ROWS(P) \
	{"GET",    P "/sandboxes",                ROUTE_BODY_NONE,     false, sandboxes_list,         "List sandboxes", SCOPE_READ}, \
	{"POST",   P "/sandboxes",                ROUTE_BODY_JSON,     false, sandboxes_create,       "Make a sandbox", SCOPE_SESSIONS}, \
	{"GET",    P SANDBOX,                     ROUTE_BODY_NONE,     false, sandboxes_show,         "Tell about a sandbox", SCOPE_READ}, \
	{"PUT",    P SANDBOX,                     ROUTE_BODY_JSON,     false, sandboxes_update,       "Change a sandbox's name, environment or metadata", SCOPE_SESSIONS}, \
	{"PATCH",  P SANDBOX,                     ROUTE_BODY_JSON,     false, sandboxes_update,       "Change parts of a sandbox's environment or metadata", SCOPE_SESSIONS}, \
	{"DELETE", P SANDBOX,                     ROUTE_BODY_OPTIONAL, false, sandboxes_delete,       "Terminate a sandbox", SCOPE_SESSIONS}, \
	{"POST",   P SANDBOX "/start",            ROUTE_BODY_OPTIONAL, false, sandboxes_start,        "Let a stopped sandbox go on", SCOPE_SESSIONS}, \
	{"POST",   P SANDBOX "/stop",             ROUTE_BODY_OPTIONAL, false, sandboxes_stop,         "Freeze a sandbox", SCOPE_SESSIONS}, \
	{"POST",   P SANDBOX "/restart",          ROUTE_BODY_OPTIONAL, false, sandboxes_restart,      "End all that runs in a sandbox; files stay", SCOPE_SESSIONS}, \
	{"GET",    P SANDBOX "/files",            ROUTE_BODY_NONE,     false, sandboxes_files,        "List files of a sandbox", SCOPE_FILES}, \
	{"POST",   P SANDBOX "/files",            ROUTE_BODY_JSON,     false, sandboxes_file_upload,  "Make a file in a sandbox", SCOPE_FILES}, \
	{"GET",    P SANDBOX "/files/{path...}",  ROUTE_BODY_NONE,     false, sandboxes_file_get,     "Read a file of a sandbox", SCOPE_FILES}, \
	{"PUT",    P SANDBOX "/files/{path...}",  ROUTE_BODY_JSON,     false, sandboxes_file_put,     "Write a file of a sandbox", SCOPE_FILES}, \
	{"DELETE", P SANDBOX "/files/{path...}",  ROUTE_BODY_NONE,     false, sandboxes_file_delete,  "Remove a file of a sandbox", SCOPE_FILES}, \
	{"POST",   P SANDBOX "/exec",             ROUTE_BODY_JSON,     false, sandboxes_exec,         "Run a command in a sandbox", SCOPE_EXECUTE}, \
	{"POST",   P SANDBOX "/code",             ROUTE_BODY_JSON,     false, sandboxes_run_code,     "Run code in a sandbox, in a process of its own", SCOPE_EXECUTE}, \
	{"GET",    P "/tools",                    ROUTE_BODY_NONE,     false, sandboxes_tool_list,    "List the tools that agents call", SCOPE_ANY}, \
	{"GET",    P "/tools/{id}",               ROUTE_BODY_NONE,     false, sandboxes_tool_show,    "Tell about a tool", SCOPE_ANY}, \
	{"POST",   P "/tools/{id}/execute",       ROUTE_BODY_JSON,     false, sandboxes_tool_execute, "Call a tool; it needs its own scope", SCOPE_ANY}, \
	{"GET",    P "/resources",                ROUTE_BODY_NONE,     false, sandboxes_resources,    "List the resources that agents read", SCOPE_READ}, \
	{"GET",    P "/resources/{path...}",      ROUTE_BODY_NONE,     false, sandboxes_resource,     "Read a resource by its URI", SCOPE_READ}, \
	{"GET",    P "/prompts",                  ROUTE_BODY_NONE,     false, sandboxes_prompts,      "List the prompts for agents", SCOPE_ANY}, \
	{"GET",    P "/prompts/{id}",             ROUTE_BODY_NONE,     false, sandboxes_prompt,       "Tell about a prompt, or fill it in", SCOPE_ANY}
#define SANDBOX_V2_ROWS(P) \
	{"POST",   P "/sandboxes:batch",          ROUTE_BODY_JSON,     false, sandboxes_batch,        "Do one thing to many sandboxes; each needs its own scope", SCOPE_ANY}, \
	{"GET",    P SANDBOX "/logs",             ROUTE_BODY_NONE,     false, sandboxes_logs,         "What ran in a sandbox printed, line by line", SCOPE_READ}, \
	{"GET",    P SANDBOX "/metrics",          ROUTE_BODY_NONE,     false, sandboxes_metrics,      "Usage of a sandbox, now", SCOPE_READ}

static const struct route routes[] = {
	{"GET",    "/healthz",                ROUTE_BODY_NONE,     true,  v1_healthz,              "Whether the daemon is alive", SCOPE_PUBLIC},
	{"GET",    "/readyz",                 ROUTE_BODY_NONE,     true,  v1_readyz,               "Whether the daemon takes executions", SCOPE_PUBLIC},
	{"GET",    "/metrics",                ROUTE_BODY_NONE,     true,  v1_metrics,              "Numbers of the daemon, for Prometheus", SCOPE_METRICS},
	{"GET",    "/openapi.json",           ROUTE_BODY_NONE,     true,  v1_openapi,              "This description", SCOPE_ANY},
	{"GET",    "/api.json",               ROUTE_BODY_NONE,     true,  v1_openapi,              "This description, where clients of /workspace/se look for it", SCOPE_ANY},
	{"POST",   V1 "/execute",             ROUTE_BODY_JSON,     false, v1_execute,              "Run code once, in a box of its own", SCOPE_EXECUTE},

	{"GET",    V1 "/policies",            ROUTE_BODY_NONE,     false, v1_policy_list,          "List the policies one may be held to", SCOPE_READ},
	{"GET",    V1 "/policies/{id}",       ROUTE_BODY_NONE,     false, v1_policy_show,          "Tell every rule of a policy", SCOPE_READ},
	{"POST",   V1 "/policy/explain",      ROUTE_BODY_JSON,     false, v1_policy_explain,       "What a request would get, and which rule decided", SCOPE_POLICY},

	{"POST",   V1 "/sessions",            ROUTE_BODY_JSON,     false, v1_session_create,       "Make a session", SCOPE_SESSIONS},
	{"GET",    V1 "/sessions",            ROUTE_BODY_NONE,     false, v1_session_list,         "List sessions, newest first", SCOPE_READ},
	{"GET",    SESSION,                   ROUTE_BODY_NONE,     false, v1_session_show,         "Tell about a session", SCOPE_READ},
	{"DELETE", SESSION,                   ROUTE_BODY_OPTIONAL, false, v1_session_delete,       "End a session and forget it, executions included", SCOPE_SESSIONS},
	{"POST",   SESSION "/execute",        ROUTE_BODY_JSON,     false, v1_session_execute,      "Run code in a session", SCOPE_EXECUTE},
	{"POST",   SESSION "/terminate",      ROUTE_BODY_OPTIONAL, false, v1_session_terminate,    "End a session; its executions stay readable", SCOPE_SESSIONS},
	{"POST",   SESSION "/pause",          ROUTE_BODY_OPTIONAL, false, v1_session_pause,        "Freeze a session", SCOPE_SESSIONS},
	{"POST",   SESSION "/resume",         ROUTE_BODY_OPTIONAL, false, v1_session_resume,       "Let a frozen session go on", SCOPE_SESSIONS},
	{"POST",   SESSION "/interrupt",      ROUTE_BODY_OPTIONAL, false, v1_session_interrupt,    "Interrupt what runs in a session", SCOPE_SESSIONS},
	{"POST",   SESSION "/keepalive",      ROUTE_BODY_OPTIONAL, false, v1_session_keepalive,    "Count as activity: put the idle time-out off", SCOPE_SESSIONS},
	{"POST",   SESSION "/dependencies/install", ROUTE_BODY_JSON, false, v1_session_install,    "Tell which packages a session has", SCOPE_SESSIONS},
	{"GET",    SESSION "/stats",          ROUTE_BODY_NONE,     false, v1_session_stats,        "Usage of a session, now", SCOPE_READ},
	{"GET",    SESSION "/executions",     ROUTE_BODY_NONE,     false, v1_session_executions,   "List executions of a session, newest first", SCOPE_READ},
	{"GET",    SESSION "/status",         ROUTE_BODY_NONE,     false, v1_session_status,       "Status of the latest execution of a session", SCOPE_READ},
	{"GET",    SESSION "/result",         ROUTE_BODY_NONE,     false, v1_session_result,       "Result of the latest execution of a session", SCOPE_READ},

	{"GET",    SESSION "/files",          ROUTE_BODY_NONE,     false, v1_file_list,            "List files of a session, or a directory as tar", SCOPE_FILES},
	{"POST",   SESSION "/files/upload",   ROUTE_BODY_STREAM,   false, v1_file_upload,          "Write a file of a session, sent as a form", SCOPE_FILES},
	{"POST",   SESSION "/files/mkdir",    ROUTE_BODY_JSON,     false, v1_file_mkdir,           "Make a directory in a session", SCOPE_FILES},
	{"POST",   SESSION "/files/move",     ROUTE_BODY_JSON,     false, v1_file_move,            "Move a file or directory in a session", SCOPE_FILES},
	{"GET",    SESSION "/files/{path...}", ROUTE_BODY_NONE,    false, v1_file_get,             "Read a file of a session, or a directory as tar", SCOPE_FILES},
	{"PUT",    SESSION "/files/{path...}", ROUTE_BODY_STREAM,  false, v1_file_put,             "Write a file of a session, or unpack a tar archive", SCOPE_FILES},
	{"DELETE", SESSION "/files/{path...}", ROUTE_BODY_NONE,    false, v1_file_delete,          "Remove a file or directory of a session", SCOPE_FILES},

	{"GET",    "/",                       ROUTE_BODY_NONE,     true,  v1_root,                 "What this is", SCOPE_ANY},
	{"GET",    V1 "/health",              ROUTE_BODY_NONE,     true,  v1_health,               "Whether the daemon is well, in the control plane's words", SCOPE_ANY},
	{"GET",    V1 "/health/detailed",     ROUTE_BODY_NONE,     true,  v1_health_detailed,      "The same, part by part", SCOPE_READ},
	{"POST",   V1 "/health/sync",         ROUTE_BODY_OPTIONAL, false, v1_health_sync,          "Compare sessions with their boxes", SCOPE_SESSIONS},
	{"GET",    V1 "/containers",          ROUTE_BODY_NONE,     false, v1_container_list,       "List boxes of persistent sessions, newest first", SCOPE_READ},
	{"GET",    V1 "/containers/{id}",     ROUTE_BODY_NONE,     false, v1_container_show,       "Tell about a box", SCOPE_READ},
	{"GET",    V1 "/containers/{id}/logs", ROUTE_BODY_NONE,    false, v1_container_logs,       "The latest output of a box's executions, as text", SCOPE_READ},
	{"GET",    V1 "/containers/{id}/health", ROUTE_BODY_NONE,  false, v1_container_health,     "Whether a box is well, and its usage", SCOPE_READ},
	{"GET",    V1 "/runtimes",            ROUTE_BODY_NONE,     false, v1_runtime_list,         "List drivers", SCOPE_READ},
	{"GET",    V1 "/runtimes/{id}",       ROUTE_BODY_NONE,     false, v1_runtime_show,         "Tell about a driver", SCOPE_READ},
	{"GET",    V1 "/runtimes/{id}/health", ROUTE_BODY_NONE,    false, v1_runtime_health,       "Whether a driver can make boxes", SCOPE_READ},
	{"GET",    V1 "/runtimes/{id}/metrics", ROUTE_BODY_NONE,   false, v1_runtime_metrics,      "Numbers of a driver", SCOPE_READ},
	{"GET",    V1 "/pools",               ROUTE_BODY_NONE,     false, v1_pool_list,            "List pools of boxes that were made ahead", SCOPE_ADMIN},
	{"POST",   V1 "/internal/{path...}",  ROUTE_BODY_JSON,     false, v1_internal,             "Callbacks of another control plane's executors: refused", SCOPE_ANY},
	{"POST",   "/internal/{path...}",     ROUTE_BODY_JSON,     false, v1_internal,             "Callbacks of another control plane's executors: refused", SCOPE_ANY},

	{"GET",    EXECUTION,                 ROUTE_BODY_NONE,     false, v1_execution_show,       "Tell about an execution", SCOPE_READ},
	{"GET",    EXECUTION "/status",       ROUTE_BODY_NONE,     false, v1_execution_status,     "Status of an execution", SCOPE_READ},
	{"GET",    EXECUTION "/result",       ROUTE_BODY_NONE,     false, v1_execution_result,     "Result of an execution that has ended", SCOPE_READ},
	{"GET",    EXECUTION "/events",       ROUTE_BODY_NONE,     false, v1_execution_events,     "Events of an execution: the past ones, then new ones as they come", SCOPE_READ},
	{"POST",   EXECUTION "/cancel",       ROUTE_BODY_OPTIONAL, false, v1_execution_cancel,     "End an execution", SCOPE_EXECUTE},
	{"POST",   EXECUTION "/stdin",        ROUTE_BODY_JSON,     false, v1_execution_stdin,      "Give input to an execution", SCOPE_EXECUTE},
	{"POST",   BY_NAME "/execute",        ROUTE_BODY_JSON,     false, v1_session_submit,       "Run code in a session; the answer does not wait", SCOPE_EXECUTE},
	{"POST",   BY_NAME "/execute-sync",   ROUTE_BODY_JSON,     false, v1_session_execute_sync, "Run code in a session and wait for its end", SCOPE_EXECUTE},
	{"GET",    BY_NAME "/executions",     ROUTE_BODY_NONE,     false, v1_session_executions,   "List executions of a session, newest first", SCOPE_READ},

	{"POST",   V1 "/templates",           ROUTE_BODY_JSON,     false, v1_template_create,      "Make a template", SCOPE_TEMPLATES},
	{"POST",   V1 "/templates/import",    ROUTE_BODY_STREAM,   false, v1_template_import,      "Make a template of the archive of an image", SCOPE_TEMPLATES},
	{"GET",    V1 "/templates",           ROUTE_BODY_NONE,     false, v1_template_list,        "List templates, built-in ones first", SCOPE_READ},
	{"GET",    V1 "/imports",             ROUTE_BODY_NONE,     false, v1_import_list,          "List imports of images that are under way, and how far they are", SCOPE_READ},
	{"GET",    V1 "/imports/{id}",        ROUTE_BODY_NONE,     false, v1_import_show,          "How far an import is, by the id of its template", SCOPE_READ},
	{"GET",    TEMPLATE,                  ROUTE_BODY_NONE,     false, v1_template_show,        "Tell about a template", SCOPE_READ},
	{"PUT",    TEMPLATE,                  ROUTE_BODY_JSON,     false, v1_template_update,      "Change a template", SCOPE_TEMPLATES},
	{"DELETE", TEMPLATE,                  ROUTE_BODY_OPTIONAL, false, v1_template_delete,      "Delete a template", SCOPE_TEMPLATES},
	{"GET",    V1 "/identity",            ROUTE_BODY_NONE,     false, v1_identity,             "Who asks, and what is left of its quotas", SCOPE_ANY},
	{"GET",    V1 "/keys",                ROUTE_BODY_NONE,     false, v1_key_list,             "List keys, oldest first", SCOPE_ADMIN},
	{"POST",   V1 "/keys",                ROUTE_BODY_JSON,     false, v1_key_create,           "Make a key; its secret is told this once", SCOPE_ADMIN},
	{"GET",    V1 "/keys/{id}",           ROUTE_BODY_NONE,     false, v1_key_show,             "Tell about a key", SCOPE_ADMIN},
	{"DELETE", V1 "/keys/{id}",           ROUTE_BODY_OPTIONAL, false, v1_key_revoke,           "Revoke a key", SCOPE_ADMIN},
	{"GET",    V1 "/tenants",             ROUTE_BODY_NONE,     false, v1_tenant_list,          "List tenants, oldest first", SCOPE_ADMIN},
	{"POST",   V1 "/tenants",             ROUTE_BODY_JSON,     false, v1_tenant_create,        "Make a tenant", SCOPE_ADMIN},
	{"GET",    V1 "/tenants/{id}",        ROUTE_BODY_NONE,     false, v1_tenant_show,          "Tell about a tenant", SCOPE_ADMIN},
	{"PATCH",  V1 "/tenants/{id}",        ROUTE_BODY_JSON,     false, v1_tenant_change,        "Change a tenant's policy or quotas", SCOPE_ADMIN},
	{"DELETE", V1 "/tenants/{id}",        ROUTE_BODY_OPTIONAL, false, v1_tenant_delete,        "Delete a tenant that has nothing left", SCOPE_ADMIN},

	{"POST",   "/mcp",                    ROUTE_BODY_JSON,     false, mcp_post,                "A message of the Model Context Protocol", SCOPE_ANY},
	{"GET",    "/mcp",                    ROUTE_BODY_NONE,     false, mcp_get,                 "What the server says by itself, or the rest of a stream that was cut off", SCOPE_ANY},
	{"DELETE", "/mcp",                    ROUTE_BODY_OPTIONAL, false, mcp_delete,              "End a session of the Model Context Protocol", SCOPE_ANY},
	{"GET",    "/mcp/ws",                 ROUTE_BODY_NONE,     false, mcp_ws,                  "The Model Context Protocol over a WebSocket", SCOPE_ANY},

	{"GET",     SE "/healthy",                    ROUTE_BODY_NONE,      true, se_healthy, "Whether the shared environment is there", SCOPE_ANY},
	{"GET",     SE "/health",                     ROUTE_BODY_NONE,      true, v1_health, "The same, in the words of its documents", SCOPE_ANY},
	{"POST",    SE "/session/{id}",               ROUTE_BODY_ANY,       false, se_session_create, "Make a shared environment", SCOPE_SESSIONS},
	{"DELETE",  SE "/session/{id}",               ROUTE_BODY_OPTIONAL,  false, se_session_delete, "End a shared environment", SCOPE_SESSIONS},
	{"GET",     SE "/status/{id}",                ROUTE_BODY_NONE,      false, se_status, "Tell about a shared environment and its files", SCOPE_READ},
	{"GET",     SE "/workspaces",                 ROUTE_BODY_NONE,      false, se_workspaces, "List shared environments", SCOPE_READ},
	{"POST",    SE "/upload/{id}",                ROUTE_BODY_STREAM,      false, se_upload, "Put a file into a shared environment, as a form", SCOPE_FILES},
	{"GET",     SE "/download/{id}/{path...}",    ROUTE_BODY_NONE,      false, se_download, "The content of a file", SCOPE_FILES},
	{"POST",    SE "/create/{id}",                ROUTE_BODY_JSON,      false, se_create, "Make a file of text", SCOPE_FILES},
	{"GET",     SE "/files/preview/{id}/{path...}",  ROUTE_BODY_NONE,      false, se_preview, "A file, to be shown", SCOPE_FILES},
	{"GET",     SE "/files/{id}",                 ROUTE_BODY_NONE,      false, se_files, "List files of a shared environment", SCOPE_FILES},
	{"GET",     SE "/files/{id}/{path...}",       ROUTE_BODY_NONE,      false, se_files, "List files of a directory of a shared environment", SCOPE_FILES},
	{"GET",     SE "/readfile/{id}/{path...}",    ROUTE_BODY_NONE,      false, se_readfile, "A part of a file, as text or base64", SCOPE_FILES},
	{"POST",    SE "/execute/{id}",               ROUTE_BODY_JSON,      false, se_execute, "Run a command in a shared environment", SCOPE_EXECUTE},
	{"POST",    SE "/execute_code/{id}",          ROUTE_BODY_JSON,      false, se_execute_code, "Run code in a shared environment, in a process of its own", SCOPE_EXECUTE},
	{"POST",    SE "/v2/execute_code",            ROUTE_BODY_JSON,      false, se_v2_execute_code, "Call a handler, in a box of its own", SCOPE_EXECUTE},
	{"POST",    SE "/cleanup-all",                ROUTE_BODY_ANY,       false, se_cleanup_all, "End all shared environments", SCOPE_SESSIONS},
	{"POST",    SE "/download_from_efast/{id}",   ROUTE_BODY_JSON,      false, se_download_from_efast, "Documents of an external store: none can be reached", SCOPE_FILES},

	SANDBOX_ROWS(V1),
	SANDBOX_ROWS("/api/v2"),
	SANDBOX_V2_ROWS("/api/v2"),
	SANDBOX_ROWS("/api"),
	SANDBOX_V2_ROWS("/api"),
	{"GET",    "/mcp/tools",              ROUTE_BODY_NONE,     false, sandboxes_tool_names,    "List tools, as MCP tells them", SCOPE_ANY},
	{"POST",   "/mcp/tools/{id}",         ROUTE_BODY_JSON,     false, sandboxes_tool_call,     "Call a tool with bare arguments; it needs its own scope", SCOPE_ANY},
	{"GET",    "/health",                 ROUTE_BODY_NONE,     true,  sandboxes_health,        "Whether the daemon is well, in the words of SandboxRunner", SCOPE_ANY},
	{"GET",    "/info",                   ROUTE_BODY_NONE,     true,  sandboxes_info,          "What this is, and where what is", SCOPE_ANY},
	{"GET",    "/api/openapi.json",       ROUTE_BODY_NONE,     true,  v1_openapi,              "This description, where clients of SandboxRunner look for it", SCOPE_ANY},
	{"GET",    "/api/docs",               ROUTE_BODY_NONE,     false, sandboxes_docs,          "The same as a page for people", SCOPE_ANY},
};
/* clang-format on */

const struct route *route_at(size_t index)
{
	return index < ARRAY_SIZE(routes) ? &routes[index] : NULL;
}
