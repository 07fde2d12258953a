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

/* Body of POST and PUT. */
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

/* What the response needs to know of its request. */
struct about {
	struct router *router;
	char *tenant, *session_id;
	char *told; /* the path as the caller wrote it */
	char path[WORKPATH_MAX + 1];
	char *data; /* to be written */
	size_t len;
	uint32_t mode;
	int status;
	bool base64; /* the client wants base64 */
};

static void about_free(void *ctx)
{
	struct about *a = ctx;

	free(a->tenant);
	free(a->session_id);
	free(a->told);
	free(a->data);
	free(a);
}

/* Paths are below the workspace: "/" and "/workspace" mean it. */
static int clean(const char *path, char ret_path[WORKPATH_MAX + 1], struct error *err)
{
	if (str_equal(path, "/"))
		path = "";
	return tool_clean_path(path, "path", ret_path, err);
}

/* Return: NULL: answered. */
static struct about *about_new(struct router *r, struct http_request *req,
                               const struct route_args *args, const char *path)
{
	struct about *a = NEW(struct about);
	struct error err = {0};

	a->router = r;
	a->tenant = xstrdup(args->principal->tenant);
	a->session_id = xstrdup(args->id);
	a->told = xstrdup(path);
	a->mode = FILE_MODE;
	a->status = HTTP_OK;
	if (clean(path, a->path, &err) == 0)
		return a;
	about_free(a);
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

/* List. */

static json_t *view_item(const struct about *a, const struct file_item *item)
{
	cleanup_free char *path = xasprintf("/workspace%s%s%s%s", a->path[0] ? "/" : "", a->path,
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
	const struct about *a = ctx;
	json_t *j, *list;

	if (result->failure) {
		reply_error(req, result->failure);
		return;
	}
	list = json_array();
	for (size_t i = 0; i < result->count; i++)
		(void)!json_array_append_new(list, view_item(a, &result->items[i]));
	j = json_object();
	json_set(j, "path", text(a->told));
	json_set(j, "total", json_integer((json_int_t)result->count));
	json_set(j, "files", list);
	json_set(j, "truncated", json_boolean(result->summary.truncated));
	json_set(j, "timestamp", sandboxes_now());
	reply_json(req, HTTP_OK, j);
}

void sandboxes_files(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *path = http_query(req, "path");
	struct session *session;
	struct about *a;
	struct error err = {0};
	bool recursive = false;

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	session = sandboxes_find(r, req, args);
	if (!session)
		return;
	if (query_bool(req, "recursive", &recursive, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	a = about_new(r, req, args, path && *path ? path : "/");
	if (a)
		op_file_reply(req, session,
		              &(struct op_file_reply){
				      .request = {.op = BOX_FILE_LIST,
		                                  .path = a->path,
		                                  .limit = LIST_MAX,
		                                  .recursive = recursive},
				      .answer = answer_list,
				      .free = about_free,
				      .ctx = a,
			      });
}

/* Read. */

static void set_content(const struct about *a, json_t *j, const struct file_result *result)
{
	bool base64 = a->base64 || !utf8_is_valid(result->data, result->len) ||
	              memchr(result->data, '\0', result->len);
	cleanup_free char *encoded = base64 ? base64_encode(result->data, result->len) : NULL;

	json_set(j, "encoding", json_string(base64 ? "base64" : "utf8"));
	json_set(j, "content",
	         base64 ? json_string(encoded) : json_text(result->data, result->len));
}

static void answer_read(void *ctx, struct http_request *req, const struct file_result *result)
{
	const struct about *a = ctx;
	const char *type = media_type_of(a->path);
	json_t *j;

	if (result->failure) {
		reply_error(req, result->failure);
		return;
	}
	j = result->count > 0 ? view_item(a, &result->items[0]) : json_object();
	json_set(j, "path", text(a->told));
	json_set(j, "name", text(base_name(a->path)));
	json_set(j, "size", json_integer((json_int_t)result->len));
	json_set(j, "is_dir", json_false());
	json_set(j, "content_type", json_string(type));
	set_content(a, j, result);
	reply_json(req, HTTP_OK, j);
}

static int read_encoding(const struct http_request *req, bool *ret_base64, struct error *err)
{
	const char *encoding = http_query(req, "encoding");

	*ret_base64 = encoding && str_equal(encoding, "base64");
	if (!encoding || *ret_base64 || str_equal(encoding, "utf8"))
		return 0;
	return error_field(err, "encoding", "must be utf8 or base64");
}

void sandboxes_file_get(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session;
	struct about *a;
	struct error err = {0};
	bool base64;

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	session = sandboxes_find(r, req, args);
	if (!session)
		return;
	if (read_encoding(req, &base64, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	a = about_new(r, req, args, args->rest);
	if (!a)
		return;
	a->base64 = base64;
	op_file_reply(
		req, session,
		&(struct op_file_reply){
			.request = {.op = BOX_FILE_READ, .path = a->path, .length = READ_MAX + 1},
			.data_max = READ_MAX,
			.answer = answer_read,
			.free = about_free,
			.ctx = a,
		});
}

/* Write. */

static void answer_written(void *ctx, struct http_request *req, const struct file_result *result)
{
	const struct about *a = ctx;
	json_t *j;

	if (result->failure) {
		reply_error(req, result->failure);
		return;
	}
	j = json_object();
	json_set(j, "path", text(a->told));
	json_set(j, "name", text(base_name(a->path)));
	json_set(j, "size", json_integer((json_int_t)a->len));
	json_set(j, "is_dir", json_false());
	json_set(j, "content_type", json_string(media_type_of(a->path)));
	json_set(j, "timestamp", sandboxes_now());
	reply_json(req, a->status, j);
}

/* Takes @a. */
static void write_now(struct http_request *req, struct session *session, struct about *a)
{
	op_file_reply(req, session,
	              &(struct op_file_reply){
			      .request = {.op = BOX_FILE_WRITE,
	                                  .path = a->path,
	                                  .length = UINT64_MAX,
	                                  .mode = a->mode,
	                                  .parents = true},
			      .data = a->data,
			      .len = a->len,
			      .answer = answer_written,
			      .free = about_free,
			      .ctx = a,
		      });
}

static int take_content(struct about *a, struct file_body *body, struct error *err)
{
	if (body->permissions && query_mode(body->permissions, &a->mode) < 0)
		return error_field(err, "permissions", "must be octal, as 0644");
	if (body->encoding == BASE64) {
		a->data = base64_decode(body->content, body->len, &a->len);
		return a->data ? 0 : error_field(err, "content", "is not base64");
	}
	a->len = body->len;
	a->data = TAKE_PTR(body->content);
	return 0;
}

/* The file that the body describes. @path NULL: the body has it. Return: NULL: answered. */
static struct about *about_body(struct router *r, struct http_request *req,
                                const struct route_args *args, const struct fields *fields,
                                const char *path, struct file_body *body)
{
	struct about *a = NULL;
	struct error err = {0};

	if (sandboxes_decode(r, req, fields, body) == 0)
		a = about_new(r, req, args, path ? path : body->path);
	if (!a || take_content(a, body, &err) == 0)
		return a;
	about_free(a);
	reply_error(req, &err);
	return NULL;
}

void sandboxes_file_put(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct file_body body = {0};
	struct session *session;
	struct about *a;

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	session = sandboxes_find(r, req, args);
	a = session ? about_body(r, req, args, &sandboxes_put_fields, args->rest, &body) : NULL;
	fields_done(&sandboxes_put_fields, &body);
	if (a)
		write_now(req, session, a);
}

/* The file was looked up. The session may have ended meanwhile. */
static void on_looked(void *ctx, struct http_request *req, const struct file_result *result)
{
	struct about *a = *(struct about **)ctx;
	struct session *session;
	struct error err = {0};

	if (result->failure && result->failure->code != ERR_FILE_NOT_FOUND) {
		reply_error(req, result->failure);
		return;
	}
	session = sandboxes_get(a->router, a->tenant, a->session_id, &err);
	if (session && !result->failure)
		(void)error_set(&err, ERR_CONFLICT, 0, "the file exists, and overwrite is false");
	if (error_is_set(&err)) {
		reply_error(req, &err);
		return;
	}
	*(struct about **)ctx = NULL;
	write_now(req, session, a);
}

static void look_free(void *ctx)
{
	struct about **place = ctx;

	if (*place)
		about_free(*place);
	free(place);
}

void sandboxes_file_upload(struct router *r, struct http_request *req,
                           const struct route_args *args)
{
	struct file_body body = {0};
	struct session *session;
	struct about *a, **place;

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	session = sandboxes_find(r, req, args);
	a = session ? about_body(r, req, args, &sandboxes_upload_fields, NULL, &body) : NULL;
	fields_done(&sandboxes_upload_fields, &body);
	if (!a)
		return;
	a->status = HTTP_CREATED;
	if (body.overwrite) {
		write_now(req, session, a);
		return;
	}
	place = NEW(struct about *);
	*place = a;
	op_file_reply(req, session,
	              &(struct op_file_reply){
			      .request = {.op = BOX_FILE_STAT, .path = a->path},
			      .answer = on_looked,
			      .free = look_free,
			      .ctx = place,
		      });
}

/* Remove. */

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
	struct session *session;
	struct about *a;
	struct error err = {0};
	bool recursive = false;

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	session = sandboxes_find(r, req, args);
	if (!session)
		return;
	if (query_bool(req, "recursive", &recursive, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	a = about_new(r, req, args, args->rest);
	if (a)
		op_file_reply(req, session,
		              &(struct op_file_reply){
				      .request = {.op = BOX_FILE_REMOVE,
		                                  .path = a->path,
		                                  .recursive = recursive},
				      .answer = answer_removed,
				      .free = about_free,
				      .ctx = a,
			      });
}
