/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/collect.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "core/request/workpath.h"
#include "core/session/session_files.h"
#include <string.h>

/* A box that keeps to its own bound stays below this, the last entry included. */
#define BYTES_MAX (FILES_LIST_BYTES + 4 * WORKPATH_MAX)

struct collect {
	struct file_op *op;
	struct file_item *items; /* owned */
	size_t count, room;
	size_t bytes;    /* of their names */
	struct buf data; /* what was read */
	char *text;      /* owned: what is to be written */
	size_t len, written;
	void (*on_over)(void *ctx, const struct file_result *result);
	void *ctx;
};

static void collect_free(struct collect *c)
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

static void over(struct collect *c, struct file_result *result)
{
	result->items = c->items;
	result->count = c->count;
	result->data = c->data.data ? c->data.data : "";
	result->len = c->data.len;
	c->on_over(c->ctx, result);
	collect_free(c);
}

static void on_done(void *ctx, const struct box_file_summary *summary)
{
	over(ctx, &(struct file_result){.summary = *summary});
}

static void on_failed(void *ctx, const struct error *err)
{
	over(ctx, &(struct file_result){.failure = err});
}

static void refuse_more(struct collect *c, size_t max)
{
	struct error err = {0};

	file_cancel(c->op);
	(void)error_set(&err, ERR_TOO_LARGE, 0, "more than %zu bytes", max);
	on_failed(c, &err);
}

static void on_entry(void *ctx, const struct box_file_entry *entry)
{
	struct collect *c = ctx;

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
	struct collect *c = ctx;

	if (buf_add(&c->data, data, len) == 0)
		file_grant(c->op, len);
	else
		refuse_more(c, c->data.max);
}

static void on_room(void *ctx)
{
	struct collect *c = ctx;

	c->written += file_write(c->op, c->text + c->written, c->len - c->written);
	if (c->written == c->len)
		file_end(c->op);
}

struct collect *collect_start(struct session *session, const struct collect_request *request,
                              struct error *err)
{
	struct collect *c = NEW(struct collect);
	const struct box_file_events events = {
		.ctx = c,
		.on_entry = on_entry,
		.on_data = on_data,
		.on_room = on_room,
		.on_done = on_done,
		.on_failed = on_failed,
	};

	c->on_over = request->on_over;
	c->ctx = request->ctx;
	c->len = request->len;
	buf_init(&c->data, request->data_max);
	if (file_open(session, &request->request, &events, &c->op, err) < 0) {
		collect_free(c);
		return NULL;
	}
	if (request->request.op == BOX_FILE_WRITE) {
		c->text = xmemdup0(request->data, request->len);
		on_room(c);
	}
	return c;
}

void collect_cancel(struct collect *c)
{
	file_cancel(c->op);
	collect_free(c);
}
