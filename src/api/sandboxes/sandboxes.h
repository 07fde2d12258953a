/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: SandboxRunner's REST dialect: /api/sandboxes, /api/v1/sandboxes, /api/v2/sandboxes, and
 * tools, resources and prompts beside them. A sandbox is a persistent session that is not
 * terminated; programs run through tools/. Unknown fields are ignored.
 *
 * The version is in the path, else in API-Version or in Accept as application/vnd.sandboxrunner.vN;
 * default 1.
 */

#include "api/internal.h"
#include "api/json/fields.h"
#include "api/json/query.h"
#include "api/tools/tool.h"
#include "base/error.h"
#include <jansson.h>

struct session_info;

#define SANDBOXES_V1 1
#define SANDBOXES_V2 2

extern const struct dialect sandboxes_dialect, sandboxes_tool_dialect, sandboxes_about_dialect;

/** sandboxes_error_body - the common error with the dialect's under `error`. Pure. */
json_t *sandboxes_error_body(const struct error *err, const char *request_id, int *status);
/** sandboxes_error - {code, message, details, timestamp, request_id}. Return: owned. */
json_t *sandboxes_error(const struct error *err, const char *request_id,
                        int status) attr_must_check;
/** sandboxes_version - Return: 1, 2, or -1 with *err. Pure. */
int sandboxes_version(const char *path, const char *accept, const char *header,
                      struct error *err) attr_must_check;
/**
 * sandboxes_begin - add the version to the response. Return: 0, or -1: answered: unknown, or older
 * than @least.
 */
int sandboxes_begin(struct http_request *req, int least) attr_must_check;

/** sandboxes_now - for `timestamp`. Return: owned. */
json_t *sandboxes_now(void) attr_must_check;
/** sandboxes_get - by id, if not terminated; NULL with a 404 in *err. */
struct session *sandboxes_get(struct router *r, const char *tenant, const char *id,
                              struct error *err);
/** sandboxes_find - sandboxes_begin, then the path's sandbox. Return: NULL: answered. */
struct session *sandboxes_find(struct router *r, struct http_request *req,
                               const struct route_args *args, int least);
/** sandboxes_view - Return: owned. */
json_t *sandboxes_view(const struct session *session) attr_must_check;
/** sandboxes_decode - Return: 0, or -1: answered. The caller releases *out in any case. */
int sandboxes_decode(const struct router *r, struct http_request *req,
                     const struct route_args *args, const struct fields *fields,
                     void *out) attr_must_check;
/** sandboxes_decode_part - a member of the body; errors name @part. */
int sandboxes_decode_part(const struct router *r, const char *part, const json_t *value,
                          const struct fields *fields, void *out,
                          struct error *err) attr_must_check;
/* Named in OpenAPI; unknown fields are ignored, null counts as absent. */
#define SANDBOXES_FIELDS(title, ...)                                                               \
	{                                                                                          \
		.name = (title), .rows = (const struct field[]){__VA_ARGS__, FIELDS_END},          \
		.flags = FIELDS_OPEN | FIELDS_LOOSE                                                \
	}
/** sandboxes_seconds - seconds, nanoseconds (Go clients; from 1e9) or text ("90s"). */
int sandboxes_seconds(const json_t *value, const char *field, double *ret_seconds,
                      struct error *err) attr_must_check;

/* First where a list has further parameters. */
struct sandboxes_page {
	uint64_t size, offset;
};

/* A larger size is clamped, as clients expect. */
/* clang-format off */
#define SANDBOXES_PAGE_ROWS \
	{"page_size", FIELD_INTEGER, AT(struct sandboxes_page, size), .min = 1, .max = 100, .clamp = true, .fallback = "20", .description = "Values over 100 count as 100."}, \
	{"page_offset", FIELD_INTEGER, AT(struct sandboxes_page, offset), .max = QUERY_OFFSET_MAX, .fallback = "0"}
/* clang-format on */
/** sandboxes_page_object - {data, pagination, total ...}; takes @data. Return: owned. */
json_t *sandboxes_page_object(const struct http_request *req, const struct sandboxes_page *page,
                              json_t *data, size_t total) attr_must_check;
