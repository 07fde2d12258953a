/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/durable_reply.h"
#include "api/json/decode.h"
#include "api/json/dependencies.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/lookup.h"
#include "api/op/install.h"
#include "api/op/listing.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/language/manager.h"
#include "core/session/session.h"
#include "core/template/layers.h"
#include "core/template/templates.h"
#include "http/status.h"
#include <string.h>

/* NULL: the request was answered. */
static struct session *find_session(struct router *r, struct http_request *req,
                                    const struct route_args *args)
{
	struct error err = {0};
	struct session *session = lookup_session(r, args, &err);

	if (!session)
		reply_error(req, &err);
	return session;
}

/* @found: taken. Return: JSON for the session, owned. */
static char *dependencies_text(const struct session_request *request, json_t *found)
{
	size_t len;

	if (request->package_index_url)
		json_set(found, "python_package_index_url",
		         encode_text(request->package_index_url));
	return json_write(found, &len);
}

/* *ret_missing: a package that the box must have, and has not. Return: as dependencies_text. */
static char *resolve_packages(const struct router *r, const struct session_request *request,
                              struct error *ret_missing)
{
	cleanup_json json_t *wanted = json_loads(request->dependencies, 0, NULL);

	return dependencies_text(request,
	                         dependencies_resolve(r->parts.packages, wanted, ret_missing));
}

/* With what the request does not get. */
static json_t *view_created(struct http_request *req, const struct session_request *request,
                            const struct session *session)
{
	json_t *view = encode_session(session);
	struct session_info info = {0};

	session_info(session, &info);
	encode_cuts_tell(info.cuts, view, reply_warnings(req));
	if (request->mode_soft && info.mode == SESSION_EPHEMERAL)
		json_append(reply_warnings(req),
		            json_string("mode: the policy allows ephemeral only: files do not stay "
		                        "from one execution to the next"));
	return view;
}

/* A session that waits for its packages. The request owns what @request borrows. */
struct create_call {
	struct router *r;
	struct session_request request;
	struct template *template; /* a reference; NULL: as the request says */
	char *layer_lock;          /* owned: what was installed; NULL: nothing */
	struct error failure;      /* of the installation of its dependencies */
};

static void drop_create(void *ctx)
{
	cleanup_free struct create_call *call = ctx;

	free(call->layer_lock);
	session_request_done(&call->request);
	template_unref(call->template);
}

/* What became of its dependencies. *ret_missing: why they are not there. Return: as
 * dependencies_text. */
static char *settle_dependencies(const struct create_call *call, struct error *ret_missing)
{
	const struct session_request *request = &call->request;
	cleanup_json json_t *wanted = json_loads(request->dependencies, 0, NULL);

	if (call->layer_lock)
		return dependencies_text(
			request, dependencies_installed(wanted, call->layer_lock, MANAGER_PATH));
	if (!error_is_set(&call->failure))
		return resolve_packages(call->r, request, ret_missing);
	*ret_missing = call->failure;
	return dependencies_text(request, dependencies_failed(wanted, call->failure.msg));
}

/* Clients expect the installation to begin with the session: how it ended, GET tells. */
static void show_installing(json_t *view)
{
	json_set(view, "dependency_install_status", json_string("installing"));
	json_set(view, "dependency_install_error", json_null());
	json_set(view, "dependency_install_completed_at", json_null());
	json_set(view, "installed_dependencies", json_array());
}

