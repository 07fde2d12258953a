/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/upload_form.h"

#include "api/internal.h"
#include "api/json/encode_file.h"
#include "api/json/multipart.h"
#include "api/json/query.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/session/session.h"
#include "core/session/session_files.h"
#include <stdio.h>
#include <string.h>

/*
 * Theory of operation. A form has a file and perhaps its path, in any order. If the path may still
 * follow, the file is written under a temporary name and moved at the end, or removed. A truncated
 * form leaves nothing.
 */

#define FORM_EXTRA (64 * 1024) /* boundaries, headers, other fields */
#define FILE_MODE  0644

struct upload_form {
	const struct upload_form_dialect *dialect;
	struct pending pending;
	struct router *router;
	char tenant[TENANT_NAME_MAX + 1];
	char *session_id; /* owned */
	struct session *session;
	struct multipart *form;
	struct file_op *op; /* NULL: none */
	bool in_place, in_file, has_file;
	struct buf place; /* as given */
	char *filename;   /* owned; of the file part */
	char *target;     /* owned; the final path, once known */
	char temp[40];    /* "": written to @target */
	struct file_item item;
};

void upload_form_free(struct upload_form *u)
{
	if (!u)
		return;
	multipart_free(u->form);
	buf_done(&u->place);
	free(u->session_id);
	free(u->filename);
	free(u->target);
	free(u);
}

static void fail_upload(struct upload_form *u, const struct error *err)
{
	if (u->op)
		file_cancel(TAKE_PTR(u->op));
	reply_error(pending_resume(&u->pending), err);
	upload_form_free(u);
}

static void on_left(struct pending *p)
{
	struct upload_form *u = CONTAINER_OF(p, struct upload_form, pending);

	if (u->op)
		file_cancel(TAKE_PTR(u->op));
	upload_form_free(u);
}

/* Remove a file that could not be moved; nothing waits. */

static void ignore_entry(void *ctx, const struct box_file_entry *entry)
{
	(void)ctx;
	(void)entry;
}

static void ignore_data(void *ctx, const char *data, size_t len)
{
	(void)ctx;
	(void)data;
	(void)len;
}

static void ignore_room(void *ctx)
{
	(void)ctx;
}

static void ignore_done(void *ctx, const struct box_file_summary *summary)
{
	(void)ctx;
	(void)summary;
}

static void note_failure(void *ctx, const struct error *err)
{
	(void)ctx;
	log_debug("cannot remove an upload that could not be moved: %s", err->msg);
}

static void remove_temp(const struct upload_form *u)
{
	const struct box_file_events events = {NULL,        ignore_entry, ignore_data,
	                                       ignore_room, ignore_done,  note_failure};
	const struct box_file_request request = {.op = BOX_FILE_REMOVE, .path = u->temp};
	struct file_op *op;
	struct error err = {0};

	if (file_open(u->session, &request, &events, &op, &err) < 0)
		note_failure(NULL, &err);
}

static void answer_form(struct upload_form *u)
{
	u->dialect->answer(pending_resume(&u->pending), u->session_id, u->target, &u->item);
	upload_form_free(u);
}

static void on_moved(void *ctx, const struct box_file_summary *summary)
{
	struct upload_form *u = ctx;

	(void)summary;
	u->op = NULL;
	answer_form(u);
}

static void on_not_moved(void *ctx, const struct error *err)
{
	struct upload_form *u = ctx;

	u->op = NULL;
	u->session = session_find(u->router->parts.sessions, u->tenant, u->session_id);
	if (u->session)
		remove_temp(u);
	fail_upload(u, err);
}

static void move_to_target(struct upload_form *u)
{
	const struct box_file_events events = {u,           ignore_entry, ignore_data,
	                                       ignore_room, on_moved,     on_not_moved};
	const struct box_file_request request = {.op = BOX_FILE_MOVE,
	                                         .path = u->temp,
	                                         .to = u->target,
	                                         .parents = true,
	                                         .replace = true};
	struct error err = {0};

	u->session = session_find(u->router->parts.sessions, u->tenant, u->session_id);
	if (!u->session)
		(void)error_set(&err, ERR_SESSION_NOT_FOUND, 0, "the session has ended");
	if (!u->session || file_open(u->session, &request, &events, &u->op, &err) < 0)
		fail_upload(u, &err);
}

static void on_entry(void *ctx, const struct box_file_entry *entry)
{
	struct upload_form *u = ctx;

	u->item = (struct file_item){.type = entry->type,
	                             .path = (char *)"",
	                             .target = (char *)"",
	                             .size = entry->size,
	                             .mtime_ns = entry->mtime_ns,
	                             .inode = entry->inode,
	                             .mode = entry->mode};
}

static void on_done(void *ctx, const struct box_file_summary *summary)
{
	struct upload_form *u = ctx;

	(void)summary;
	u->op = NULL;
	if (u->temp[0])
		move_to_target(u);
	else
		answer_form(u);
}

static void on_failed(void *ctx, const struct error *err)
{
	struct upload_form *u = ctx;

	u->op = NULL;
	fail_upload(u, err);
}

static void on_room(void *ctx)
{
	struct upload_form *u = ctx;

	http_body_resume(u->pending.req);
}

