/* SPDX-License-Identifier: Apache-2.0 */
#include "api/filecall.h"

#include "api/reply.h"
#include "base/alloc.h"
#include "core/files.h"
#include "core/workpath.h"
#include "http/server.h"
#include <string.h>

/* A box that keeps to its own bound stays below this, the last entry included. */
#define BYTES_MAX (FILES_LIST_BYTES + 4 * WORKPATH_MAX)

struct caller {
	struct http_request *req; /* the server's */
	struct file_call call;
	struct file_op *op;
	struct file_item *items; /* owned */
	size_t count, room;
	size_t bytes;    /* of their names */
	struct buf data; /* what was read */
	char *text;      /* owned: what is to be written */
	size_t written;
};

static void caller_free(struct caller *c)
{
	for (size_t i = 0; i < c->count; i++) {
		free(c->items[i].path);
		free(c->items[i].target);
	}
	free(c->items);
	buf_done(&c->data);
	free(c->text);
	if (c->call.free)
		c->call.free(c->call.ctx);
	free(c);
}

static void over(struct caller *c, struct file_result *result)
{
	result->items = c->items;
	result->count = c->count;
	result->data = c->data.data ? c->data.data : "";
	result->len = c->data.len;
	http_set_gone(c->req, NULL, NULL);
	c->call.on_over(c->call.ctx, c->req, result);
	caller_free(c);
}

static void on_done(void *ctx, const struct box_file_summary *summary)
{
	over(ctx, &(struct file_result){.summary = *summary});
}

static void on_failed(void *ctx, const struct error *err)
{
	over(ctx, &(struct file_result){.failure = err});
}

static void refuse_more(struct caller *c, size_t max)
{
	struct error err = {0};

	file_cancel(c->op);
	(void)error_set(&err, ERR_TOO_LARGE, 0, "more than %zu bytes", max);
	on_failed(c, &err);
}

static void on_entry(void *ctx, const struct box_file_entry *entry)
{
	struct caller *c = ctx;

	c->bytes += strlen(entry->path) + strlen(entry->target);
	if (c->bytes > BYTES_MAX) {
		refuse_more(c, BYTES_MAX);
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
	struct caller *c = ctx;

	if (buf_add(&c->data, data, len) == 0)
		file_grant(c->op, len);
	else
		refuse_more(c, c->call.data_max);
}

static void on_room(void *ctx)
{
	struct caller *c = ctx;

	c->written += file_write(c->op, c->text + c->written, c->call.len - c->written);
	if (c->written == c->call.len)
		file_end(c->op);
}

static void on_gone(void *ctx)
{
	struct caller *c = ctx;

	file_cancel(c->op);
	caller_free(c);
}

void file_call(struct http_request *req, struct session *session, const struct file_call *call)
{
	struct caller *c = NEW(struct caller);
	const struct box_file_events events = {
		.ctx = c,
		.on_entry = on_entry,
		.on_data = on_data,
		.on_room = on_room,
		.on_done = on_done,
		.on_failed = on_failed,
	};
	struct error err = {0};

	c->req = req;
	c->call = *call;
	buf_init(&c->data, call->data_max);
	if (file_open(session, &call->request, &events, &c->op, &err) < 0) {
		caller_free(c);
		reply_error(req, &err);
		return;
	}
	http_set_gone(req, on_gone, c);
	if (call->request.op != BOX_FILE_WRITE)
		return;
	c->text = xmemdup0(call->data, call->len);
	on_room(c);
}