static void create_session(struct create_call *call, struct http_request *req)
{
	struct router *r = call->r;
	const struct session_request *request = &call->request;
	struct session *session = NULL;
	struct error err = {0}, missing = {0};
	cleanup_free char *resolved = NULL;
	bool reused = false;
	json_t *view;

	call->request.template = call->template;
	if (session_create(r->parts.sessions, request, &session, &reused, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	if (request->dependencies) {
		resolved = settle_dependencies(call, &missing);
		session_set_dependencies(session, resolved);
		if (request->lacks_dependencies)
			error_clear(&missing);
	}
	view = view_created(req, request, session);
	/* An ephemeral session is ready at once, and nothing is installed; clients expect both to
	 * begin. A missing package fails the session, not the request. */
	if (!reused)
		json_set(view, "status", json_string(session_state_name(SESSION_CREATING)));
	if (request->dependencies)
		show_installing(view);
	if (error_is_set(&missing))
		session_fail(session, &missing);
	if (reused)
		durable_reply_session(req, session, HTTP_OK, view);
	else
		durable_reply_session_created(req, session, HTTP_CREATED, view, r->parts.sessions);
}

static void on_layer(void *ctx, struct http_request *req, struct layer *layer,
                     struct install_stream *stream attr_unused)
{
	struct create_call *call = ctx;
	struct template *base = call->template;

	call->template = op_template_with(call->r, call->request.tenant, base,
	                                  call->request.packages, layer);
	template_unref(base);
	call->layer_lock = xstrdup(layer->lock);
	create_session(call, req);
	drop_create(call);
}

/* Of dependencies: the session fails, not the request. */
static bool on_layer_failed(void *ctx, struct http_request *req, const struct error *err)
{
	struct create_call *call = ctx;

	if (!call->request.dependencies)
		return false;
	call->failure = *err;
	template_unref(TAKE_PTR(call->template));
	create_session(call, req);
	return true;
}

/* Those that the box lacks are installed as packages are. */
static void take_dependencies(struct create_call *call)
{
	cleanup_json json_t *wanted = json_loads(call->request.dependencies, 0, NULL);
	const char *id = call->request.template_id ? call->request.template_id : TEMPLATE_DEFAULT;
	const struct template *t =
		templates_find(call->r->parts.templates, call->request.tenant, id);
	cleanup_json json_t *found = NULL;
	struct error missing = {0};

	found = dependencies_resolve(call->r->parts.packages, wanted, &missing);
	if (error_is_set(&missing) || op_hides_host(call->r, "python", t))
		call->request.packages = dependencies_list(wanted);
}

/* Return: as op_packages_lacking; *ret_install is borrowed from @call. */
static int plan_packages(struct create_call *call, struct install_request *ret_install,
                         struct error *err)
{
	const struct session_request *request = &call->request;
	const struct template *t;
	struct op_packages wanted = {0};
	int lacking;

	if (!request->packages && !request->lock && request->dependencies &&
	    installs_can(call->r->parts.installs, "python"))
		take_dependencies(call);
	if (!request->packages && !request->lock)
		return 0;
	wanted.packages = request->packages;
	call->template =
		templates_get(call->r->parts.templates, request->tenant, request->template_id, err);
	t = call->template;
	if (!t)
		return -1;
	wanted.lock = request->lock;
	wanted.template = t;
	wanted.language = request->language  ? request->language
	                  : t->spec.language ? t->spec.language
	                                     : "python";
	lacking = op_packages_lacking(call->r, &wanted, err);
	if (lacking <= 0)
		return lacking;
	*ret_install = (struct install_request){
		.tenant = request->tenant,
		.key_id = request->key_id,
		.request_id = request->request_id,
		.policy = request->policy,
		.language = wanted.language,
		.run = op_packages_join(call->r, &wanted, &call->request.packages),
		.lock = request->lock,
		.template = t,
		.engine = request->engine,
		.min_isolation = request->min_isolation};
	ret_install->packages = request->packages;
	return lacking;
}

void v1_session_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct create_call *call = NEW(struct create_call);
	const struct op_install how = {
		.ctx = call, .then = on_layer, .failed = on_layer_failed, .drop = drop_create};
	struct install_request install = {0};
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);
	int lacking;

	call->r = r;
	call->request.tenant = args->principal->tenant;
	call->request.request_id = http_request_id(req);
	call->request.key_id = args->principal->key_id;
	if (decode_session(body, len, args->warnings, &call->request, &err) < 0) {
		reply_invalid(req, &err, "body");
		drop_create(call);
		return;
	}
	lacking = plan_packages(call, &install, &err);
	if (lacking > 0) {
		op_install(r, req, &install, &how);
		return;
	}
	if (lacking < 0)
		reply_error(req, &err);
	else
		create_session(call, req);
	drop_create(call);
}

static const char *const status_words[] = {
	"creating", "ready", "running", "paused", "terminated", "failed", NULL,
};
static_assert(ARRAY_SIZE(status_words) == SESSION_STATE_COUNT + 1, "every state has its word");

struct session_query {
	struct query_page page;
	const char *template_id; /* NULL: all */
};

