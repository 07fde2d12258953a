/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/filecall.h"

#include "api/reply.h"
#include "base/alloc.h"
#include "http/server.h"

struct caller {
	struct http_request *req; /* the server's */
	struct file_call call;
	struct collect *collect;
};

static void caller_free(struct caller *c)
{
	if (c->call.free)
		c->call.free(c->call.ctx);
	free(c);
}

static void on_over(void *ctx, const struct file_result *result)
{
	struct caller *c = ctx;

	http_set_gone(c->req, NULL, NULL);
	c->call.on_over(c->call.ctx, c->req, result);
	caller_free(c);
}

static void on_gone(void *ctx)
{
	struct caller *c = ctx;

	collect_cancel(c->collect);
	caller_free(c);
}

void file_call(struct http_request *req, struct session *session, const struct file_call *call)
{
	struct caller *c = NEW(struct caller);
	const struct collect_request request = {
		.request = call->request,
		.data = call->data,
		.len = call->len,
		.data_max = call->data_max,
		.on_over = on_over,
		.ctx = c,
	};
	struct error err = {0};

	c->req = req;
	c->call = *call;
	c->collect = collect_start(session, &request, &err);
	if (!c->collect) {
		caller_free(c);
		reply_error(req, &err);
		return;
	}
	http_set_gone(req, on_gone, c);
}
