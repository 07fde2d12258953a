/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/upload.h"

#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "core/session/session_files.h"
#include "http/server.h"

struct upload {
	struct pending pending;
	struct file_op *op;
	struct upload_body put;
	bool has_entry;
	struct box_file_entry entry; /* without its texts */
};

static void upload_free(struct upload *u)
{
	if (u->put.free)
		u->put.free(u->put.ctx);
	free(u);
}

static void on_left(struct pending *p)
{
	struct upload *u = CONTAINER_OF(p, struct upload, pending);

	file_cancel(u->op);
	upload_free(u);
}

static size_t on_body(void *ctx, const char *data, size_t len)
{
	struct upload *u = ctx;

	return file_write(u->op, data, len);
}

static void on_body_end(void *ctx)
{
	struct upload *u = ctx;

	file_end(u->op);
}

static void on_room(void *ctx)
{
	struct upload *u = ctx;

	http_body_resume(u->pending.req);
}

static void on_entry(void *ctx, const struct box_file_entry *entry)
{
	struct upload *u = ctx;

	u->entry = *entry;
	u->entry.path = u->entry.target = "";
	u->entry.sha256 = NULL;
	u->has_entry = true;
}

static void on_data(void *ctx, const char *data, size_t len)
{
	(void)ctx; /* a write sends none */
	(void)data;
	(void)len;
}

static void on_done(void *ctx, const struct box_file_summary *summary)
{
	struct upload *u = ctx;

	u->put.on_done(u->put.ctx, pending_resume(&u->pending), u->has_entry ? &u->entry : NULL,
	               summary);
	upload_free(u);
}

static void on_failed(void *ctx, const struct error *err)
{
	struct upload *u = ctx;

	reply_error(pending_resume(&u->pending), err);
	upload_free(u);
}

void upload_body(struct http_request *req, struct session *session, const struct upload_body *put)
{
	struct upload *u = NEW(struct upload);
	const struct box_file_events events = {
		.ctx = u,
		.on_entry = on_entry,
		.on_data = on_data,
		.on_room = on_room,
		.on_done = on_done,
		.on_failed = on_failed,
	};
	const struct http_body_events body = {.ctx = u, .on_data = on_body, .on_end = on_body_end};
	struct error err = {0};

	u->put = *put;
	if (file_open(session, &put->request, &events, &u->op, &err) < 0) {
		reply_error(req, &err);
		upload_free(u);
		return;
	}
	pending_wait(&u->pending, req, on_left);
	http_take_body(req, &body);
}
