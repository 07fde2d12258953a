/* SPDX-License-Identifier: Apache-2.0 */
#include "api/durable_reply.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "http/server.h"
#include <errno.h>

struct change {
	struct http_request *req; /* NULL: the client left */
	int status;
	json_t *body; /* owned; NULL: the answer has none */
	void (*undo)(void *ctx);
	void *undo_ctx; /* owned */
};

static void on_gone(void *ctx)
{
	struct change *change = ctx;

	change->req = NULL;
}

struct change *change_new(struct http_request *req, int status)
{
	struct change *change = NEW(struct change);

	change->req = req;
	change->status = status;
	http_set_gone(req, on_gone, change);
	return change;
}

void change_set_body(struct change *change, json_t *body)
{
	change->body = body;
}

void change_set_undo(struct change *change, void (*fn)(void *ctx), void *ctx)
{
	change->undo = fn;
	change->undo_ctx = ctx;
}

static void change_free(struct change *change)
{
	json_decref(change->body);
	free(change->undo_ctx);
	free(change);
}

void change_refuse(struct change *change, const struct error *err)
{
	if (change->req) {
		http_set_gone(change->req, NULL, NULL);
		reply_error(change->req, err);
	}
	change_free(change);
}

static void answer(struct change *change)
{
	http_set_gone(change->req, NULL, NULL);
	if (change->body)
		reply_json(change->req, change->status, TAKE_PTR(change->body));
	else
		http_reply(change->req,
		           &(struct http_answer){.status = change->status, .body = ""});
}

static void on_done(void *ctx, const struct error *err)
{
	struct change *change = ctx;

	/* Of a daemon that stops there is nothing left to undo it in. */
	if (err && change->undo && err->sys != ECANCELED)
		change->undo(change->undo_ctx);
	if (err) {
		change_refuse(change, err);
		return;
	}
	if (change->req)
		answer(change);
	change_free(change);
}

void change_begun(struct change *change, int r, const struct error *err)
{
	if (r != 0)
		on_done(change, r < 0 ? err : NULL);
}

struct identity_done change_done(struct change *change)
{
	return (struct identity_done){on_done, change};
}
