/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "core/template/imports.h"
#include "core/template/templates.h"
#include "http/status.h"
#include <string.h>

/* A client that leaves cancels the import. */
struct import_call {
	struct pending pending;
	struct router *r;
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

	http_body_resume(call->pending.req);
}

static void on_done(void *ctx, struct template *t)
{
	cleanup_free struct import_call *call = ctx;
	struct http_request *req = pending_resume(&call->pending);

	http_set_note(req, t->spec.id);
	reply_json(req, HTTP_CREATED,
	           encode_template(call->r->parts.templates, t, call->r->parts.runners));
}

static void on_failed(void *ctx, const struct error *err)
{
	cleanup_free struct import_call *call = ctx;

	reply_error(pending_resume(&call->pending), err);
}

static void on_left(struct pending *p)
{
	cleanup_free struct import_call *call = CONTAINER_OF(p, struct import_call, pending);

	import_cancel(call->import);
}

/* clang-format off */
static const struct field import_rows[] = {
	{"id", FIELD_STRING, AT(struct import_request, id), .required = true, .schema = "{\"pattern\": \"^[A-Za-z0-9_-]{1,64}$\"}", .description = "Of the new template."},
	{"name", FIELD_STRING, AT(struct import_request, name), .schema = "{\"minLength\": 1, \"maxLength\": 255}", .description = "Of the new template; by default its id."},
	FIELDS_END,
};
/* clang-format on */
const struct fields v1_import_query = {.rows = import_rows};

void v1_template_import(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_free struct import_call *call = NEW(struct import_call);
	const struct import_events events = {call, on_room, on_done, on_failed};
	const struct http_body_events body = {call, on_data, on_end};
	uint64_t length = http_body_length(req);
	struct import_request request = {
		.tenant = args->principal->tenant,
		.length = length == HTTP_LENGTH_UNKNOWN ? IMPORT_LENGTH_UNKNOWN : length};
	struct error err = {0};

	if (query_decode(req, args->query, &request, &err) < 0 ||
	    imports_begin(r->parts.imports, &request, &events, &call->import, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	call->r = r;
	pending_wait(&call->pending, req, on_left);
	http_take_body(req, &body);
	(void)TAKE_PTR(call); /* owned by the callbacks */
}

static json_t *number_unless(uint64_t value, uint64_t unknown)
{
	return value == unknown ? json_null() : json_integer((json_int_t)value);
}

static json_t *view_import(const struct import_info *info)
{
	json_t *j = json_object();

	json_set(j, "id", json_string(info->id));
	json_set(j, "template_id", json_string(info->id));
	json_set(j, "name", json_text(info->name, strlen(info->name)));
	json_set(j, "state", json_string(import_state_name(info->state)));
	json_set(j, "received_bytes", json_integer((json_int_t)info->received));
	json_set(j, "total_bytes", number_unless(info->length, IMPORT_LENGTH_UNKNOWN));
	json_set(j, "layers", number_unless(info->layers, 0));
	json_set(j, "layer", number_unless(info->layer, 0));
	json_set(j, "entries", json_integer((json_int_t)info->entries));
	json_set(j, "unpacked_bytes", json_integer((json_int_t)info->bytes));
	json_set(j, "started_at", encode_moment(info->started_ms));
	json_set(j, "updated_at", encode_moment(info->updated_ms));
	return j;
}

static const char *const status_words[] = {"waiting", "receiving", "unpacking", NULL};
const struct fields v1_imports_query = QUERY_PAGE_FIELDS(status_words);

void v1_import_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *tenant = args->principal->tenant;
	struct import_info info;
	struct query_page page = {0};
	struct error err = {0};
	size_t i, count = 0;

	if (query_page(req, args->query, &page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	while (imports_at(r->parts.imports, tenant, count, &info))
		count++;
	i = query_page_begin(&page);
	while (!query_page_is_done(&page) && imports_at(r->parts.imports, tenant, i++, &info))
		if (query_page_wants(&page, import_state_name(info.state)))
			query_page_add(&page, view_import(&info));
	reply_json(req, HTTP_OK, query_page_object(&page, "imports", count));
}

void v1_import_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct import_info info;
	struct error err = {0};

	if (imports_find(r->parts.imports, args->principal->tenant, args->id, &info)) {
		reply_json(req, HTTP_OK, view_import(&info));
		return;
	}
	(void)error_set(&err, ERR_IMPORT_NOT_FOUND, 0, "no import with this id is in progress");
	reply_error(req, &err);
}