/** sandboxes_reply_list - @page of @items, which it takes. */
void sandboxes_reply_list(struct http_request *req, const struct sandboxes_page *page,
                          json_t *items);

/* call.c: a request that waits for a tool. */

/* Borrowed. */
struct sandboxes_done {
	const json_t *result, *structured; /* see tool.h */
	const struct error *failure;       /* NULL: carried out */
	bool is_error;
	uint64_t duration_us;
	const char *request_id;
};

struct sandboxes_done sandboxes_done_of(const struct call *call, const json_t *result,
                                        const struct error *failure);

/* Return: the body, owned. Not for refusals. */
typedef json_t *sandboxes_render_fn(const struct sandboxes_done *done);

struct sandboxes_call {
	const char *tool;
	json_t *arguments;      /* taken; or: */
	struct tool_args *args; /* decoded; its content is taken */
	sandboxes_render_fn *render;
	bool stream; /* events, whatever Accept says */
	bool strict; /* every failure is an HTTP error */
};

/** sandboxes_call - respond when the tool ends. A disconnect cancels it. */
void sandboxes_call(struct router *r, struct http_request *req, const struct route_args *args,
                    const struct sandboxes_call *call);
/** sandboxes_is_refusal - an HTTP error, not a result. Pure. */
bool sandboxes_is_refusal(const struct error *failure);
/** sandboxes_metadata - structured result and error code. Return: owned. */
json_t *sandboxes_metadata(const struct sandboxes_done *done) attr_must_check;
const char *sandboxes_code(enum error_code code);

/* /exec or /code. */
struct sandboxes_program {
	struct tool_args args; /* first: see tool_args.h */
	bool stream;
};

struct sandboxes_program_kind {
	const char *tool;
	const struct fields *fields; /* of struct sandboxes_program */
	/* Combine fields after decoding; NULL: nothing to do. */
	int (*complete)(struct sandboxes_program *p, struct error *err);
	sandboxes_render_fn *render;
};

/* Request bodies. */
extern const struct fields sandboxes_create_fields, sandboxes_change_fields,
	sandboxes_upload_fields, sandboxes_put_fields, sandboxes_exec_fields, sandboxes_code_fields,
	sandboxes_execute_fields, sandboxes_batch_fields;
/* Query parameters. */
extern const struct fields sandboxes_file_delete_query, sandboxes_file_get_query,
	sandboxes_files_query, sandboxes_list_query, sandboxes_log_query, sandboxes_page_query,
	sandboxes_tool_query;
extern const struct sandboxes_program_kind sandboxes_exec_kind, sandboxes_code_kind;
void sandboxes_program_done(struct sandboxes_program *p);
#define cleanup_sandboxes_program attr_cleanup(sandboxes_program_done)

/* about.c */
route_fn sandboxes_health;
route_fn sandboxes_info;
route_fn sandboxes_docs;

/* resource.c */
route_fn sandboxes_resources;
route_fn sandboxes_resource;
route_fn sandboxes_prompts;
route_fn sandboxes_prompt;

/* batch.c */
route_fn sandboxes_batch;

/* file.c */
route_fn sandboxes_files;
route_fn sandboxes_file_upload;
route_fn sandboxes_file_get;
route_fn sandboxes_file_put;
route_fn sandboxes_file_delete;

/* life.c */
route_fn sandboxes_create;
route_fn sandboxes_show;
route_fn sandboxes_update;
route_fn sandboxes_delete;
route_fn sandboxes_start;
route_fn sandboxes_stop;
route_fn sandboxes_restart;

/* list.c */
route_fn sandboxes_list;

/* run.c */
route_fn sandboxes_exec;
route_fn sandboxes_run_code;

/* tool.c */
route_fn sandboxes_tool_list;
route_fn sandboxes_tool_show;
route_fn sandboxes_tool_execute;
route_fn sandboxes_tool_names;
route_fn sandboxes_tool_call;

/* watch.c */
route_fn sandboxes_logs;
route_fn sandboxes_metrics;
