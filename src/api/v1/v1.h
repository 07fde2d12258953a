/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the REST API below /api/v1, and /healthz, /metrics, /openapi.json ... Handlers, by file; the
 * table is in routes.c.
 */

#include "api/internal.h"

extern const struct dialect v1_dialect;
/* Request bodies. */
extern const struct fields v1_explain_fields, v1_mkdir_fields, v1_move_fields;
/* Query parameters. */
extern const struct fields v1_container_query, v1_attach_query, v1_container_log_query,
	v1_events_query, v1_execute_query, v1_executions_query, v1_file_delete_query,
	v1_file_get_query, v1_file_list_query, v1_file_put_query, v1_import_query, v1_imports_query,
	v1_key_query, v1_language_query, v1_secret_query, v1_session_query, v1_sync_query,
	v1_template_query, v1_tenant_query, v1_upload_query;

/* container.c */
route_fn v1_container_list;
route_fn v1_container_show;
route_fn v1_container_logs;
route_fn v1_container_health;

/* execute.c */
route_fn v1_execute;

/* package.c */
route_fn v1_layer_list;
route_fn v1_layer_create;
route_fn v1_layer_show;
route_fn v1_layer_delete;
extern const struct fields v1_layer_query, v1_layer_fields;

/* session_install.c */
route_fn v1_session_install;
route_fn v1_session_packages;
extern const struct fields v1_session_packages_fields;

/* execution.c */
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
route_fn v1_execution_resize;
route_fn v1_execution_attach;

/* file.c */
route_fn v1_file_list;
route_fn v1_file_get;
route_fn v1_file_put;
route_fn v1_file_delete;
route_fn v1_file_mkdir;
route_fn v1_file_move;

/* port.c */
route_fn v1_port_list;
route_fn v1_port_connect;

/* health.c */
route_fn v1_root;
route_fn v1_health;
route_fn v1_health_detailed;
route_fn v1_health_sync;
route_fn v1_daemon;
route_fn v1_internal;
route_fn v1_healthz;
route_fn v1_readyz;

/* import.c */
route_fn v1_template_import;
route_fn v1_import_list;
route_fn v1_import_show;

/* key.c */
route_fn v1_key_list;
route_fn v1_key_create;
route_fn v1_key_show;
route_fn v1_key_revoke;

/* secret.c */
route_fn v1_secret_list;
route_fn v1_secret_show;
route_fn v1_secret_set;
route_fn v1_secret_delete;

/* metrics.c */
route_fn v1_metrics;

/* openapi.c */
route_fn v1_openapi;

/* policy.c */
route_fn v1_policy_list;
route_fn v1_policy_show;
route_fn v1_receipt_key;
route_fn v1_execution_why;
route_fn v1_policy_explain;

/* pool.c */
route_fn v1_pool_list;
route_fn v1_mcp_server_list;
route_fn v1_mcp_server_show;
route_fn v1_language_list;
route_fn v1_audit;

/* runtime.c */
route_fn v1_runtime_list;
route_fn v1_runtime_show;
route_fn v1_runtime_health;
route_fn v1_runtime_metrics;

/* session.c */
route_fn v1_session_create;
route_fn v1_session_list;
route_fn v1_session_show;
route_fn v1_session_delete;
route_fn v1_session_terminate;
route_fn v1_session_pause;
route_fn v1_session_resume;
route_fn v1_session_interrupt;
route_fn v1_session_keepalive;
route_fn v1_session_stats;

/* template.c */
route_fn v1_template_create;
route_fn v1_template_list;
route_fn v1_template_show;
route_fn v1_template_update;
route_fn v1_template_delete;

/* tenant.c */
route_fn v1_identity;
route_fn v1_tenant_list;
route_fn v1_tenant_create;
route_fn v1_tenant_show;
route_fn v1_tenant_change;
route_fn v1_tenant_delete;

/* upload.c */
route_fn v1_file_upload;
