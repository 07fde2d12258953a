/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the shared environment server's dialect, /workspace/se: sessions by names that callers
 * choose and that are made when first named, files, programs that each run in a process of their
 * own. All of it is the core's persistent sessions; here are only its words and envelopes. Fields
 * that nobody knows are ignored, as its clients expect.
 *
 * Answers are the object itself and the same under `result`, because its clients disagree.
 */

#include "api/internal.h"
#include "base/error.h"
#include <jansson.h>

struct file_item;

extern const struct dialect se_dialect, se_v2_dialect;
/* Request bodies. */
extern const struct fields se_handler_fields, se_execute_fields, se_execute_code_fields;

/** se_error_body - {"detail": {...}}; see struct dialect. Pure. */
json_t *se_error_body(const struct error *err, const char *request_id, int *status);
/** se_v2_error_body - the same with the second version's error codes. Pure. */
json_t *se_v2_error_body(const struct error *err, const char *request_id, int *status);
#define SE_OK 200 /* whatever was done */
/** se_envelope - @body with @result (NULL: itself) under `result`; takes both. Return: owned. */
json_t *se_envelope(json_t *body, json_t *result);
/** se_reply - @body, and @result (NULL: the body itself) under `result`; both are released. */
void se_reply(struct http_request *req, json_t *body, json_t *result);
/** se_body - the body as an object. Return: owned, or NULL: answered. */
json_t *se_body(struct http_request *req);
/** se_session - that of the path, made if there is none. Return: NULL: answered. */
struct session *se_session(struct router *r, struct http_request *req,
                           const struct route_args *args);
/** se_session_make - @size of its workspace in bytes, 0: what the dialect has by default. */
struct session *se_session_make(struct router *r, const struct route_args *args, uint64_t size,
                                const char *request_id, struct error *err);
/** se_session_known - that of the path if it lives; NULL: there is none. */
struct session *se_session_known(struct router *r, const struct route_args *args);
/** se_is_own - whether a session was made by this dialect. */
bool se_is_own(const struct session *session);
/** se_path - of a file in the workspace, by the dialect's rules. Return: 0, or -1: answered. */
int se_path(struct http_request *req, const char *path, const char *field, char *ret_path);
/** se_view_files - of a listing, without the server's own logs. Return: owned. */
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
