/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/encode_language.h"
#include "api/json/fields.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "core/language/runners.h"
#include "core/run/run_service.h"
#include "core/run/versions.h"
#include "core/template/templates.h"
#include "http/status.h"

struct language_query {
	const char *template_id;
};

const struct fields v1_language_query = {
	.rows =
		(const struct field[]){
			{"template_id", FIELD_STRING, AT(struct language_query, template_id),
                         .description =
                                 "Languages of boxes of this template. Default: the host's root."},
			FIELDS_END,
		},
};

/* A request that waits for the versions. */
struct waiting {
	struct pending pending;
	struct versions_wait *wait;
	struct router *router;
	struct template *template; /* a reference; NULL: the host */
};

static void answer(struct router *r, struct http_request *req, const struct template *t)
{
	const struct versions *versions = run_service_versions(r->runs);
	json_t *j = json_object(), *list = json_array();
	const struct runner *runner;

	for (size_t i = 0; (runner = runners_at(r->parts.runners, i)); i++)
		json_append(list, encode_language(
					  runner, t,
					  t && t->programs ? NULL : versions_of(versions, runner)));
	json_set(j, "languages", list);
	json_set(j, "total", json_integer((json_int_t)json_array_size(list)));
	reply_json(req, HTTP_OK, j);
}

static void waiting_free(struct waiting *w)
{
	template_unref(w->template);
	free(w);
}

static void on_left(struct pending *p)
{
	struct waiting *w =
		(struct waiting *)(void *)((char *)p - offsetof(struct waiting, pending));

	versions_cancel(w->wait);
	waiting_free(w);
}

static void on_known(void *ctx)
{
	struct waiting *w = ctx;
	struct http_request *req = pending_resume(&w->pending);

	if (req)
		answer(w->router, req, w->template);
	waiting_free(w);
}

/* NULL with *err: @id names none. */
static int find_template(const struct router *r, const struct principal *who, const char *id,
                         struct template **ret_template, struct error *err)
{
	if (!id)
		return 0;
	*ret_template = templates_find(r->parts.templates, who->tenant, id);
	return *ret_template ? 0
	                     : error_set(err, ERR_TEMPLATE_NOT_FOUND, 0, "no template has this id");
}

void v1_language_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct language_query query = {0};
	struct template *t = NULL;
	struct versions_wait *wait;
	struct waiting *w;
	struct error err = {0};

	if (query_decode(req, args->query, &query, &err) < 0 ||
	    find_template(r, args->principal, query.template_id, &t, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	w = NEW(struct waiting);
	wait = versions_want(run_service_versions(r->runs), on_known, w);
	if (!wait) {
		free(w);
		answer(r, req, t);
		return;
	}
	w->router = r;
	w->wait = wait;
	w->template = template_ref(t);
	pending_wait(&w->pending, req, on_left);
}
