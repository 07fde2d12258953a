/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the dialect of the shared environment server, /workspace/se. Callers choose the names of
 * sessions; the first request with a name creates it. Each program runs in a new process. Unknown
 * fields are ignored, as clients expect.
 *
 * Responses have the object itself and the same under `result`: clients differ in what they read.
 */

#include "api/internal.h"
#include "base/error.h"
#include "http/status.h"
#include <jansson.h>

struct file_item;

extern const struct dialect se_dialect, se_v2_dialect;
/* Request bodies. */
extern const struct fields se_cleanup_fields, se_create_fields, se_efast_fields,
	se_execute_code_fields, se_execute_fields, se_handler_fields, se_session_fields;
/* Query parameters. */
extern const struct fields se_files_query, se_preview_query, se_readfile_query, se_upload_query;

/** se_error_body - {"detail": {...}}; see struct dialect. Pure. */
json_t *se_error_body(const struct error *err, const char *request_id, int *status);
/** se_v2_error_body - the same with the second version's error codes. Pure. */
json_t *se_v2_error_body(const struct error *err, const char *request_id, int *status);
#define SE_OK HTTP_OK /* of every success */
/** se_envelope - @body with @result (NULL: itself) under `result`; takes both. Return: owned. */
json_t *se_envelope(json_t *body, json_t *result);
/** se_reply - @body, and @result (NULL: the body itself) under `result`; both are released. */
void se_reply(struct http_request *req, json_t *body, json_t *result);
/** se_decode - no body is an empty object. Return: 0, or -1: the request was answered. The caller
 * releases *out in any case. */
int se_decode(struct http_request *req, const struct route_args *args, const struct fields *fields,
              void *out) attr_must_check;
/**
 * se_session - the session in the path, created if necessary, but only by a POST. NULL: the request
 * was answered.
 */
struct session *se_session(struct router *r, struct http_request *req,
                           const struct route_args *args);
/** se_session_create_named - @size of the workspace in bytes; 0: the dialect's default. */
struct session *se_session_create_named(struct router *r, const struct route_args *args,
                                        uint64_t size, const char *request_id, struct error *err);
/** se_session_known - the session in the path; NULL: it does not exist or has ended. */
struct session *se_session_known(struct router *r, const struct route_args *args);
/** se_is_own - whether this dialect created the session. */
bool se_is_own(const struct session *session);
/** se_path - a clean path in the workspace. Return: 0, or -1: the request was answered. */
int se_path(struct http_request *req, const char *path, const char *field, char *ret_path);
/** se_view_files - a listing, without the files that hold logs. Return: owned. */
json_t *se_view_files(const struct file_item *items, size_t count);

/* execute.c */
route_fn se_execute;
route_fn se_execute_code;

/* execute_v2.c */
route_fn se_v2_execute_code;

/* file.c */
route_fn se_download;
route_fn se_create;
route_fn se_preview;
route_fn se_files;
route_fn se_readfile;

/* session.c */
route_fn se_healthy;
route_fn se_health;
route_fn se_session_create;
route_fn se_session_delete;
route_fn se_status;
route_fn se_workspaces;
route_fn se_cleanup_all;
route_fn se_download_from_efast;

/* upload.c */
route_fn se_upload;