static int settle_target(struct upload_form *u, struct error *err)
{
	const struct upload_form_names names = {.place = u->place.len > 0 ? u->place.data : "",
	                                        .filename = u->filename ? u->filename : ""};
	char target[WORKPATH_MAX + 1];

	if (strlen(names.place) != u->place.len)
		return error_field(err, u->dialect->place, "must not contain NUL");
	if (u->dialect->settle(&names, target, err) < 0)
		return -1;
	free(u->target);
	u->target = xstrdup(target);
	return 0;
}

static int open_file(struct upload_form *u, struct error *err)
{
	const struct box_file_events events = {u,       on_entry, ignore_data,
	                                       on_room, on_done,  on_failed};
	struct box_file_request request = {.op = BOX_FILE_WRITE,
	                                   .mode = FILE_MODE,
	                                   .length = u->router->config->max_upload_bytes,
	                                   .parents = true};
	char random[17];

	/* The session may have ended since the header. */
	u->session = session_find(u->router->parts.sessions, u->tenant, u->session_id);
	if (!u->session)
		return error_set(err, ERR_SESSION_NOT_FOUND, 0, "no session has this id");
	if (u->place.len > 0 || !u->dialect->field) {
		if (settle_target(u, err) < 0)
			return -1;
		request.path = u->target;
	} else {
		id_random(random, sizeof(random) - 1);
		(void)snprintf(u->temp, sizeof(u->temp), ".upload-%s.part", random);
		request.path = u->temp;
	}
	return file_open(u->session, &request, &events, &u->op, err);
}

static int on_part(void *ctx, const char *name, const char *filename, struct error *err)
{
	struct upload_form *u = ctx;

	u->in_file = str_equal(name, "file");
	u->in_place = u->dialect->field && str_equal(name, u->dialect->field);
	if (!u->in_file && !u->in_place)
		return u->dialect->strict ? error_field(err, name, "is not a field of this form")
		                          : 0;
	if (u->in_place) {
		buf_reset(&u->place); /* the form overrides the query */
		return 0;
	}
	if (u->has_file)
		return error_field(err, "file", "must occur once");
	u->has_file = true;
	u->filename = filename ? xstrdup(filename) : NULL;
	return open_file(u, err);
}

static int add_place(struct upload_form *u, const char *data, size_t len, struct error *err)
{
	if (buf_add(&u->place, data, len) < 0)
		return error_field(err, u->dialect->place, "is longer than %d bytes", WORKPATH_MAX);
	return 0;
}

static ssize_t on_data(void *ctx, const char *data, size_t len, struct error *err)
{
	struct upload_form *u = ctx;

	if (u->in_file)
		return (ssize_t)file_write(u->op, data, len);
	if (u->in_place && add_place(u, data, len, err) < 0)
		return -1;
	return (ssize_t)len;
}

static int on_part_end(void *ctx, struct error *err)
{
	struct upload_form *u = ctx;

	(void)err;
	u->in_file = u->in_place = false;
	return 0;
}

static size_t on_body(void *ctx, const char *data, size_t len)
{
	struct upload_form *u = ctx;
	struct error err = {0};
	ssize_t n = multipart_feed(u->form, data, len, &err);

	if (n < 0) {
		fail_upload(u, &err);
		return 0;
	}
	return (size_t)n;
}

static void on_body_end(void *ctx)
{
	struct upload_form *u = ctx;
	struct error err = {0};

	if (!multipart_is_complete(u->form))
		(void)error_set(&err, ERR_INVALID, 0, "the form is incomplete");
	else if (!u->has_file)
		(void)error_field(&err, "file",
		                  "must be a part of a multipart/form-data body with this name");
	/* Known now, if not before. */
	else if (u->temp[0])
		(void)settle_target(u, &err);
	if (error_is_set(&err))
		fail_upload(u, &err);
	else
		file_end(u->op);
}

static int check_length(const struct upload_form *u, struct error *err)
{
	uint64_t max = u->router->config->max_upload_bytes;
	uint64_t length = http_body_length(u->pending.req);

	if (length != HTTP_LENGTH_UNKNOWN && length > max + FORM_EXTRA)
		return error_set(err, ERR_TOO_LARGE, 0, "the file exceeds %llu bytes",
		                 (unsigned long long)max);
	return 0;
}

struct upload_form *upload_form_new(struct router *r, struct http_request *req,
                                    const struct route_args *args,
                                    const struct upload_form_dialect *dialect, struct error *err)
{
	struct upload_form *u = NEW(struct upload_form);
	const struct multipart_events events = {u, on_part, on_data, on_part_end};
	struct upload_form_query query = {0};

	u->dialect = dialect;
	u->router = r;
	u->pending.req = req;
	buf_init(&u->place, WORKPATH_MAX);
	(void)!str_copy(u->tenant, sizeof(u->tenant), args->principal->tenant); /* fits */
	if (check_length(u, err) == 0 && query_decode(req, args->query, &query, err) == 0 &&
	    (!query.place || add_place(u, query.place, strlen(query.place), err) == 0))
		u->form = multipart_new(http_header(req, "Content-Type"), &events, err);
	if (u->form)
		return u;
	upload_form_free(u);
	return NULL;
}

void upload_form_begin(struct upload_form *u, const struct session *session)
{
	const struct http_body_events body = {u, on_body, on_body_end};
	struct session_info info = {0};

	session_info(session, &info);
	u->session_id = xstrdup(info.id);
	pending_wait(&u->pending, u->pending.req, on_left);
	http_take_body(u->pending.req, &body);
}
