/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what the files of api/ share: the table of routes and the handlers in it. */

#include "api/router.h"
#include "core/identity/scope.h"
#include "core/tenant/principal.h"

struct run_record;
struct session;

/* Of the audit log: how many in which second. */
struct refusals {
	uint64_t second;
	unsigned told;
	uint64_t untold;
};

struct router {
	struct router_config parts;
	const struct config *config; /* that of the parts: most handlers want it */
	struct run_service *runs;
	const char *unready; /* literal; NULL: ready */
	uint64_t started_us;
	struct refusals refusals;
	struct outputs *outputs; /* owned */
	struct mcp *mcp;         /* owned */
};

/* @args is borrowed for the call. */
typedef void route_fn(struct router *r, struct http_request *req, const struct route_args *args);

/* Ends a pattern: any number of segments, none included. */
#define ROUTE_REST "{path...}"

enum route_body {
	ROUTE_BODY_NONE,     /* there must not be one */
	ROUTE_BODY_JSON,     /* of at most http.max_body bytes */
	ROUTE_BODY_OPTIONAL, /* none, or one that says nothing: {} */
	ROUTE_BODY_STREAM,   /* as it comes: the handler is called when the header is there */
	ROUTE_BODY_ANY,      /* none, or one of any type; its handler knows */
};

struct route {
	const char *method;
	const char *path; /* at most one {id}, a whole segment, and ROUTE_REST at the end; among
	                     rows that match a path the first counts */
	enum route_body body;
	bool always; /* answered even when there are too many connections */
	route_fn *handle;
	const char *summary; /* as in docs/api/openapi.yaml */
	enum scope scope;    /* what a key must have for it */
};

/** route_at - NULL past the end. */
const struct route *route_at(size_t index);

/* find.c: what a caller may name, by the id in its path; NULL with a 404 in *err. */
struct session *find_session(struct router *r, const struct route_args *args, struct error *err);
struct run_record *find_execution(struct router *r, const struct route_args *args,
                                  struct error *err);

/* What goes with a request; see http_set_tag. */
enum request_tag {
	REQUEST_TAG_ROUTE,     /* const struct route *, once it is known */
	REQUEST_TAG_ERROR,     /* enum error_code of the answer */
	REQUEST_TAG_PRINCIPAL, /* const struct principal *, once it is known */
	REQUEST_TAG_COUNT
};
static_assert(REQUEST_TAG_COUNT <= HTTP_TAGS, "every tag has its place");

/**
 * cors_handle - a page of an origin that is listed may read the answer; whoever is not listed was
 * refused before. Return: whether the request was a question whether it may be asked (preflight),
 * which is then answered.
 */
bool cors_handle(struct http_request *req);

/** audited_done - what the audit log is told of a request that is over. */
void audited_done(struct router *r, const struct http_request *req, const struct http_done *done);
/** audited_refusal - the same of a call of a tool that was turned away; not of other errors. */
void audited_refusal(struct router *r, const struct principal *who, const char *request_id,
                     const struct error *err, const char *tool);
/** account_done - count a request that is over, and log it. */
void account_done(void *ctx, const struct http_request *req, const struct http_done *done);

/* mcp_http.c */
route_fn mcp_post;
route_fn mcp_get;
route_fn mcp_delete;
route_fn mcp_ws; /* mcp_ws.c */

route_fn v1_metrics;
route_fn v1_openapi;

/* v1_container.c */
route_fn v1_container_list;
route_fn v1_container_show;
route_fn v1_container_logs;
route_fn v1_container_health;

/* v1_runtime.c */
route_fn v1_runtime_list;
route_fn v1_runtime_show;
route_fn v1_runtime_health;
route_fn v1_runtime_metrics;

/* v1_health.c */
route_fn v1_root;
route_fn v1_health;
route_fn v1_health_detailed;
route_fn v1_health_sync;
route_fn v1_internal;

/* se_*.c */
route_fn se_healthy;
route_fn se_session_create;
route_fn se_session_delete;
route_fn se_status;
route_fn se_workspaces;
route_fn se_upload;
route_fn se_download;
route_fn se_create;
route_fn se_preview;
route_fn se_files;
route_fn se_readfile;
route_fn se_execute;
route_fn se_execute_code;
route_fn se_v2_execute_code;
route_fn se_cleanup_all;
route_fn se_download_from_efast;

route_fn v1_execute;

/* v1_pool.c */
route_fn v1_pool_list;

/* sandboxes_*.c */
route_fn sandboxes_list;
route_fn sandboxes_create;
route_fn sandboxes_show;
route_fn sandboxes_update;
route_fn sandboxes_delete;
route_fn sandboxes_start;
route_fn sandboxes_stop;
route_fn sandboxes_restart;
route_fn sandboxes_files;
route_fn sandboxes_file_upload;
route_fn sandboxes_file_get;
route_fn sandboxes_file_put;
route_fn sandboxes_file_delete;
route_fn sandboxes_exec;
route_fn sandboxes_run_code;
route_fn sandboxes_tool_list;
route_fn sandboxes_tool_show;
route_fn sandboxes_tool_execute;
route_fn sandboxes_tool_names;
route_fn sandboxes_tool_call;
route_fn sandboxes_resources;
route_fn sandboxes_resource;
route_fn sandboxes_prompts;
route_fn sandboxes_prompt;
route_fn sandboxes_batch;
route_fn sandboxes_logs;
route_fn sandboxes_metrics;
route_fn sandboxes_health;
route_fn sandboxes_info;
route_fn sandboxes_docs;

/* v1_policy.c */
route_fn v1_policy_list;
route_fn v1_policy_show;
route_fn v1_policy_explain;
route_fn v1_healthz;
route_fn v1_readyz;

/* v1_session.c */
route_fn v1_session_create;
route_fn v1_session_list;
route_fn v1_session_install;
route_fn v1_session_show;
route_fn v1_session_delete;
route_fn v1_session_terminate;
route_fn v1_session_pause;
route_fn v1_session_resume;
route_fn v1_session_interrupt;
route_fn v1_session_keepalive;
route_fn v1_session_stats;

/* v1_template.c */
route_fn v1_template_create;
route_fn v1_template_import; /* v1_import.c */
route_fn v1_import_list;
route_fn v1_import_show;
route_fn v1_template_list;
route_fn v1_template_show;
route_fn v1_template_update;
route_fn v1_template_delete;

/* v1_file.c */
route_fn v1_file_list;
route_fn v1_file_get;
route_fn v1_file_put;
route_fn v1_file_delete;
route_fn v1_file_mkdir;
route_fn v1_file_move;
route_fn v1_file_upload;

/* v1_execution.c; those with a session's id come first */
route_fn v1_session_execute;
route_fn v1_session_submit;
route_fn v1_session_execute_sync;
route_fn v1_session_executions;
route_fn v1_session_status;
route_fn v1_session_result;
route_fn v1_execution_show;
route_fn v1_execution_status;
route_fn v1_execution_result;
route_fn v1_execution_events;
route_fn v1_execution_cancel;
route_fn v1_execution_stdin;

/* v1_key.c */
route_fn v1_key_list;
route_fn v1_key_create;
route_fn v1_key_show;
route_fn v1_key_revoke;

/* v1_tenant.c */
route_fn v1_identity;
route_fn v1_tenant_list;
route_fn v1_tenant_create;
route_fn v1_tenant_show;
route_fn v1_tenant_change;
route_fn v1_tenant_delete;
