/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/encode_file.h"
#include "api/json/fields.h"
#include "api/json/query.h"
#include "api/lookup.h"
#include "api/op/download.h"
#include "api/op/file.h"
#include "api/op/upload.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "core/request/workpath.h"
#include "core/session/session.h"
#include "core/session/session_files.h"
#include "http/status.h"
#include <string.h>

#define FILE_MODE 0644

enum format {
	FORMAT_RAW,
	FORMAT_TAR
};

struct file_query {
	const char *path, *after;
	uint64_t limit;
	bool recursive, stat;
	enum format format;
	uint32_t mode;
};

static const char *const formats[] = {"raw", "tar", NULL};

static int take_mode(const struct field_value *v)
{
	return query_mode(v->text, fields_target(v)) < 0
	               ? fields_wrong(v, "octal permissions, such as 0644")
	               : 0;
}

/* clang-format off */
#define FORMAT_ROW \
	{"format", FIELD_ENUM, AT(struct file_query, format), .words = formats, .description = "Get or send a directory as an archive: tar."}

static const struct field list_rows[] = {
	{"path", FIELD_STRING, AT(struct file_query, path), .schema = "{\"default\": \"\"}", .description = "A directory in the workspace."},
	{"limit", FIELD_INTEGER, AT(struct file_query, limit), .max = FILES_LIST_MAX, .fallback = "1000", .description = "Fewer if names are long; see `truncated`."},
	{"after", FIELD_STRING, AT(struct file_query, after), .description = "The last name of the previous page."},
	{"recursive", FIELD_BOOL, AT(struct file_query, recursive), .fallback = "false", .description = "List everything below the directory."},
	FORMAT_ROW,
	FIELDS_END,
};
const struct fields v1_file_list_query = {.rows = list_rows};

static const struct field get_rows[] = {
	{"stat", FIELD_BOOL, AT(struct file_query, stat), .fallback = "false", .description = "Get the entry instead of the content."},
	FORMAT_ROW,
	FIELDS_END,
};
const struct fields v1_file_get_query = {.rows = get_rows};

static const struct field put_rows[] = {
	{"mode", FIELD_CUSTOM, AT(struct file_query, mode), .check = take_mode, .schema = "{\"type\": \"string\", \"pattern\": \"^0?[0-7]{3}$\", \"default\": \"0644\"}", .description = "Octal permissions."},
	FORMAT_ROW,
	FIELDS_END,
};
const struct fields v1_file_put_query = {.rows = put_rows};

static const struct field delete_rows[] = {
	{"recursive", FIELD_BOOL, AT(struct file_query, recursive), .fallback = "false", .description = "Delete a directory with its content."},
	FIELDS_END,
};
const struct fields v1_file_delete_query = {.rows = delete_rows};
/* clang-format on */

struct target {
	struct session *session;
	char path[WORKPATH_MAX + 1];
};

/* Return: 0, or -1: the request was answered. */
static int find_target(struct router *r, struct http_request *req, const struct route_args *args,
                       const char *path, struct target *ret_target)
{
	struct error err = {0};

	ret_target->session = lookup_session(r, args, &err);
	if (ret_target->session && workpath_clean(path ? path : "", WORKPATH_RELATIVE, "path",
	                                          ret_target->path, &err) == 0)
		return 0;
	reply_error(req, &err);
	return -1;
}

struct context {
	char *session_id, *path; /* owned */
	int status;
};

static struct context *context_new(const struct target *t, int status)
{
	struct context *a = NEW(struct context);
	struct session_info info = {0};

	session_info(t->session, &info);
	a->session_id = xstrdup(info.id);
	a->path = xstrdup(t->path);
	a->status = status;
	return a;
}

static void context_free(void *ctx)
{
	struct context *a = ctx;

	free(a->session_id);
	free(a->path);
	free(a);
}

static void answer_list(void *ctx, struct http_request *req, const struct file_result *result)
{
	const struct context *a = ctx;

	if (result->failure)
		reply_error(req, result->failure);
	else
		reply_json(req, HTTP_OK, encode_file_list(a->session_id, a->path, result));
}

/* Each entry has its directory's path: fewer entries for a long one. */
static uint64_t limit_for(const char *path, uint64_t limit)
{
	uint64_t most = FILES_LIST_BYTES / (strlen(path) + 1);

	return limit < most ? limit : most;
}

