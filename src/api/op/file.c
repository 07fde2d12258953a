/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/file.h"

#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "core/request/workpath.h"
#include "core/session/session_files.h"
#include <string.h>

/* A box within its own limit stays below this. */
#define BYTES_MAX (FILES_LIST_BYTES + 4 * WORKPATH_MAX)

struct op_file {
	struct file_op *op;
	struct file_item *items; /* owned */
	size_t count, room;
	size_t bytes;    /* of their names */
	struct buf data; /* what was read */
	char *text;      /* owned: to be written */
	size_t len, written;
	void (*on_end)(void *ctx, const struct file_result *result);
	void *ctx;
};

static void op_file_free(struct op_file *c)
{
	for (size_t i = 0; i < c->count; i++) {
		free(c->items[i].path);
		free(c->items[i].target);
	}
	free(c->items);
	buf_done(&c->data);
	free(c->text);
	free(c);
}

static void end_op(struct op_file *c, struct file_result *result)
{
	result->items = c->items;
	result->count = c->count;
	result->data = c->data.data ? c->data.data : "";
	result->len = c->data.len;
	c->on_end(c->ctx, result);
	op_file_free(c);
}

static void on_done(void *ctx, const struct box_file_summary *summary)
{
	end_op(ctx, &(struct file_result){.summary = *summary});
}

static void on_failed(void *ctx, const struct error *err)
{
	end_op(ctx, &(struct file_result){.failure = err});
}

static void refuse_excess(struct op_file *c, size_t max)
{
	struct error err = {0};

	file_cancel(c->op);
	(void)error_set(&err, ERR_TOO_LARGE, 0, "more than %zu bytes", max);
	on_failed(c, &err);
}

static void on_entry(void *ctx, const struct box_file_entry *entry)
{
	struct op_file *c = ctx;

	c->bytes += strlen(entry->path) + strlen(entry->target);
	if (c->bytes > BYTES_MAX) {
		refuse_excess(c, BYTES_MAX);
		return;
	}
	if (c->count == c->room) {
		c->room = c->room ? 2 * c->room : 8;
		c->items = xrealloc_array(c->items, c->room, sizeof(*c->items));
	}
	c->items[c->count++] = (struct file_item){
		.type = entry->type,
		.path = xstrdup(entry->path),
		.target = xstrdup(entry->target),
		.size = entry->size,
		.mtime_ns = entry->mtime_ns,
		.inode = entry->inode,
		.mode = entry->mode,
	};
}

static void on_data(void *ctx, const char *data, size_t len)
{
	struct op_file *c = ctx;

	if (buf_add(&c->data, data, len) == 0)
		file_grant(c->op, len);
	else
		refuse_excess(c, c->data.max);
}

static void on_room(void *ctx)
{
	struct op_file *c = ctx;

	c->written += file_write(c->op, c->text + c->written, c->len - c->written);
	if (c->written == c->len)
		file_end(c->op);
}

struct op_file *op_file_start(struct session *session, const struct op_file_request *request,
                              struct error *err)
{
	struct op_file *c = NEW(struct op_file);
	const struct box_file_events events = {
		.ctx = c,
		.on_entry = on_entry,
		.on_data = on_data,
		.on_room = on_room,
		.on_done = on_done,
		.on_failed = on_failed,
	};

	c->on_end = request->on_end;
	c->ctx = request->ctx;
	c->len = request->len;
	buf_init(&c->data, request->data_max);
	if (file_open(session, &request->request, &events, &c->op, err) < 0) {
		op_file_free(c);
		return NULL;
	}
	if (request->request.op == BOX_FILE_WRITE) {
		c->text = xmemdup0(request->data, request->len);
		on_room(c);
	}
	return c;
}

void op_file_cancel(struct op_file *c)
{
	file_cancel(c->op);
	op_file_free(c);
}

struct waiter {
	struct pending pending;
	struct op_file_reply reply;
	struct op_file *file;
};

static void waiter_free(struct waiter *w)
{
	if (w->reply.free)
		w->reply.free(w->reply.ctx);
	free(w);
}

static void answer_request(void *ctx, const struct file_result *result)
{
	struct waiter *w = ctx;

	w->reply.answer(w->reply.ctx, pending_resume(&w->pending), result);
	waiter_free(w);
}

static void on_left(struct pending *p)
{
	struct waiter *w = CONTAINER_OF(p, struct waiter, pending);

	op_file_cancel(w->file);
	waiter_free(w);
}

void op_file_reply(struct http_request *req, struct session *session,
                   const struct op_file_reply *reply)
{
	struct waiter *w = NEW(struct waiter);
	const struct op_file_request request = {
		.request = reply->request,
		.data = reply->data,
		.len = reply->len,
		.data_max = reply->data_max,
		.on_end = answer_request,
		.ctx = w,
	};
	struct error err = {0};

	w->reply = *reply;
	w->file = op_file_start(session, &request, &err);
	if (!w->file) {
		waiter_free(w);
		reply_error(req, &err);
		return;
	}
	pending_wait(&w->pending, req, on_left);
}
