/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/decode.h"
#include "base/attr.h"

#define V1        "/api/v1"
#define SESSION   V1 "/sessions/{id}"
#define TEMPLATE  V1 "/templates/{id}"
#define EXECUTION V1 "/executions/{id}"
/* For later versions of the control plane. */
#define BY_NAME V1 "/executions/sessions/{id}"

/* clang-format off */
static const struct route routes[] = {
	{"GET",    "/healthz",                            ROUTE_BODY_NONE,     true,  v1_healthz, "Check liveness", SCOPE_PUBLIC, .any_host = true},
	{"GET",    "/readyz",                             ROUTE_BODY_NONE,     true,  v1_readyz, "Check readiness", SCOPE_PUBLIC},
	{"GET",    "/metrics",                            ROUTE_BODY_NONE,     true,  v1_metrics, "Get metrics for Prometheus", SCOPE_METRICS},
	{"GET",    "/openapi.json",                       ROUTE_BODY_NONE,     true,  v1_openapi, "Get this API description", SCOPE_ANY},
	{"GET",    "/api.json",                           ROUTE_BODY_NONE,     true,  v1_openapi, "Get this API description (path of /workspace/se clients)", SCOPE_ANY, .compat = true},
	{"POST",   V1 "/execute",                         ROUTE_BODY_JSON,     false, v1_execute, "Run code once in a new box", SCOPE_EXECUTE, .query = &v1_execute_query, .request = &decode_exec_fields},

	{"GET",    V1 "/languages",                       ROUTE_BODY_NONE,     false, v1_language_list, "List languages, whether they are installed, and their options", SCOPE_READ, .query = &v1_language_query},
	{"GET",    V1 "/policies",                        ROUTE_BODY_NONE,     false, v1_policy_list, "List policies that apply to the caller or that it may select", SCOPE_READ},
	{"GET",    V1 "/policies/{id}",                   ROUTE_BODY_NONE,     false, v1_policy_show, "Get a policy and its rules", SCOPE_READ},
	{"POST",   V1 "/policy/explain",                  ROUTE_BODY_JSON,     false, v1_policy_explain, "Explain what a request would be granted, and by which rules", SCOPE_POLICY, .request = &v1_explain_fields},

	{"POST",   V1 "/sessions",                        ROUTE_BODY_JSON,     false, v1_session_create, "Create a session", SCOPE_SESSIONS, .request = &decode_session_fields, .upstream = true},
	{"GET",    V1 "/sessions",                        ROUTE_BODY_NONE,     false, v1_session_list, "List sessions, newest first", SCOPE_READ, .query = &v1_session_query, .shared = true},
	{"GET",    SESSION,                               ROUTE_BODY_NONE,     false, v1_session_show, "Get a session", SCOPE_READ, .load = ROUTE_LOAD_SESSION, .shared = true},
	{"DELETE", SESSION,                               ROUTE_BODY_OPTIONAL, false, v1_session_delete, "Delete a session and its executions", SCOPE_SESSIONS, .load = ROUTE_LOAD_SESSION, .shared = true},
	{"POST",   SESSION "/execute",                    ROUTE_BODY_JSON,     false, v1_session_execute, "Run code in a session", SCOPE_EXECUTE, .load = ROUTE_LOAD_SESSION, .request = &decode_run_fields, .upstream = true},
	{"POST",   SESSION "/terminate",                  ROUTE_BODY_OPTIONAL, false, v1_session_terminate, "Terminate a session; its executions stay readable", SCOPE_SESSIONS, .load = ROUTE_LOAD_SESSION, .upstream = true},
	{"POST",   SESSION "/pause",                      ROUTE_BODY_OPTIONAL, false, v1_session_pause, "Pause a session", SCOPE_SESSIONS, .load = ROUTE_LOAD_SESSION},
	{"POST",   SESSION "/resume",                     ROUTE_BODY_OPTIONAL, false, v1_session_resume, "Resume a paused session", SCOPE_SESSIONS, .load = ROUTE_LOAD_SESSION},
	{"POST",   SESSION "/interrupt",                  ROUTE_BODY_OPTIONAL, false, v1_session_interrupt, "Interrupt the running program of a session", SCOPE_SESSIONS, .load = ROUTE_LOAD_SESSION},
	{"POST",   SESSION "/keepalive",                  ROUTE_BODY_OPTIONAL, false, v1_session_keepalive, "Reset the idle time-out of a session", SCOPE_SESSIONS, .load = ROUTE_LOAD_SESSION},
	{"POST",   SESSION "/dependencies/install",       ROUTE_BODY_JSON,     false, v1_session_install, "Install packages into a session, in the control plane's format", SCOPE_SESSIONS, .load = ROUTE_LOAD_SESSION, .request = &decode_install_fields, .upstream = true, .compat = true},
	{"POST",   SESSION "/packages",                   ROUTE_BODY_JSON,     false, v1_session_packages, "Install packages into a session", SCOPE_SESSIONS, .load = ROUTE_LOAD_SESSION, .request = &v1_session_packages_fields},
	{"GET",    SESSION "/stats",                      ROUTE_BODY_NONE,     false, v1_session_stats, "Get the current resource usage of a session", SCOPE_READ, .load = ROUTE_LOAD_SESSION},
	{"GET",    SESSION "/executions",                 ROUTE_BODY_NONE,     false, v1_session_executions, "List executions of a session, newest first", SCOPE_READ, .query = &v1_executions_query, .load = ROUTE_LOAD_SESSION, .shared = true},
	{"GET",    SESSION "/status",                     ROUTE_BODY_NONE,     false, v1_session_status, "Get the status of a session's latest execution", SCOPE_READ, .load = ROUTE_LOAD_LATEST, .shared = true},
	{"GET",    SESSION "/result",                     ROUTE_BODY_NONE,     false, v1_session_result, "Get the result of a session's latest execution", SCOPE_READ, .load = ROUTE_LOAD_LATEST, .shared = true},

	{"GET",    SESSION "/files",                      ROUTE_BODY_NONE,     false, v1_file_list, "List files of a session, or get a directory as tar", SCOPE_FILES, .query = &v1_file_list_query, .load = ROUTE_LOAD_SESSION, .shared = true},
	{"POST",   SESSION "/files/upload",               ROUTE_BODY_STREAM,   false, v1_file_upload, "Upload a file to a session as a form", SCOPE_FILES, .query = &v1_upload_query, .shared = true},
	{"POST",   SESSION "/files/mkdir",                ROUTE_BODY_JSON,     false, v1_file_mkdir, "Create a directory in a session", SCOPE_FILES, .load = ROUTE_LOAD_SESSION, .request = &v1_mkdir_fields},
	{"POST",   SESSION "/files/move",                 ROUTE_BODY_JSON,     false, v1_file_move, "Move a file or directory in a session", SCOPE_FILES, .load = ROUTE_LOAD_SESSION, .request = &v1_move_fields},
	{"GET",    SESSION "/files/{path...}",            ROUTE_BODY_NONE,     false, v1_file_get, "Read a file of a session, or a directory as tar", SCOPE_FILES, .query = &v1_file_get_query, .load = ROUTE_LOAD_SESSION, .shared = true},
	{"PUT",    SESSION "/files/{path...}",            ROUTE_BODY_STREAM,   false, v1_file_put, "Write a file of a session, or unpack a tar archive", SCOPE_FILES, .query = &v1_file_put_query},
	{"DELETE", SESSION "/files/{path...}",            ROUTE_BODY_NONE,     false, v1_file_delete, "Delete a file or directory of a session", SCOPE_FILES, .query = &v1_file_delete_query, .load = ROUTE_LOAD_SESSION},

	{"GET",    SESSION "/ports",                      ROUTE_BODY_NONE,     false, v1_port_list, "List TCP ports that programs of a session listen on", SCOPE_READ, .load = ROUTE_LOAD_SESSION},
	{"GET",    SESSION "/ports/{port}",               ROUTE_BODY_NONE,     false, v1_port_connect, "Connect to a port of a session (WebSocket)", SCOPE_EXECUTE, .load = ROUTE_LOAD_SESSION},

	{"GET",    "/",                                   ROUTE_BODY_NONE,     true,  v1_root, "Get the name and version of the service", SCOPE_ANY, .shared = true, .compat = true},
	{"GET",    V1 "/health",                          ROUTE_BODY_NONE,     true,  v1_health, "Get health, in the control plane's format", SCOPE_ANY, .shared = true, .compat = true},
	{"GET",    V1 "/health/detailed",                 ROUTE_BODY_NONE,     true,  v1_health_detailed, "Get health of each dependency", SCOPE_READ, .shared = true, .compat = true},
	{"GET",    V1 "/daemon",                          ROUTE_BODY_NONE,     false, v1_daemon, "Get the daemon's version, start, isolation and log", SCOPE_READ},
	{"POST",   V1 "/health/sync",                     ROUTE_BODY_OPTIONAL, false, v1_health_sync, "Compare sessions with their boxes", SCOPE_SESSIONS, .shared = true, .compat = true},
	{"GET",    V1 "/containers",                      ROUTE_BODY_NONE,     false, v1_container_list, "List boxes of sessions that keep theirs, newest first", SCOPE_READ, .query = &v1_container_query, .shared = true, .compat = true},
	{"GET",    V1 "/containers/{id}",                 ROUTE_BODY_NONE,     false, v1_container_show, "Get a box", SCOPE_READ, .shared = true, .compat = true},
	{"GET",    V1 "/containers/{id}/logs",            ROUTE_BODY_NONE,     false, v1_container_logs, "Get the latest output of a box's executions as text", SCOPE_READ, .query = &v1_container_log_query, .shared = true, .compat = true},
	{"GET",    V1 "/containers/{id}/health",          ROUTE_BODY_NONE,     false, v1_container_health, "Get health and usage of a box", SCOPE_READ, .shared = true, .compat = true},
	{"GET",    V1 "/runtimes",                        ROUTE_BODY_NONE,     false, v1_runtime_list, "List drivers", SCOPE_READ, .shared = true, .compat = true},
	{"GET",    V1 "/runtimes/{id}",                   ROUTE_BODY_NONE,     false, v1_runtime_show, "Get a driver", SCOPE_READ, .shared = true, .compat = true},
	{"GET",    V1 "/runtimes/{id}/health",            ROUTE_BODY_NONE,     false, v1_runtime_health, "Check whether a driver can create boxes", SCOPE_READ, .shared = true, .compat = true},
	{"GET",    V1 "/runtimes/{id}/metrics",           ROUTE_BODY_NONE,     false, v1_runtime_metrics, "Get metrics of a driver", SCOPE_READ, .shared = true, .compat = true},
	{"GET",    V1 "/pools",                           ROUTE_BODY_NONE,     false, v1_pool_list, "List pools of prepared boxes", SCOPE_ADMIN},
	{"GET",    V1 "/mcp/servers",                     ROUTE_BODY_NONE,     false, v1_mcp_server_list, "List outside MCP servers whose tools code may call", SCOPE_READ},
	{"GET",    V1 "/mcp/servers/{id}",                ROUTE_BODY_NONE,     false, v1_mcp_server_show, "Get an outside MCP server and its tools", SCOPE_READ},
	{"GET",    V1 "/audit",                           ROUTE_BODY_NONE,     false, v1_audit, "Get the path of the audit log", SCOPE_ADMIN},
	{"POST",   V1 "/internal/{path...}",              ROUTE_BODY_JSON,     false, v1_internal, "Refuse callbacks of another control plane's executors", SCOPE_ANY, .shared = true, .compat = true},
	{"POST",   "/internal/{path...}",                 ROUTE_BODY_JSON,     false, v1_internal, "Refuse callbacks of another control plane's executors", SCOPE_ANY, .shared = true, .compat = true},

	{"GET",    EXECUTION,                             ROUTE_BODY_NONE,     false, v1_execution_show, "Get an execution", SCOPE_READ, .load = ROUTE_LOAD_EXECUTION, .shared = true},
	{"GET",    EXECUTION "/status",                   ROUTE_BODY_NONE,     false, v1_execution_status, "Get the status of an execution", SCOPE_READ, .load = ROUTE_LOAD_EXECUTION, .shared = true},
	{"GET",    EXECUTION "/result",                   ROUTE_BODY_NONE,     false, v1_execution_result, "Get the result of an ended execution", SCOPE_READ, .load = ROUTE_LOAD_EXECUTION, .shared = true},
	{"GET",    EXECUTION "/why",                      ROUTE_BODY_NONE,     false, v1_execution_why, "Explain in three lines what ended an execution, which rule, and what to change", SCOPE_READ, .load = ROUTE_LOAD_EXECUTION},
	{"GET",    EXECUTION "/events",                   ROUTE_BODY_NONE,     false, v1_execution_events, "Stream events of an execution: past ones, then new ones", SCOPE_READ, .query = &v1_events_query, .load = ROUTE_LOAD_EXECUTION},
	{"POST",   EXECUTION "/cancel",                   ROUTE_BODY_OPTIONAL, false, v1_execution_cancel, "Cancel an execution", SCOPE_EXECUTE, .load = ROUTE_LOAD_EXECUTION},
	{"POST",   EXECUTION "/stdin",                    ROUTE_BODY_JSON,     false, v1_execution_stdin, "Write to the standard input of an execution", SCOPE_EXECUTE, .load = ROUTE_LOAD_EXECUTION, .request = &decode_input_fields},
	{"GET",    EXECUTION "/attach",                   ROUTE_BODY_NONE,     false, v1_execution_attach, "Open a WebSocket to the input and output of an execution", SCOPE_EXECUTE, .query = &v1_attach_query, .load = ROUTE_LOAD_EXECUTION},
	{"POST",   EXECUTION "/resize",                   ROUTE_BODY_JSON,     false, v1_execution_resize, "Change the size of an execution's terminal", SCOPE_EXECUTE, .load = ROUTE_LOAD_EXECUTION, .request = &decode_resize_fields},
	{"POST",   BY_NAME "/execute",                    ROUTE_BODY_JSON,     false, v1_session_submit, "Run code in a session without waiting", SCOPE_EXECUTE, .load = ROUTE_LOAD_SESSION, .request = &decode_run_fields, .upstream = true, .compat = true},
	{"POST",   BY_NAME "/execute-sync",               ROUTE_BODY_JSON,     false, v1_session_execute_sync, "Run code in a session and wait for the result", SCOPE_EXECUTE, .query = &v1_sync_query, .load = ROUTE_LOAD_SESSION, .request = &decode_run_fields, .upstream = true, .compat = true},
	{"GET",    BY_NAME "/executions",                 ROUTE_BODY_NONE,     false, v1_session_executions, "List executions of a session, newest first", SCOPE_READ, .query = &v1_executions_query, .load = ROUTE_LOAD_SESSION, .shared = true, .compat = true},

	{"POST",   V1 "/templates",                       ROUTE_BODY_JSON,     false, v1_template_create, "Create a template", SCOPE_TEMPLATES, .audit = "template.create", .request = &decode_template_fields, .upstream = true},
	{"POST",   V1 "/templates/import",                ROUTE_BODY_STREAM,   false, v1_template_import, "Create a template from an image archive", SCOPE_TEMPLATES, .query = &v1_import_query, .audit = "template.create"},
	{"GET",    V1 "/templates",                       ROUTE_BODY_NONE,     false, v1_template_list, "List templates, built-in ones first", SCOPE_READ, .query = &v1_template_query, .shared = true},
	{"GET",    V1 "/imports",                         ROUTE_BODY_NONE,     false, v1_import_list, "List image imports in progress", SCOPE_READ, .query = &v1_imports_query},
	{"GET",    V1 "/imports/{id}",                    ROUTE_BODY_NONE,     false, v1_import_show, "Get the progress of an import by its template's id", SCOPE_READ},
	{"GET",    TEMPLATE,                              ROUTE_BODY_NONE,     false, v1_template_show, "Get a template", SCOPE_READ, .shared = true},
	{"PUT",    TEMPLATE,                              ROUTE_BODY_JSON,     false, v1_template_update, "Update a template", SCOPE_TEMPLATES, .audit = "template.change", .request = &decode_template_change_fields, .upstream = true},
	{"DELETE", TEMPLATE,                              ROUTE_BODY_OPTIONAL, false, v1_template_delete, "Delete a template", SCOPE_TEMPLATES, .audit = "template.delete", .shared = true},
	{"GET",    V1 "/secrets",                         ROUTE_BODY_NONE,     false, v1_secret_list, "List secrets, oldest first, without their values", SCOPE_READ, .query = &v1_secret_query},
	{"GET",    V1 "/secrets/{id}",                    ROUTE_BODY_NONE,     false, v1_secret_show, "Get a secret, without its value", SCOPE_READ},
	{"PUT",    V1 "/secrets/{id}",                    ROUTE_BODY_JSON,     false, v1_secret_set, "Set a secret, or replace its value", SCOPE_SECRETS, .audit = "secret.set", .request = &decode_secret_fields},
	{"DELETE", V1 "/secrets/{id}",                    ROUTE_BODY_OPTIONAL, false, v1_secret_delete, "Delete a secret; boxes that use it lose it at once", SCOPE_SECRETS, .audit = "secret.delete"},
	{"GET",    V1 "/receipts/key",                    ROUTE_BODY_NONE,     false, v1_receipt_key, "Get the public key that signs receipts", SCOPE_ANY},
	{"GET",    V1 "/packages/layers",                 ROUTE_BODY_NONE,     false, v1_layer_list, "List layers of installed packages, least recently used first", SCOPE_READ, .query = &v1_layer_query},
	{"POST",   V1 "/packages/layers",                 ROUTE_BODY_JSON,     false, v1_layer_create, "Install packages into a layer", SCOPE_TEMPLATES, .request = &v1_layer_fields},
	{"GET",    V1 "/packages/layers/{id}",            ROUTE_BODY_NONE,     false, v1_layer_show, "Get a layer of packages and its lock", SCOPE_READ},
	{"DELETE", V1 "/packages/layers/{id}",            ROUTE_BODY_OPTIONAL, false, v1_layer_delete, "Remove an unused layer of packages", SCOPE_TEMPLATES, .audit = "packages.delete"},
	{"GET",    V1 "/identity",                        ROUTE_BODY_NONE,     false, v1_identity, "Get the caller's identity and remaining quotas", SCOPE_ANY},
	{"GET",    V1 "/keys",                            ROUTE_BODY_NONE,     false, v1_key_list, "List keys, oldest first", SCOPE_ADMIN, .query = &v1_key_query},
	{"POST",   V1 "/keys",                            ROUTE_BODY_JSON,     false, v1_key_create, "Create a key; only this response has its secret", SCOPE_ADMIN, .audit = "key.create", .request = &decode_key_fields},
	{"GET",    V1 "/keys/{id}",                       ROUTE_BODY_NONE,     false, v1_key_show, "Get a key", SCOPE_ADMIN},
	{"DELETE", V1 "/keys/{id}",                       ROUTE_BODY_OPTIONAL, false, v1_key_revoke, "Revoke a key", SCOPE_ADMIN, .audit = "key.delete"},
	{"GET",    V1 "/tenants",                         ROUTE_BODY_NONE,     false, v1_tenant_list, "List tenants, oldest first", SCOPE_ADMIN, .query = &v1_tenant_query},
	{"POST",   V1 "/tenants",                         ROUTE_BODY_JSON,     false, v1_tenant_create, "Create a tenant", SCOPE_ADMIN, .audit = "tenant.create", .request = &decode_tenant_fields},
	{"GET",    V1 "/tenants/{id}",                    ROUTE_BODY_NONE,     false, v1_tenant_show, "Get a tenant", SCOPE_ADMIN},
	{"PATCH",  V1 "/tenants/{id}",                    ROUTE_BODY_JSON,     false, v1_tenant_change, "Update a tenant's policy or quotas", SCOPE_ADMIN, .audit = "tenant.change", .request = &decode_tenant_change_fields},
	{"DELETE", V1 "/tenants/{id}",                    ROUTE_BODY_OPTIONAL, false, v1_tenant_delete, "Delete an empty tenant", SCOPE_ADMIN, .audit = "tenant.delete"},

	{"GET",    "/api/openapi.json",                   ROUTE_BODY_NONE,     true,  v1_openapi, "Get this API description (path of SandboxRunner clients)", SCOPE_ANY, .compat = true},
};
/* clang-format on */

const struct dialect v1_dialect = {.name = "v1", .routes = routes, .count = ARRAY_SIZE(routes)};
