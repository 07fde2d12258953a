/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/durable_reply.h"
#include "api/json/decode.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/reply.h"
#include "base/str.h"
#include "core/pool/pool.h"
#include "core/run/run.h"
#include "core/template/templates.h"
#include "http/server.h"
#include "http/status.h"

static json_t *view_template(const struct router *r, const struct template *t)
{
	return encode_template(r->parts.templates, t, r->parts.runners);
}

/* A name of an image that stands for the host's root is accepted, but says so. */
static void warn_of_image(struct http_request *req, const struct template *t)
{
	if (t->kind == TEMPLATE_ON_HOST && !str_equal(t->spec.image, TEMPLATE_HOST))
		json_append(reply_warnings(req),
		            json_sprintf("image: nothing is pulled; '%.80s' stands for the host's "
		                         "root, whose programs may have other versions",
		                         t->spec.image));
}

static struct templates_done done_of(struct durable_reply *reply)
{
	struct identity_done done = durable_reply_done(reply);

	return (struct templates_done){done.fn, done.ctx};
}

void v1_template_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_template_spec struct template_spec spec = {0};
	struct template *t = NULL;
	struct durable_reply *reply;
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);
	int started;

	if (decode_template(body, len, false, args->warnings, &spec, &err) < 0) {
		reply_invalid(req, &err, "body");
		return;
	}
	reply = durable_reply_new(req, HTTP_CREATED);
	started = templates_create(r->parts.templates, args->principal->tenant, &spec,
	                           done_of(reply), &t, &err);
	if (started >= 0) {
		http_set_note(req, t->spec.id);
		warn_of_image(req, t);
		durable_reply_set_body(reply, view_template(r, t));
	}
	durable_reply_started(reply, started, &err);
}

static const char *const status_words[] = {"available", "unavailable", NULL};
const struct fields v1_template_query = QUERY_PAGE_FIELDS(status_words);

void v1_template_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct templates *all = r->parts.templates;
	const char *tenant = args->principal->tenant;
	struct query_page page = {0};
	struct error err = {0};
	const struct template *t;

	if (query_page(req, args->query, &page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	for (t = templates_at(all, tenant, query_page_begin(&page));
	     t && !query_page_is_done(&page); t = templates_next(all, tenant, t))
		if (query_page_wants(&page, status_words[t->problem ? 1 : 0]))
			query_page_add(&page, view_template(r, t));
	reply_json(req, HTTP_OK,
	           query_page_object(&page, "templates", templates_count(all, tenant)));
}

void v1_template_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct template *t =
		templates_find(r->parts.templates, args->principal->tenant, args->id);
	struct error err = {0};

	if (t) {
		reply_json(req, HTTP_OK, view_template(r, t));
		return;
	}
	(void)error_set(&err, ERR_TEMPLATE_NOT_FOUND, 0, "no template has this id");
	reply_error(req, &err);
}

void v1_template_update(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_template_spec struct template_spec spec = {0};
	const struct templates_update update = {args->principal->tenant, args->id, &spec};
	struct template *t = NULL;
	struct durable_reply *reply;
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);
	int started;

	if (decode_template(body, len, true, args->warnings, &spec, &err) < 0) {
		reply_invalid(req, &err, "body");
		return;
	}
	reply = durable_reply_new(req, HTTP_OK);
	started = templates_update(r->parts.templates, &update, done_of(reply), &t, &err);
	if (started >= 0) {
		warn_of_image(req, t);
		durable_reply_set_body(reply, view_template(r, t));
		pools_forget(run_service_pools(r->runs), args->principal->tenant);
	}
	durable_reply_started(reply, started, &err);
}

void v1_template_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct durable_reply *reply = durable_reply_new(req, HTTP_NO_CONTENT);
	struct error err = {0};
	int started = templates_delete(r->parts.templates, args->principal->tenant, args->id,
	                               done_of(reply), &err);

	if (started >= 0)
		pools_forget(run_service_pools(r->runs), args->principal->tenant);
	durable_reply_started(reply, started, &err);
}
