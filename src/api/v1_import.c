/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include "api/reply.h"
#include "api/view.h"
#include "base/alloc.h"
#include "core/imports.h"
#include "core/templates.h"

/*
 * An import_call joins a request whose body comes in pieces and an import. It ends with the
 * import's answer, or with the client, who then takes the import along.
 */

#define HTTP_CREATED 201

struct import_call {
	struct router *r;
	struct http_request *req; /* the server's */
	struct import *import;
};

static size_t on_data(void *ctx, const char *data, size_t len)
{
	struct import_call *call = ctx;

	return import_write(call->import, data, len);
}

static void on_end(void *ctx)
{
	struct import_call *call = ctx;

	import_end(call->import);
}

static void on_room(void *ctx)
{
	struct import_call *call = ctx;

	http_body_resume(call->req);
}

static void on_done(void *ctx, struct template *t)
{
	cleanup_free struct import_call *call = ctx;

	http_set_note(call->req, t->spec.id);
	reply_json(call->req, HTTP_CREATED,
	           view_template(call->r->parts.templates, t, call->r->parts.runners));
}

static void on_failed(void *ctx, const struct error *err)
{
	cleanup_free struct import_call *call = ctx;

	reply_error(call->req, err);
}

static void on_gone(void *ctx)
{
	cleanup_free struct import_call *call = ctx;

	import_cancel(call->import);
}

void v1_template_import(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_free struct import_call *call = NEW(struct import_call);
	const struct import_events events = {call, on_room, on_done, on_failed};
	const struct http_body_events body = {call, on_data, on_end};
	const char *id = http_query(req, "id");
	const struct import_request request = {.tenant = args->principal->tenant,
	                                       .id = id ? id : "",
	                                       .name = http_query(req, "name")};
	struct error err = {0};

	if (imports_begin(r->parts.imports, &request, &events, &call->import, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	call->r = r;
	call->req = req;
	http_set_gone(req, on_gone, call);
	http_take_body(req, &body);
	(void)TAKE_PTR(call); /* the callbacks' */
}
