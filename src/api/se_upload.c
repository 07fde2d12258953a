/* SPDX-License-Identifier: Apache-2.0 */
#include "api/se.h"

#include "api/json.h"
#include "api/multipart.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/config.h"
#include "core/files.h"
#include "core/session.h"
#include "core/workpath.h"
#include <string.h>

/*
 * Theory of operation. The file of a form goes into the box as it comes. Its name is known before
 * its first byte: that of the query, or else that of the form. Other fields are passed over.
 */

#define FILE_MODE 0644

struct upload {
	struct router *router;
	struct http_request *req; /* the server's */
	char tenant[TENANT_NAME_MAX + 1];
	char id[ROUTER_ID_LEN];
	struct multipart *form;
	struct file_op *op; /* NULL: none is under way */
	bool in_file, has_file;
	char path[WORKPATH_MAX + 1];
	uint64_t bytes;
};

static void upload_free(struct upload *u)
{
	multipart_free(u->form);
	free(u);
}

static void fail(struct upload *u, const struct error *err)
{
	if (u->op)
		file_cancel(TAKE_PTR(u->op));
	http_set_gone(u->req, NULL, NULL);
	reply_error(u->req, err);
	upload_free(u);
}

static void on_gone(void *ctx)
{
	struct upload *u = ctx;

	if (u->op)
		file_cancel(TAKE_PTR(u->op));
	upload_free(u);
}

static void on_entry(void *ctx, const struct box_file_entry *entry)
{
	(void)ctx;
	(void)entry;
}

static void on_read(void *ctx, const char *data, size_t len)
{
	(void)ctx;
	(void)data;
	(void)len;
}

static void on_room(void *ctx)
{
	struct upload *u = ctx;

	http_body_resume(u->req);
}

static void on_done(void *ctx, const struct box_file_summary *summary)
{
	struct upload *u = ctx;
	json_t *j = json_object();

	(void)summary;
	json_set(j, "filename", json_text(u->path, strlen(u->path)));
	json_set(j, "name", json_text(u->path, strlen(u->path)));
	json_set(j, "size", json_integer((json_int_t)u->bytes));
	http_set_gone(u->req, NULL, NULL);
	se_reply(u->req, j, NULL);
	upload_free(u);
}

static void on_failed(void *ctx, const struct error *err)
{
	struct upload *u = ctx;

	u->op = NULL;
	fail(u, err);
}

static int open_file(struct upload *u, const char *filename, struct error *err)
{
	const struct box_file_events events = {u, on_entry, on_read, on_room, on_done, on_failed};
	const struct box_file_request request = {.op = BOX_FILE_WRITE,
	                                         .path = u->path,
	                                         .mode = FILE_MODE,
	                                         .length = u->router->config->max_upload_bytes,
	                                         .parents = true};
	const char *name = http_query(u->req, "filename");
	struct session *session = session_find(u->router->parts.sessions, u->tenant, u->id);

	if (!session) /* the header came a while ago */
		return error_set(err, ERR_SESSION_NOT_FOUND, 0, "no session has this id");
	if (!name || !*name)
		name = filename ? filename : "";
	if (workpath_clean(name, WORKPATH_STRIP, "filename", u->path, err) < 0)
		return -1;
	if (!u->path[0])
		return error_field(err, "filename", "is missing");
	return file_open(session, &request, &events, &u->op, err);
}

static int on_part(void *ctx, const char *name, const char *filename, struct error *err)
{
	struct upload *u = ctx;

	u->in_file = str_equal(name, "file");
	if (!u->in_file)
		return 0;
	if (u->has_file)
		return error_field(err, "file", "must be there once");
	u->has_file = true;
	return open_file(u, filename, err);
}

static ssize_t on_data(void *ctx, const char *data, size_t len, struct error *err)
{
	struct upload *u = ctx;
	size_t n;

	(void)err;
	if (!u->in_file)
		return (ssize_t)len;
	n = file_write(u->op, data, len);
	u->bytes += n;
	return (ssize_t)n;
}

static int on_part_end(void *ctx, struct error *err)
{
	struct upload *u = ctx;

	(void)err;
	u->in_file = false;
	return 0;
}

static size_t on_body(void *ctx, const char *data, size_t len)
{
	struct upload *u = ctx;
	struct error err = {0};
	ssize_t n = multipart_feed(u->form, data, len, &err);

	if (n >= 0)
		return (size_t)n;
	fail(u, &err);
	return 0;
}

static void on_body_end(void *ctx)
{
	struct upload *u = ctx;
	struct error err = {0};

	if (!multipart_is_complete(u->form) || !u->has_file) {
		(void)error_field(&err, "file",
		                  "must be a part of a multipart/form-data body with this name");
		fail(u, &err);
		return;
	}
	file_end(u->op);
}

/* The header is there, the body comes. */
void se_upload(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct upload *u = NEW(struct upload);
	const struct multipart_events events = {u, on_part, on_data, on_part_end};
	const struct http_body_events body = {u, on_body, on_body_end};
	struct error err = {0};

	u->router = r;
	u->req = req;
	(void)!str_copy(u->tenant, sizeof(u->tenant), args->principal->tenant);
	(void)!str_copy(u->id, sizeof(u->id), args->id);
	u->form = multipart_new(http_header(req, "Content-Type"), &events, &err);
	if (!u->form) {
		reply_error(req, &err);
		upload_free(u);
		return;
	}
	if (!se_session(r, req, args)) { /* answered */
		upload_free(u);
		return;
	}
	http_set_gone(req, on_gone, u);
	http_take_body(req, &body);
}
