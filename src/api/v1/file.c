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
#include "base/str.h"
#include "core/request/workpath.h"
#include "core/session/session.h"
#include "core/session/session_files.h"
#include "http/status.h"
#include <string.h>

#define LIST_DEFAULT 1000
#define FILE_MODE    0644

/* The session and path of a request. */
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

/* What a response needs of its request. */
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

/* Listing. */

static void answer_list(void *ctx, struct http_request *req, const struct file_result *result)
{
	const struct context *a = ctx;

	if (result->failure)
		reply_error(req, result->failure);
	else
		reply_json(req, HTTP_OK, encode_file_list(a->session_id, a->path, result));
}

/* Each entry has the path of its directory: a page of a long one has fewer entries. */
static uint64_t limit_for(const char *path, uint64_t limit)
{
	uint64_t most = FILES_LIST_BYTES / (strlen(path) + 1);

	return limit < most ? limit : most;
}

/* An unknown format is refused: the response would not be what the caller expects. */
static int query_format(const struct http_request *req, bool *ret_tar, struct error *err)
{
	const char *format = http_query(req, "format");

	*ret_tar = format && str_equal(format, "tar");
	if (!format || *ret_tar || str_equal(format, "raw"))
		return 0;
	return error_field(err, "format", "must be tar or absent");
}

void v1_file_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct target t;
	struct error err = {0};
	uint64_t limit = LIST_DEFAULT;
	bool recursive = false, tar = false;

	if (find_target(r, req, args, http_query(req, "path"), &t) < 0)
		return;
	if (query_u64(req, "limit", FILES_LIST_MAX, &limit, &err) < 0 ||
	    query_bool(req, "recursive", &recursive, &err) < 0 ||
	    query_format(req, &tar, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	if (tar) {
		download_tar(req, t.session, t.path);
		return;
	}
	op_file_reply(
		req, t.session,
		&(struct op_file_reply){.request = {.op = BOX_FILE_LIST,
	                                            .path = t.path,
	                                            .to = http_query(req, "after"),
	                                            .limit = (uint32_t)limit_for(t.path, limit),
	                                            .recursive = recursive},
	                                .answer = answer_list,
	                                .free = context_free,
	                                .ctx = context_new(&t, HTTP_OK)});
}

/* One file or directory. */

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
	struct target t;
	struct error err = {0};
	bool stat = false, tar = false;

	if (find_target(r, req, args, args->rest, &t) < 0)
		return;
	if (query_bool(req, "stat", &stat, &err) < 0 || query_format(req, &tar, &err) < 0)
		reply_error(req, &err);
	else if (tar)
		download_tar(req, t.session, t.path);
	else if (stat)
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

static int put_options(const struct http_request *req, struct box_file_request *request,
                       struct error *err)
{
	const char *mode = http_query(req, "mode");
	bool tar;

	request->mode = FILE_MODE;
	if (mode && query_mode(mode, &request->mode) < 0)
		return error_field(err, "mode", "must be octal permissions, such as 0644");
	if (query_format(req, &tar, err) < 0)
		return -1;
	if (tar)
		request->op = BOX_FILE_UNTAR;
	return 0;
}

void v1_file_put(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct box_file_request request = {.op = BOX_FILE_WRITE,
	                                   .length = UINT64_MAX,
	                                   .limit = FILES_TREE_MAX,
	                                   .parents = true};
	struct target t;
	struct error err = {0};

	if (find_target(r, req, args, args->rest, &t) < 0)
		return;
	request.path = t.path;
	if (put_options(req, &request, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	upload_body(req, t.session,
	            &(struct upload_body){.request = request,
	                                  .on_done = answer_put,
	                                  .free = context_free,
	                                  .ctx = context_new(&t, HTTP_CREATED)});
}

void v1_file_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct target t;
	struct error err = {0};
	bool recursive = false;

	if (find_target(r, req, args, args->rest, &t) < 0)
		return;
	if (query_bool(req, "recursive", &recursive, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	op_file_reply(
		req, t.session,
		&(struct op_file_reply){
			.request = {.op = BOX_FILE_REMOVE, .path = t.path, .recursive = recursive},
			.answer = answer_one,
			.free = context_free,
			.ctx = context_new(&t, HTTP_NO_CONTENT)});
}

/* mkdir and move. */

struct order {
	char *path, *to; /* owned */
	bool parents, replace;
};

/* clang-format off */
const struct fields v1_mkdir_fields = {
	.name = "MkdirRequest",
	.rows = (const struct field[]){
		{"path", FIELD_STRING, AT(struct order, path), .required = true, .schema = "{\"minLength\": 1}", .description = "In the workspace; without a leading slash."},
		{"parents", FIELD_BOOL, AT(struct order, parents), .schema = "{\"default\": true}", .description = "Create missing parent directories; a directory that exists is no error."},
		FIELDS_END,
	},
};

const struct fields v1_move_fields = {
	.name = "MoveRequest",
	.rows = (const struct field[]){
		{"path", FIELD_STRING, AT(struct order, path), .required = true, .schema = "{\"minLength\": 1}", .description = "In the workspace; without a leading slash."},
		{"to", FIELD_STRING, AT(struct order, to), .required = true, .schema = "{\"minLength\": 1}"},
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

/* Change the tree and respond with the new entry. */
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
