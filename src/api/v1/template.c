/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/durable_reply.h"
#include "api/json/decode.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/op/install.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/pool/pool.h"
#include "core/run/run.h"
#include "core/template/templates.h"
#include "http/server.h"
#include "http/status.h"
#include <string.h>

static json_t *view_template(const struct router *r, const struct template *t)
{
	return encode_template(r->parts.templates, t, r->parts.runners);
}

/* A name of an image that stands for the host's root is accepted, but says so. */
static void warn_of_image(struct http_request *req, const struct template *t)
{
	cleanup_free char *text = NULL;

	if (t->kind != TEMPLATE_ON_HOST || str_equal(t->spec.image, TEMPLATE_HOST))
		return;
	text = xasprintf("image: nothing is pulled; '%.80s' stands for the host's root, whose "
	                 "programs may have other versions",
	                 t->spec.image);
	json_append(reply_warnings(req), json_text(text, strlen(text)));
}

static struct templates_done done_of(struct durable_reply *reply)
{
	struct identity_done done = durable_reply_done(reply);

	return (struct templates_done){done.fn, done.ctx};
}

/* A template that waits for its packages. */
struct template_call {
	struct router *r;
	const char *tenant; /* the request's principal has it */
	struct template_spec spec;
	char *id;              /* owned; NULL: a new one */
	struct template *base; /* a reference: whose root it has */
};

static void drop_call(void *ctx)
{
	cleanup_free struct template_call *call = ctx;

	template_spec_done(&call->spec);
	template_unref(call->base);
	free(call->id);
}

static void create_template(struct template_call *call, struct http_request *req)
{
	struct durable_reply *reply = durable_reply_new(req, HTTP_CREATED);
	struct template *t = NULL;
	struct error err = {0};
	int started = templates_create(call->r->parts.templates, call->tenant, &call->spec,
	                               done_of(reply), &t, &err);

	if (started >= 0) {
		http_set_note(req, t->spec.id);
		warn_of_image(req, t);
		durable_reply_set_body(reply, view_template(call->r, t));
	}
	durable_reply_started(reply, started, &err);
}

static void update_template(struct template_call *call, struct http_request *req)
{
	const struct templates_update update = {call->tenant, call->id, &call->spec};
	struct durable_reply *reply = durable_reply_new(req, HTTP_OK);
	struct template *t = NULL;
	struct error err = {0};
	int started = templates_update(call->r->parts.templates, &update, done_of(reply), &t, &err);

	if (started >= 0) {
		warn_of_image(req, t);
		durable_reply_set_body(reply, view_template(call->r, t));
		pools_forget(run_service_pools(call->r->runs), call->tenant);
	}
	durable_reply_started(reply, started, &err);
}

static void put_template(struct template_call *call, struct http_request *req)
{
	if (call->id)
		update_template(call, req);
	else
		create_template(call, req);
	drop_call(call);
}

static void on_layer(void *ctx, struct http_request *req, struct layer *layer,
                     struct install_stream *stream attr_unused)
{
	struct template_call *call = ctx;

	free(call->spec.manager);
	free(call->spec.layer);
	installs_fill(layer, &call->spec);
	put_template(call, req);
}

/* The language of a template's packages: its own, that of what it changes, or Python. */
static const char *language_of(const struct template_call *call)
{
	if (call->spec.language)
		return call->spec.language;
	return call->base && call->base->spec.language ? call->base->spec.language : "python";
}

/* Without an installation, its packages must be in the root, as templates.c checks. */
static int needs_install(struct template_call *call)
{
	const struct router *r = call->r;
	const char *language = language_of(call);

	if (call->spec.lock || call->spec.run)
		return 1;
	if (!call->spec.packages ||
	    (!call->spec.manager && !installs_can(r->parts.installs, language)))
		return 0;
	return op_root_lacks(r, language, call->base, call->spec.packages) >= 0;
}

/* Its root: that of the template it changes, or of the image that it names. */
static void find_base(struct template_call *call)
{
	const struct templates *all = call->r->parts.templates;
	const char *image = call->spec.image;

	if (image && !str_equal(image, TEMPLATE_HOST))
		call->base = template_ref(templates_find(all, call->tenant, image));
	else if (call->id && !image)
		call->base = template_ref(templates_find(all, call->tenant, call->id));
}

static void start_put(struct template_call *call, struct http_request *req,
                      const struct route_args *args)
{
	const struct op_install how = {.ctx = call, .then = on_layer, .drop = drop_call};
	struct install_request install = {.tenant = call->tenant,
	                                  .key_id = args->principal->key_id,
	                                  .request_id = http_request_id(req),
	                                  .manager = call->spec.manager,
	                                  .packages = call->spec.packages,
	                                  .lock = call->spec.lock,
	                                  .run = call->spec.run};
	struct error err = {0};

	find_base(call);
	if (!needs_install(call)) {
		/* Other packages than those of its layer, which are in the root. */
		if (call->spec.packages && !call->spec.layer)
			call->spec.layer = xstrdup("");
		put_template(call, req);
		return;
	}
	/* Before the work, not after it. */
	if (templates_check(call->r->parts.templates, call->tenant, &call->spec, call->id, &err) <
	    0) {
		reply_error(req, &err);
		drop_call(call);
		return;
	}
	install.language = language_of(call);
	install.template = call->base;
	op_install(call->r, req, &install, &how);
}

static void decode_put(struct router *r, struct http_request *req, const struct route_args *args,
                       const char *id)
{
	struct template_call *call = NEW(struct template_call);
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);

	*call = (struct template_call){
		.r = r, .tenant = args->principal->tenant, .id = id ? xstrdup(id) : NULL};
	if (decode_template(body, len, id, args->warnings, &call->spec, &err) < 0) {
		reply_invalid(req, &err, "body");
		drop_call(call);
		return;
	}
	start_put(call, req, args);
}

void v1_template_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	decode_put(r, req, args, NULL);
}

void v1_template_update(struct router *r, struct http_request *req, const struct route_args *args)
{
	decode_put(r, req, args, args->id);
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
