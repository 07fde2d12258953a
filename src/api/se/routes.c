/* SPDX-License-Identifier: Apache-2.0 */
#include "api/se/se.h"

#include "base/attr.h"

#define SE "/workspace/se"

/* clang-format off */
static const struct route routes[] = {
	{"GET",    SE "/healthy",                         ROUTE_BODY_NONE,     true,  se_healthy, "Check that the shared environment server is up", SCOPE_ANY},
	{"GET",    SE "/health",                          ROUTE_BODY_NONE,     true,  se_health, "Get health of the shared environment server", SCOPE_ANY},
	{"POST",   SE "/session/{id}",                    ROUTE_BODY_ANY,      false, se_session_create, "Create a shared environment", SCOPE_SESSIONS, .request = &se_session_fields, .upstream = true},
	{"DELETE", SE "/session/{id}",                    ROUTE_BODY_OPTIONAL, false, se_session_delete, "Delete a shared environment", SCOPE_SESSIONS},
	{"GET",    SE "/status/{id}",                     ROUTE_BODY_NONE,     false, se_status, "Get a shared environment and its files", SCOPE_READ},
	{"GET",    SE "/workspaces",                      ROUTE_BODY_NONE,     false, se_workspaces, "List shared environments", SCOPE_READ},
	{"POST",   SE "/upload/{id}",                     ROUTE_BODY_STREAM,   false, se_upload, "Upload a file to a shared environment as a form", SCOPE_FILES, .query = &se_upload_query},
	{"GET",    SE "/download/{id}/{path...}",         ROUTE_BODY_NONE,     false, se_download, "Download a file", SCOPE_FILES},
	{"POST",   SE "/create/{id}",                     ROUTE_BODY_JSON,     false, se_create, "Create a text file", SCOPE_FILES, .request = &se_create_fields, .upstream = true},
	{"GET",    SE "/files/preview/{id}/{path...}",    ROUTE_BODY_NONE,     false, se_preview, "Preview a file", SCOPE_FILES, .query = &se_preview_query},
	{"GET",    SE "/files/{id}",                      ROUTE_BODY_NONE,     false, se_files, "List files of a shared environment", SCOPE_FILES, .query = &se_files_query},
	{"GET",    SE "/files/{id}/{path...}",            ROUTE_BODY_NONE,     false, se_files, "List files of a directory in a shared environment", SCOPE_FILES, .query = &se_files_query},
	{"GET",    SE "/readfile/{id}/{path...}",         ROUTE_BODY_NONE,     false, se_readfile, "Read part of a file as text or base64", SCOPE_FILES, .query = &se_readfile_query},
	{"POST",   SE "/execute/{id}",                    ROUTE_BODY_JSON,     false, se_execute, "Run a command in a shared environment", SCOPE_EXECUTE, .request = &se_execute_fields, .upstream = true},
	{"POST",   SE "/execute_code/{id}",               ROUTE_BODY_JSON,     false, se_execute_code, "Run code in a new process in a shared environment", SCOPE_EXECUTE, .request = &se_execute_code_fields, .upstream = true},
	{"POST",   SE "/cleanup-all",                     ROUTE_BODY_ANY,      false, se_cleanup_all, "Delete all shared environments", SCOPE_SESSIONS, .request = &se_cleanup_fields, .upstream = true},
	{"POST",   SE "/download_from_efast/{id}",        ROUTE_BODY_JSON,     false, se_download_from_efast, "Refuse downloads from an external document store", SCOPE_FILES, .request = &se_efast_fields, .upstream = true},
};

static const struct route v2_routes[] = {
	{"POST",   SE "/v2/execute_code",                 ROUTE_BODY_JSON,     false, se_v2_execute_code, "Call a handler in a new box", SCOPE_EXECUTE, .request = &se_handler_fields, .upstream = true},
};
/* clang-format on */

const struct dialect se_dialect = {
	.name = "se",
	.routes = routes,
	.count = ARRAY_SIZE(routes),
	.prefixes = (const char *const[]){SE, NULL},
	.error_body = se_error_body,
};

const struct dialect se_v2_dialect = {
	.name = "se_v2",
	.routes = v2_routes,
	.count = ARRAY_SIZE(v2_routes),
	.prefixes = (const char *const[]){SE "/v2", NULL},
	.error_body = se_v2_error_body,
};
