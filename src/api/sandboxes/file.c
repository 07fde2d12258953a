/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/encode.h"
#include "api/json/encode_file.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/op/download.h"
#include "api/op/file.h"
#include "api/reply.h"
#include "api/tools/tool_internal.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/request/workpath.h"
#include "core/session/session.h"
#include "core/session/session_files.h"
#include "http/media_type.h"
#include "http/status.h"
#include <string.h>

#define FILE_MODE 0644
#define READ_MAX  (10u << 20)
#define LIST_MAX  1000

enum encoding {
	UTF8,
	UTF8_DASHED,
	BASE64,
};
static const char *const encodings[] = {
	[UTF8] = "utf8", [UTF8_DASHED] = "utf-8", [BASE64] = "base64", NULL};

struct file_body {
	char *path; /* of POST */
	char *content;
	size_t len;
	enum encoding encoding;
	char *permissions;
	bool overwrite;
};

/* clang-format off */
#define INTO(member) AT(struct file_body, member)
#define CONTENT_ROWS \
	{"content", FIELD_STRING, AT_LEN(struct file_body, content, len), .required = true}, \
	{"encoding", FIELD_ENUM, INTO(encoding), .words = encodings, .schema = "{\"default\": \"utf8\"}"}, \
	{"permissions", FIELD_STRING, INTO(permissions), .schema = "{\"default\": \"0644\"}"}
const struct fields sandboxes_upload_fields = SANDBOXES_FIELDS("SandboxUpload",
	{"path", FIELD_STRING, INTO(path), .required = true, .description = "In /workspace: data/x.csv or /workspace/data/x.csv."},
	CONTENT_ROWS,
	{"overwrite", FIELD_BOOL, INTO(overwrite), .schema = "{\"default\": false}"});
const struct fields sandboxes_put_fields = SANDBOXES_FIELDS("SandboxContent", CONTENT_ROWS);
/* clang-format on */

struct file_query {
	const char *path;
	bool recursive;
	int base64; /* index in content_encodings */
};

static const char *const content_encodings[] = {"utf8", "base64", NULL};

/* clang-format off */
static const struct field list_rows[] = {
	{"path", FIELD_STRING, AT(struct file_query, path), .schema = "{\"default\": \"/\"}", .description = "A directory of /workspace; / is /workspace itself."},
	{"recursive", FIELD_BOOL, AT(struct file_query, recursive), .fallback = "false", .description = "List everything below the directory."},
	FIELDS_END,
};
const struct fields sandboxes_files_query = {.rows = list_rows};

static const struct field get_rows[] = {
	{"encoding", FIELD_ENUM, AT(struct file_query, base64), .words = content_encodings, .description = "Encoding of `content`."},
	FIELDS_END,
};
const struct fields sandboxes_file_get_query = {.rows = get_rows};

static const struct field delete_rows[] = {
	{"recursive", FIELD_BOOL, AT(struct file_query, recursive), .fallback = "false", .description = "Delete a directory with its content."},
	FIELDS_END,
};
const struct fields sandboxes_file_delete_query = {.rows = delete_rows};
/* clang-format on */

/* Until the response. */
struct file_work {
	struct router *router;
	const struct principal *principal; /* borrowed */
	char *session_id;
	char *given_path; /* as the caller wrote it */
	char path[WORKPATH_MAX + 1];
	char *data; /* to be written */
	size_t len;
	uint32_t mode;
	int status;
	bool base64;
};

static void work_free(void *ctx)
{
	struct file_work *w = ctx;

	free(w->session_id);
	free(w->given_path);
	free(w->data);
	free(w);
}

