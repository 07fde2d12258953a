/* SPDX-License-Identifier: Apache-2.0 */
#include "api/change.h"

#include "api/json.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "http/server.h"

struct change {
	struct http_request *req; /* NULL: the client left */
	int status;
	json_t *body; /* owned */
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

void change_refuse(struct change *change, const struct error *err)
{
	if (change->req) {
		http_set_gone(change->req, NULL, NULL);
		reply_error(change->req, err);
	}
	json_decref(change->body);
	free(change);
}

static void on_done(void *ctx, const struct error *err)
{
	struct change *change = ctx;

	if (err) {
		change_refuse(change, err);
		return;
	}
	if (change->req) {
		http_set_gone(change->req, NULL, NULL);
		reply_json(change->req, change->status, TAKE_PTR(change->body));
	}
	json_decref(change->body);
	free(change);
}

struct identity_done change_done(struct change *change)
{
	return (struct identity_done){on_done, change};
}