/* clang-format off */
static const struct field list_rows[] = {
	QUERY_STATUS_ROW(status_words),
	{"template_id", FIELD_STRING, AT(struct session_query, template_id), .description = "Only sessions of this template, without those that ended before the daemon started."},
	QUERY_PAGE_ROWS,
	FIELDS_END,
};
/* clang-format on */
const struct fields v1_session_query = {.rows = list_rows};

static void list_from_memory(struct session_service *sessions, const char *tenant,
                             struct query_page *page)
{
	size_t i = query_page_begin(page);
	const struct session *session;

	while (!query_page_is_done(page) && (session = session_at(sessions, tenant, i++))) {
		struct session_info info = {0};

		session_info(session, &info);
		if (query_page_wants(page, session_state_name(info.state)))
			query_page_add(page, encode_session(session));
	}
}

static bool is_wanted(const struct session_query *query, const struct session_info *info)
{
	const char *status = query->page.status;

	if (query->template_id && !str_equal(query->template_id, info->template_id))
		return false;
	return !status || str_equal(status, encode_session_status(info)) ||
	       str_equal(status, session_state_name(info->state));
}

/* What the store has no index for. Started sessions are all in memory. */
static void list_filtered(struct session_service *sessions, const char *tenant,
                          struct session_query *query)
{
	struct query_page *page = &query->page;
	const struct session *session = session_at(sessions, tenant, 0);

	for (; session; session = session_older(session)) {
		struct session_info info = {0};

		session_info(session, &info);
		if (!is_wanted(query, &info))
			continue;
		if (page->matched >= page->offset && json_array_size(page->items) < page->limit)
			query_page_add(page, encode_session(session));
		page->matched++;
	}
}

void v1_session_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *tenant = args->principal->tenant;
	struct session_query query = {0};
	struct query_page *page = &query.page;
	size_t count = session_count(r->parts.sessions, tenant);
	struct error err = {0};

	if (query_page(req, args->query, page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	if (query.template_id ||
	    (page->status && str_equal(page->status, session_state_name(SESSION_RUNNING)))) {
		list_filtered(r->parts.sessions, tenant, &query);
		count = page->matched;
	} else if (listing_sessions(r, req, tenant, page)) {
		return;
	} else {
		list_from_memory(r->parts.sessions, tenant, page);
	}
	reply_json(req, HTTP_OK, query_page_object(page, "sessions", count));
}

void v1_session_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find_session(r, req, args);

	if (session)
		reply_json(req, HTTP_OK, encode_session(session));
}

void v1_session_stats(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find_session(r, req, args);

	if (session)
		reply_json(req, HTTP_OK, encode_session_stats(session));
}

void v1_session_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find_session(r, req, args);
	json_t *body;

	if (!session)
		return;
	body = json_object();
	json_set(body, "message", json_string("The session is deleted."));
	json_set(body, "session_id", json_string(args->id));
	json_set(body, "id", json_string(args->id));
	json_set(body, "status", json_string(session_state_name(SESSION_TERMINATED)));
	durable_reply_session_delete(req, session, body);
}

void v1_session_terminate(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find_session(r, req, args);

	if (!session)
		return;
	session_terminate(session, "terminated by its owner");
	durable_reply_session(req, session, HTTP_OK, encode_session(session));
}

static void apply_action(struct router *r, struct http_request *req, const struct route_args *args,
                         int (*action)(struct session *session, struct error *err))
{
	struct session *session = find_session(r, req, args);
	struct error err = {0};

	if (!session)
		return;
	if (action(session, &err) < 0)
		reply_error(req, &err);
	else
		durable_reply_session(req, session, HTTP_OK, encode_session(session));
}

void v1_session_pause(struct router *r, struct http_request *req, const struct route_args *args)
{
	apply_action(r, req, args, session_pause);
}

void v1_session_resume(struct router *r, struct http_request *req, const struct route_args *args)
{
	apply_action(r, req, args, session_resume);
}

void v1_session_interrupt(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find_session(r, req, args);
	struct error err = {0};

	if (!session)
		return;
	/* Persists nothing. */
	if (session_interrupt(session, &err) < 0)
		reply_error(req, &err);
	else
		reply_json(req, HTTP_OK, encode_session(session));
}

void v1_session_keepalive(struct router *r, struct http_request *req, const struct route_args *args)
{
	apply_action(r, req, args, session_keepalive);
}
