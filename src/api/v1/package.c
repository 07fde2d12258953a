/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/op/install.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/language/manager.h"
#include "core/template/images.h"
#include "core/template/layers.h"
#include "core/template/templates.h"
#include "http/server.h"
#include "http/status.h"
#include <string.h>

static json_t *view_layer(const struct layers *all, const struct layer *layer, bool whole)
{
	json_t *j = json_object();

	json_set(j, "id", json_string(layer->id));
	json_set(j, "manager", json_string(layer->manager->name));
	json_set(j, "language", json_string(layer->manager->language));
	json_set(j, "packages", encode_texts(layer->packages));
	json_set(j, "lock_digest", json_sprintf("sha256:%s", layer->digest));
	json_set(j, "bytes", json_integer((json_int_t)layer->image->bytes));
	json_set(j, "users", json_integer((json_int_t)layer_users(all, layer)));
	json_set(j, "created_at", encode_moment(layer->created_ms));
	json_set(j, "used_at", encode_moment(layer->used_ms));
	if (whole)
		json_set(j, "lock", json_text(layer->lock, strlen(layer->lock)));
	return j;
}

static const char *const status_words[] = {"used", "unused", NULL};
const struct fields v1_layer_query = QUERY_PAGE_FIELDS(status_words);

void v1_layer_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct layers *all = installs_layers(r->parts.installs);
	const char *tenant = args->principal->tenant;
	struct query_page page = {0};
	const struct layer *layer;
	struct error err = {0};
	size_t count = 0, i;

	if (query_page(req, args->query, &page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	while (layers_at(all, tenant, count))
		count++;
	i = query_page_begin(&page);
	while (!query_page_is_done(&page) && (layer = layers_at(all, tenant, i++)))
		if (query_page_wants(&page, status_words[layer_users(all, layer) ? 0 : 1]))
			query_page_add(&page, view_layer(all, layer, false));
	reply_json(req, HTTP_OK, query_page_object(&page, "layers", count));
}

static struct layer *find_layer(struct router *r, struct http_request *req,
                                const struct route_args *args)
{
	struct layer *layer =
		layers_by_id(installs_layers(r->parts.installs), args->principal->tenant, args->id);
	struct error err = {0};

	if (layer)
		return layer;
	(void)error_set(&err, ERR_NOT_FOUND, 0, "no layer of packages has this id");
	reply_error(req, &err);
	return NULL;
}

void v1_layer_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct layer *layer = find_layer(r, req, args);

	if (layer)
		reply_json(req, HTTP_OK,
		           view_layer(installs_layers(r->parts.installs), layer, true));
}

void v1_layer_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct layer *layer = find_layer(r, req, args);
	struct error err = {0};

	if (!layer)
		return;
	if (layers_remove(installs_layers(r->parts.installs), layer, &err) < 0)
		reply_error(req, &err);
	else
		reply_nothing(req, HTTP_NO_CONTENT);
}

struct layer_body {
	char *language, *manager, *template_id, *lock, *run;
	char **packages;
	bool stream;
};

/* clang-format off */
const struct fields v1_layer_fields = {
	.name = "PackagesRequest",
	.description = "Packages to install ahead: what an execution, session or template with the same packages then finds.",
	.rows = (const struct field[]){
		{"language", FIELD_STRING, AT(struct layer_body, language), .min = 1, .fallback = "\"python\"", .description = "Its package manager is used."},
		{"manager", FIELD_STRING, AT(struct layer_body, manager), .min = 1, .description = "Another package manager than that of the language."},
		{"packages", FIELD_STRINGS, AT(struct layer_body, packages), .schema = "{\"maxItems\": 256}", .description = "Names, like `numpy` or `numpy==2.1`."},
		{"lock", FIELD_STRING, AT(struct layer_body, lock), .min = 1, .max = WANTED_LOCK_MAX, .description = "Instead of packages: the text of a lock file (requirements.txt with hashes, package-lock.json, Cargo.toml and Cargo.lock, go.mod and go.sum, pom.xml, packages.lock.json), or what a layer shows as its lock. Of several files, each follows a line `==> NAME <==`."},
		{"run", FIELD_STRING, AT(struct layer_body, run), .min = 1, .max = 65536, .description = "Shell script to run after that in the same box. What it writes to the directory $LAYER is in /opt/millibox/packages/run."},
		{"template_id", FIELD_STRING, AT(struct layer_body, template_id), .min = 1, .description = "For the root of this template; default: the host's."},
		{"stream", FIELD_BOOL, AT(struct layer_body, stream), .schema = "{\"default\": false}", .description = "Progress as events, then `end` with the layer."},
		FIELDS_END,
	},
};
/* clang-format on */

struct layer_call {
	struct router *r;
	enum event_form form;
	struct template *template; /* a reference; NULL: none */
};

static void drop_call(void *ctx)
{
	cleanup_free struct layer_call *call = ctx;

	template_unref(call->template);
}

static void on_layer(void *ctx, struct http_request *req, struct layer *layer,
                     struct install_stream *stream)
{
	struct layer_call *call = ctx;
	json_t *view = view_layer(installs_layers(call->r->parts.installs), layer, true);

	if (call->form == EVENT_FORM_NONE)
		reply_json(req, HTTP_CREATED, view);
	else
		install_stream_end(stream, view);
	drop_call(call);
}

void v1_layer_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct layer_body body = {0};
	struct layer_call *call = NEW(struct layer_call);
	struct op_install how = {.ctx = call, .then = on_layer, .drop = drop_call};
	struct install_request request = {.tenant = args->principal->tenant,
	                                  .key_id = args->principal->key_id,
	                                  .request_id = http_request_id(req)};
	struct error err = {0};
	size_t len;
	const char *text = http_body(req, &len);
	int r_decoded = fields_decode_text(&v1_layer_fields, text, len, NULL, &body, &err);

	call->r = r;
	if (r_decoded == 0 && body.template_id)
		call->template =
			templates_get(r->parts.templates, request.tenant, body.template_id, &err);
	if (r_decoded == 0 && !error_is_set(&err) && !body.lock && !body.run &&
	    (!body.packages || !body.packages[0]))
		(void)error_field(&err, "packages", "is missing");
	if (error_is_set(&err)) {
		reply_error(req, &err);
		drop_call(call);
	} else {
		call->form = how.form = event_form_choose(http_header(req, "Accept"), body.stream);
		request.language = body.language;
		request.manager = body.manager;
		request.packages = body.packages;
		request.lock = body.lock;
		request.run = body.run;
		request.template = call->template;
		op_install(r, req, &request, &how);
	}
	fields_done(&v1_layer_fields, &body);
}
