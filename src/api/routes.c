/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#define V1        "/api/v1"
#define SESSION   V1 "/sessions/{id}"
#define TEMPLATE  V1 "/templates/{id}"
#define EXECUTION V1 "/executions/{id}"
/* A later spelling of the control plane's. */
#define BY_NAME V1 "/executions/sessions/{id}"

/* Every endpoint, one row each, however long its line. */
/* clang-format off */
static const struct route routes[] = {
	{"GET",    "/healthz",                ROUTE_BODY_NONE,     true,  v1_healthz,              "Whether the daemon is alive"},
	{"GET",    "/readyz",                 ROUTE_BODY_NONE,     true,  v1_readyz,               "Whether the daemon takes executions"},
	{"GET",    "/metrics",                ROUTE_BODY_NONE,     true,  v1_metrics,              "Numbers of the daemon, for Prometheus"},
	{"GET",    "/openapi.json",           ROUTE_BODY_NONE,     true,  v1_openapi,              "This description"},
	{"GET",    "/api.json",               ROUTE_BODY_NONE,     true,  v1_openapi,              "This description, where clients of /workspace/se look for it"},
	{"POST",   V1 "/execute",             ROUTE_BODY_JSON,     false, v1_execute,              "Run code once, in a box of its own"},

	{"GET",    V1 "/policies",            ROUTE_BODY_NONE,     false, v1_policy_list,          "List the policies one may be held to"},
	{"GET",    V1 "/policies/{id}",       ROUTE_BODY_NONE,     false, v1_policy_show,          "Tell every rule of a policy"},
	{"POST",   V1 "/policy/explain",      ROUTE_BODY_JSON,     false, v1_policy_explain,       "What a request would get, and which rule decided"},

	{"POST",   V1 "/sessions",            ROUTE_BODY_JSON,     false, v1_session_create,       "Make a session"},
	{"GET",    V1 "/sessions",            ROUTE_BODY_NONE,     false, v1_session_list,         "List sessions, newest first"},
	{"GET",    SESSION,                   ROUTE_BODY_NONE,     false, v1_session_show,         "Tell about a session"},
	{"DELETE", SESSION,                   ROUTE_BODY_OPTIONAL, false, v1_session_delete,       "End a session and forget it, executions included"},
	{"POST",   SESSION "/execute",        ROUTE_BODY_JSON,     false, v1_session_execute,      "Run code in a session"},
	{"POST",   SESSION "/terminate",      ROUTE_BODY_OPTIONAL, false, v1_session_terminate,    "End a session; its executions stay readable"},
	{"POST",   SESSION "/pause",          ROUTE_BODY_OPTIONAL, false, v1_session_pause,        "Freeze a session"},
	{"POST",   SESSION "/resume",         ROUTE_BODY_OPTIONAL, false, v1_session_resume,       "Let a frozen session go on"},
	{"POST",   SESSION "/interrupt",      ROUTE_BODY_OPTIONAL, false, v1_session_interrupt,    "Interrupt what runs in a session"},
	{"POST",   SESSION "/keepalive",      ROUTE_BODY_OPTIONAL, false, v1_session_keepalive,    "Count as activity: put the idle time-out off"},
	{"POST",   SESSION "/dependencies/install", ROUTE_BODY_JSON, false, v1_session_install,    "Tell which packages a session has"},
	{"GET",    SESSION "/stats",          ROUTE_BODY_NONE,     false, v1_session_stats,        "Usage of a session, now"},
	{"GET",    SESSION "/executions",     ROUTE_BODY_NONE,     false, v1_session_executions,   "List executions of a session, newest first"},
	{"GET",    SESSION "/status",         ROUTE_BODY_NONE,     false, v1_session_status,       "Status of the latest execution of a session"},
	{"GET",    SESSION "/result",         ROUTE_BODY_NONE,     false, v1_session_result,       "Result of the latest execution of a session"},

	{"GET",    "/",                       ROUTE_BODY_NONE,     true,  v1_root,                 "What this is"},
	{"GET",    V1 "/health",              ROUTE_BODY_NONE,     true,  v1_health,               "Whether the daemon is well, in the control plane's words"},
	{"GET",    V1 "/health/detailed",     ROUTE_BODY_NONE,     true,  v1_health_detailed,      "The same, part by part"},
	{"POST",   V1 "/health/sync",         ROUTE_BODY_OPTIONAL, false, v1_health_sync,          "Compare sessions with their boxes"},
	{"GET",    V1 "/containers",          ROUTE_BODY_NONE,     false, v1_container_list,       "List boxes of persistent sessions, newest first"},
	{"GET",    V1 "/containers/{id}",     ROUTE_BODY_NONE,     false, v1_container_show,       "Tell about a box"},
	{"GET",    V1 "/containers/{id}/logs", ROUTE_BODY_NONE,    false, v1_container_logs,       "The latest output of a box's executions, as text"},
	{"GET",    V1 "/containers/{id}/health", ROUTE_BODY_NONE,  false, v1_container_health,     "Whether a box is well, and its usage"},
	{"GET",    V1 "/runtimes",            ROUTE_BODY_NONE,     false, v1_runtime_list,         "List drivers"},
	{"GET",    V1 "/runtimes/{id}",       ROUTE_BODY_NONE,     false, v1_runtime_show,         "Tell about a driver"},
	{"GET",    V1 "/runtimes/{id}/health", ROUTE_BODY_NONE,    false, v1_runtime_health,       "Whether a driver can make boxes"},
	{"GET",    V1 "/runtimes/{id}/metrics", ROUTE_BODY_NONE,   false, v1_runtime_metrics,      "Numbers of a driver"},
	{"POST",   V1 "/internal/{path...}",  ROUTE_BODY_JSON,     false, v1_internal,             "Callbacks of another control plane's executors: refused"},
	{"POST",   "/internal/{path...}",     ROUTE_BODY_JSON,     false, v1_internal,             "Callbacks of another control plane's executors: refused"},

	{"GET",    EXECUTION,                 ROUTE_BODY_NONE,     false, v1_execution_show,       "Tell about an execution"},
	{"GET",    EXECUTION "/status",       ROUTE_BODY_NONE,     false, v1_execution_status,     "Status of an execution"},
	{"GET",    EXECUTION "/result",       ROUTE_BODY_NONE,     false, v1_execution_result,     "Result of an execution that has ended"},
	{"GET",    EXECUTION "/events",       ROUTE_BODY_NONE,     false, v1_execution_events,     "Events of an execution: the past ones, then new ones as they come"},
	{"POST",   EXECUTION "/cancel",       ROUTE_BODY_OPTIONAL, false, v1_execution_cancel,     "End an execution"},
	{"POST",   EXECUTION "/stdin",        ROUTE_BODY_JSON,     false, v1_execution_stdin,      "Give input to an execution"},
	{"POST",   BY_NAME "/execute",        ROUTE_BODY_JSON,     false, v1_session_submit,       "Run code in a session; the answer does not wait"},
	{"POST",   BY_NAME "/execute-sync",   ROUTE_BODY_JSON,     false, v1_session_execute_sync, "Run code in a session and wait for its end"},
	{"GET",    BY_NAME "/executions",     ROUTE_BODY_NONE,     false, v1_session_executions,   "List executions of a session, newest first"},

	{"POST",   V1 "/templates",           ROUTE_BODY_JSON,     false, v1_template_create,      "Make a template"},
	{"GET",    V1 "/templates",           ROUTE_BODY_NONE,     false, v1_template_list,        "List templates, built-in ones first"},
	{"GET",    TEMPLATE,                  ROUTE_BODY_NONE,     false, v1_template_show,        "Tell about a template"},
	{"PUT",    TEMPLATE,                  ROUTE_BODY_JSON,     false, v1_template_update,      "Change a template"},
	{"DELETE", TEMPLATE,                  ROUTE_BODY_OPTIONAL, false, v1_template_delete,      "Delete a template"},
};
/* clang-format on */

const struct route *route_at(size_t index)
{
	return index < ARRAY_SIZE(routes) ? &routes[index] : NULL;
}