void v1_file_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct file_query query = {0};
	struct target t;
	struct error err = {0};

	if (query_decode(req, args->query, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	if (find_target(r, req, args, query.path, &t) < 0)
		return;
	if (query.format == FORMAT_TAR) {
		download_tar(req, t.session, t.path);
		return;
	}
	op_file_reply(req, t.session,
	              &(struct op_file_reply){
			      .request = {.op = BOX_FILE_LIST,
	                                  .path = t.path,
	                                  .to = query.after,
	                                  .limit = (uint32_t)limit_for(t.path, query.limit),
	                                  .recursive = query.recursive},
			      .answer = answer_list,
			      .free = context_free,
			      .ctx = context_new(&t, HTTP_OK)});
}

static void answer_one(void *ctx, struct http_request *req, const struct file_result *result)
{
	const struct context *a = ctx;

	if (result->failure)
		reply_error(req, result->failure);
	else if (result->count > 0)
		reply_json(req, a->status, encode_file(a->session_id, a->path, &result->items[0]));
	else
		reply_nothing(req, HTTP_NO_CONTENT);
}

void v1_file_get(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct file_query query = {0};
	struct target t;
	struct error err = {0};

	if (find_target(r, req, args, args->rest, &t) < 0)
		return;
	if (query_decode(req, args->query, &query, &err) < 0)
		reply_error(req, &err);
	else if (query.format == FORMAT_TAR)
		download_tar(req, t.session, t.path);
	else if (query.stat)
		op_file_reply(
			req, t.session,
			&(struct op_file_reply){.request = {.op = BOX_FILE_STAT, .path = t.path},
		                                .answer = answer_one,
		                                .free = context_free,
		                                .ctx = context_new(&t, HTTP_OK)});
	else
		download_file(req, t.session, t.path, NULL);
}

static void answer_put(void *ctx, struct http_request *req, const struct box_file_entry *entry,
                       const struct box_file_summary *summary)
{
	const struct context *a = ctx;
	struct file_item item = {.path = (char *)"", .target = (char *)""};

	if (!entry) {
		reply_json(req, HTTP_OK, encode_file_unpacked(a->session_id, a->path, summary));
		return;
	}
	item.type = entry->type;
	item.size = entry->size;
	item.mtime_ns = entry->mtime_ns;
	item.inode = entry->inode;
	item.mode = entry->mode;
	reply_json(req, a->status, encode_file(a->session_id, a->path, &item));
}

void v1_file_put(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct box_file_request request = {.op = BOX_FILE_WRITE,
	                                   .length = UINT64_MAX,
	                                   .limit = FILES_TREE_MAX,
	                                   .parents = true};
	struct file_query query = {.mode = FILE_MODE};
	struct target t;
	struct error err = {0};

	if (find_target(r, req, args, args->rest, &t) < 0)
		return;
	if (query_decode(req, args->query, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	request.path = t.path;
	request.mode = query.mode;
	if (query.format == FORMAT_TAR)
		request.op = BOX_FILE_UNTAR;
	upload_body(req, t.session,
	            &(struct upload_body){.request = request,
	                                  .on_done = answer_put,
	                                  .free = context_free,
	                                  .ctx = context_new(&t, HTTP_CREATED)});
}

void v1_file_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct file_query query = {0};
	struct target t;
	struct error err = {0};

	if (find_target(r, req, args, args->rest, &t) < 0)
		return;
	if (query_decode(req, args->query, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	op_file_reply(req, t.session,
	              &(struct op_file_reply){.request = {.op = BOX_FILE_REMOVE,
	                                                  .path = t.path,
	                                                  .recursive = query.recursive},
	                                      .answer = answer_one,
	                                      .free = context_free,
	                                      .ctx = context_new(&t, HTTP_NO_CONTENT)});
}

struct order {
	char *path, *to; /* owned */
	bool parents, replace;
};

/* clang-format off */
#define PATH_SCHEMA "{\"minLength\": 1, \"pattern\": \"^[^\\\\u0000]+$\"}"
const struct fields v1_mkdir_fields = {
	.name = "MkdirRequest",
	.rows = (const struct field[]){
		{"path", FIELD_STRING, AT(struct order, path), .required = true, .schema = PATH_SCHEMA, .description = "In the workspace; without a leading slash."},
		{"parents", FIELD_BOOL, AT(struct order, parents), .schema = "{\"default\": true}", .description = "Create missing parent directories; a directory that exists is no error."},
		FIELDS_END,
	},
};

const struct fields v1_move_fields = {
	.name = "MoveRequest",
	.rows = (const struct field[]){
		{"path", FIELD_STRING, AT(struct order, path), .required = true, .schema = PATH_SCHEMA, .description = "In the workspace; without a leading slash."},
		{"to", FIELD_STRING, AT(struct order, to), .required = true, .schema = PATH_SCHEMA},
		{"parents", FIELD_BOOL, AT(struct order, parents), .schema = "{\"default\": true}", .description = "Create missing parent directories of `to`."},
		{"replace", FIELD_BOOL, AT(struct order, replace), .schema = "{\"default\": false}", .description = "Replace what is at `to`; else it is a conflict."},
		FIELDS_END,
	},
};
/* clang-format on */

static void order_done(struct order *o)
{
	fields_done(&v1_move_fields, o);
}

static void change_tree(struct router *r, struct http_request *req, const struct route_args *args,
                        const struct fields *fields)
{
	attr_cleanup(order_done) struct order o = {.parents = true};
	struct box_file_request request = {.op = BOX_FILE_MKDIR};
	char to[WORKPATH_MAX + 1] = "";
	struct context *about;
	struct target t;
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);

	if (fields_decode_text(fields, body, len, NULL, &o, &err) < 0 ||
	    (o.to && workpath_clean(o.to, WORKPATH_RELATIVE, "to", to, &err) < 0)) {
		reply_error(req, &err);
		return;
	}
	if (find_target(r, req, args, o.path, &t) < 0)
		return;
	request.path = t.path;
	request.to = to;
	request.parents = o.parents;
	request.replace = o.replace;
	about = context_new(&t, HTTP_CREATED);
	if (o.to) {
		request.op = BOX_FILE_MOVE;
		about->status = HTTP_OK;
		free(about->path);
		about->path = xstrdup(to);
	}
	op_file_reply(req, t.session,
	              &(struct op_file_reply){.request = request,
	                                      .answer = answer_one,
	                                      .free = context_free,
	                                      .ctx = about});
}

void v1_file_mkdir(struct router *r, struct http_request *req, const struct route_args *args)
{
	change_tree(r, req, args, &v1_mkdir_fields);
}

void v1_file_move(struct router *r, struct http_request *req, const struct route_args *args)
{
	change_tree(r, req, args, &v1_move_fields);
}