/* Return: NULL: answered. */
static struct file_work *work_new(struct router *r, struct http_request *req,
                                  const struct route_args *args, const char *path)
{
	struct file_work *w = NEW(struct file_work);
	struct error err = {0};

	w->router = r;
	w->principal = args->principal;
	w->session_id = xstrdup(args->id);
	w->given_path = xstrdup(path);
	w->mode = FILE_MODE;
	w->status = HTTP_OK;
	/* "/" and "/workspace" mean the workspace. */
	if (tool_clean_path(str_equal(path, "/") ? "" : path, "path", w->path, &err) == 0)
		return w;
	work_free(w);
	reply_error(req, &err);
	return NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static json_t *text(const char *s)
{
	return json_text(s, strlen(s));
}

static json_t *view_item(const struct file_work *w, const struct file_item *item)
{
	cleanup_free char *path = xasprintf("/workspace%s%s%s%s", w->path[0] ? "/" : "", w->path,
	                                    item->path[0] ? "/" : "", item->path);
	json_t *j = json_object();
	char mode[8];

	(void)snprintf(mode, sizeof(mode), "%04o", item->mode & 07777U);
	json_set(j, "name", text(base_name(path)));
	json_set(j, "path", text(path));
	json_set(j, "size", json_integer((json_int_t)item->size));
	json_set(j, "is_dir", json_boolean(item->type == BOX_FILE_DIRECTORY));
	json_set(j, "type", json_string(encode_file_type(item->type)));
	json_set(j, "mode", json_string(mode));
	json_set(j, "mod_time", encode_moment(item->mtime_ns / 1000000));
	return j;
}

static void answer_list(void *ctx, struct http_request *req, const struct file_result *result)
{
	const struct file_work *w = ctx;
	json_t *j, *list;

	if (result->failure) {
		reply_error(req, result->failure);
		return;
	}
	list = json_array();
	for (size_t i = 0; i < result->count; i++)
		(void)!json_array_append_new(list, view_item(w, &result->items[i]));
	j = json_object();
	json_set(j, "path", text(w->given_path));
	json_set(j, "total", json_integer((json_int_t)result->count));
	json_set(j, "files", list);
	json_set(j, "truncated", json_boolean(result->summary.truncated));
	json_set(j, "timestamp", sandboxes_now());
	reply_json(req, HTTP_OK, j);
}

void sandboxes_files(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct file_query query = {0};
	struct session *session;
	struct file_work *w;
	struct error err = {0};

	session = sandboxes_find(r, req, args, SANDBOXES_V1);
	if (!session)
		return;
	if (query_decode(req, args->query, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	w = work_new(r, req, args, query.path && *query.path ? query.path : "/");
	if (w)
		op_file_reply(req, session,
		              &(struct op_file_reply){
				      .request = {.op = BOX_FILE_LIST,
		                                  .path = w->path,
		                                  .limit = LIST_MAX,
		                                  .recursive = query.recursive},
				      .answer = answer_list,
				      .free = work_free,
				      .ctx = w,
			      });
}

static void set_content(const struct file_work *w, json_t *j, const struct file_result *result)
{
	bool base64 = w->base64 || !utf8_is_valid(result->data, result->len) ||
	              memchr(result->data, '\0', result->len);
	cleanup_free char *encoded = base64 ? base64_encode(result->data, result->len) : NULL;

	json_set(j, "encoding", json_string(base64 ? "base64" : "utf8"));
	json_set(j, "content",
	         base64 ? json_string(encoded) : json_text(result->data, result->len));
}

static void answer_read(void *ctx, struct http_request *req, const struct file_result *result)
{
	const struct file_work *w = ctx;
	const char *type = media_type_of(w->path);
	json_t *j;

	if (result->failure) {
		reply_error(req, result->failure);
		return;
	}
	j = result->count > 0 ? view_item(w, &result->items[0]) : json_object();
	json_set(j, "path", text(w->given_path));
	json_set(j, "name", text(base_name(w->path)));
	json_set(j, "size", json_integer((json_int_t)result->len));
	json_set(j, "is_dir", json_false());
	json_set(j, "content_type", json_string(type));
	set_content(w, j, result);
	reply_json(req, HTTP_OK, j);
}

void sandboxes_file_get(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct file_query query = {0};
	struct session *session;
	struct file_work *w;
	struct error err = {0};

	session = sandboxes_find(r, req, args, SANDBOXES_V1);
	if (!session)
		return;
	if (query_decode(req, args->query, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	w = work_new(r, req, args, args->rest);
	if (!w)
		return;
	w->base64 = query.base64;
	op_file_reply(
		req, session,
		&(struct op_file_reply){
			.request = {.op = BOX_FILE_READ, .path = w->path, .length = READ_MAX + 1},
			.data_max = READ_MAX,
			.answer = answer_read,
			.free = work_free,
			.ctx = w,
		});
}

static void answer_written(void *ctx, struct http_request *req, const struct file_result *result)
{
	const struct file_work *w = ctx;
	json_t *j;

	if (result->failure) {
		reply_error(req, result->failure);
		return;
	}
	j = json_object();
	json_set(j, "path", text(w->given_path));
	json_set(j, "name", text(base_name(w->path)));
	json_set(j, "size", json_integer((json_int_t)w->len));
	json_set(j, "is_dir", json_false());
	json_set(j, "content_type", json_string(media_type_of(w->path)));
	json_set(j, "timestamp", sandboxes_now());
	reply_json(req, w->status, j);
}

/* Takes @a. */
static void write_now(struct http_request *req, struct session *session, struct file_work *w)
{
	op_file_reply(req, session,
	              &(struct op_file_reply){
			      .request = {.op = BOX_FILE_WRITE,
	                                  .path = w->path,
	                                  .length = UINT64_MAX,
	                                  .mode = w->mode,
	                                  .parents = true},
			      .data = w->data,
			      .len = w->len,
			      .answer = answer_written,
			      .free = work_free,
			      .ctx = w,
		      });
}

static int take_content(struct file_work *w, struct file_body *body, struct error *err)
{
	if (body->permissions && query_mode(body->permissions, &w->mode) < 0)
		return error_field(err, "permissions", "must be octal, as 0644");
	if (body->encoding == BASE64) {
		w->data = base64_decode(body->content, body->len, &w->len);
		return w->data ? 0 : error_field(err, "content", "is not base64");
	}
	w->len = body->len;
	w->data = TAKE_PTR(body->content);
	return 0;
}

/* @path NULL: the body has it. Return: NULL: answered. */
static struct file_work *work_from_body(struct router *r, struct http_request *req,
                                        const struct route_args *args, const struct fields *fields,
                                        const char *path, struct file_body *body)
{
	struct file_work *w = NULL;
	struct error err = {0};

	if (sandboxes_decode(r, req, args, fields, body) == 0)
		w = work_new(r, req, args, path ? path : body->path);
	if (!w || take_content(w, body, &err) == 0)
		return w;
	work_free(w);
	reply_error(req, &err);
	return NULL;
}

void sandboxes_file_put(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct file_body body = {0};
	struct session *session;
	struct file_work *w;

	session = sandboxes_find(r, req, args, SANDBOXES_V1);
	w = session ? work_from_body(r, req, args, &sandboxes_put_fields, args->rest, &body) : NULL;
	fields_done(&sandboxes_put_fields, &body);
	if (w)
		write_now(req, session, w);
}

/* The session may have ended meanwhile. */
static void on_looked(void *ctx, struct http_request *req, const struct file_result *result)
{
	struct file_work *w = *(struct file_work **)ctx;
	struct session *session;
	struct error err = {0};

	if (result->failure && result->failure->code != ERR_FILE_NOT_FOUND) {
		reply_error(req, result->failure);
		return;
	}
	session = sandboxes_get(w->router, w->principal->tenant, w->session_id, &err);
	if (session && !result->failure)
		(void)error_set(&err, ERR_CONFLICT, 0, "the file exists, and overwrite is false");
	if (error_is_set(&err)) {
		reply_error(req, &err);
		return;
	}
	*(struct file_work **)ctx = NULL;
	write_now(req, session, w);
}

static void look_free(void *ctx)
{
	struct file_work **place = ctx;

	if (*place)
		work_free(*place);
	free(place);
}

void sandboxes_file_upload(struct router *r, struct http_request *req,
                           const struct route_args *args)
{
	struct file_body body = {0};
	struct session *session;
	struct file_work *w, **place;

	session = sandboxes_find(r, req, args, SANDBOXES_V1);
	w = session ? work_from_body(r, req, args, &sandboxes_upload_fields, NULL, &body) : NULL;
	fields_done(&sandboxes_upload_fields, &body);
	if (!w)
		return;
	w->status = HTTP_CREATED;
	if (body.overwrite) {
		write_now(req, session, w);
		return;
	}
	place = NEW(struct file_work *);
	*place = w;
	op_file_reply(req, session,
	              &(struct op_file_reply){
			      .request = {.op = BOX_FILE_STAT, .path = w->path},
			      .answer = on_looked,
			      .free = look_free,
			      .ctx = place,
		      });
}

static void answer_removed(void *ctx, struct http_request *req, const struct file_result *result)
{
	(void)ctx;
	if (result->failure)
		reply_error(req, result->failure);
	else
		reply_nothing(req, HTTP_NO_CONTENT);
}

void sandboxes_file_delete(struct router *r, struct http_request *req,
                           const struct route_args *args)
{
	struct file_query query = {0};
	struct session *session;
	struct file_work *w;
	struct error err = {0};

	session = sandboxes_find(r, req, args, SANDBOXES_V1);
	if (!session)
		return;
	if (query_decode(req, args->query, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	w = work_new(r, req, args, args->rest);
	if (w)
		op_file_reply(req, session,
		              &(struct op_file_reply){
				      .request = {.op = BOX_FILE_REMOVE,
		                                  .path = w->path,
		                                  .recursive = query.recursive},
				      .answer = answer_removed,
				      .free = work_free,
				      .ctx = w,
			      });
}
