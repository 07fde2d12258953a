/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/encode_language.h"
#include "api/json/fields.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/op/language_list.h"
#include "api/reply.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/run/language_check.h"
#include "core/run/run_service.h"
#include "core/template/templates.h"
#include "core/template/toolchains.h"
#include "driver/driver.h"
#include "http/status.h"

struct list_query {
	const char *template_id;
	const char *engine;
	const char *check;
};

#define CHECK_NONE "none"
#define CHECK_ALL  "all"
static const char *const checks[] = {CHECK_NONE, "unknown", CHECK_ALL, NULL};

/* clang-format off */
static const struct field query_rows[] = {
	{"template_id", FIELD_STRING, AT(struct list_query, template_id), .description = "Languages of boxes of this template. Default: the host's root."},
	{"engine", FIELD_STRING, AT(struct list_query, engine), .description = "Languages of boxes of this engine. Default: the default engine."},
	{"check", FIELD_WORD, AT(struct list_query, check), .words = checks, .description = "Of which languages a program is run in a box first: of those that are not known to work or to fail, of none, or again of all, which needs scope `admin`. Default: unknown."},
	FIELDS_END,
};
/* clang-format on */
const struct fields v1_language_query = {.rows = query_rows};

/* The default is not named. */
static int find_engine(const struct router *r, const char *name, const char **ret_engine,
                       struct error *err)
{
	const struct driver *main = run_service_driver(r->runs), *d = driver_find(main, name);

	if (!d || !name[0])
		return error_field(err, "engine",
		                   "there is no engine '%.32s'; GET /api/v1/runtimes lists them",
		                   name);
	*ret_engine = d == main ? NULL : d->name;
	return 0;
}

static int decode_query(const struct router *r, const struct http_request *req,
                        const struct route_args *args, struct language_query *ret_query,
                        struct error *err)
{
	struct list_query query = {0};

	if (query_decode(req, args->query, &query, err) < 0)
		return -1;
	*ret_query = (struct language_query){
		.again = query.check && str_equal(query.check, CHECK_ALL),
		.within_us =
			query.check && str_equal(query.check, CHECK_NONE) ? 0 : LANGUAGE_LIST_US,
	};
	if (ret_query->again && !scope_allows(args->principal->scopes, SCOPE_ADMIN))
		return error_set(err, ERR_NO_SCOPE, 0, "check=%s needs scope %s", CHECK_ALL,
		                 scope_name(SCOPE_ADMIN));
	if (query.engine && find_engine(r, query.engine, &ret_query->engine, err) < 0)
		return -1;
	if (!query.template_id)
		return 0;
	ret_query->template =
		templates_find(r->parts.templates, args->principal->tenant, query.template_id);
	return ret_query->template
	               ? 0
	               : error_set(err, ERR_TEMPLATE_NOT_FOUND, 0, "no template has this id");
}

/* The template may be gone since the request came. */
static void answer(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct toolchains *toolchains = run_service_toolchains(r->runs);
	struct language_query query;
	json_t *j, *list;
	const struct runner *runner;
	struct error err = {0};

	if (decode_query(r, req, args, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	toolchains = toolchains_find(toolchains, query.engine ? query.engine : "");
	list = json_array();
	for (size_t i = 0; (runner = runners_at(r->parts.runners, i)); i++)
		json_append(list, encode_language(toolchains, query.template, runner));
	j = json_object();
	json_set(j, "languages", list);
	json_set(j, "total", json_integer((json_int_t)json_array_size(list)));
	reply_json(req, HTTP_OK, j);
}

void v1_language_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct language_query query;
	struct error err = {0};

	if (decode_query(r, req, args, &query, &err) < 0)
		reply_error(req, &err);
	else
		op_language_then(r, req, args, &query, answer);
}
