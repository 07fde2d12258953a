/* SPDX-License-Identifier: Apache-2.0 */
#include "api/ticket.h"

#include "api/json/encode.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "core/run/run_record.h"
#include "http/server.h"

struct ticket {
	struct http_request *req; /* the server's */
	struct run_record *execution;
	int status;
};

/* Nobody is there to be told; it runs all the same once it is stored. */
static void on_gone(void *ctx)
{
	struct ticket *t = ctx;

	run_record_when_stored(t->execution, NULL, NULL);
	free(t);
}

static void on_stored(void *ctx, struct run_record *e, const struct error *err)
{
	struct ticket *t = ctx;

	http_set_gone(t->req, NULL, NULL);
	if (err)
		reply_error(t->req, err);
	else
		reply_json(t->req, t->status, encode_run_ticket(e));
	free(t);
}

void ticket_answer(struct http_request *req, struct run_record *e, int status)
{
	struct ticket *t = NEW(struct ticket);

	*t = (struct ticket){req, e, status};
	http_set_gone(req, on_gone, t);
	run_record_when_stored(e, on_stored, t);
}
