/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/durable_reply.h"
#include "api/json/decode.h"
#include "api/json/dependencies.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/lookup.h"
#include "api/op/listing.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "core/session/session.h"
#include "http/status.h"

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

static int resolve_packages(const struct router *r, const struct session_request *request,
                            char **ret_text, struct error *err)
{
	cleanup_json json_t *wanted = json_loads(request->dependencies, 0, NULL);
	struct error missing = {0};
	json_t *found = dependencies_resolve(r->parts.packages, wanted, &missing);
	size_t len;

	if (error_is_set(&missing) && !request->lacks_dependencies) {
		json_decref(found);
		*err = missing;
		return -1;
	}
	*ret_text = json_write(found, &len);
	return 0;
}

/* With what the request does not get. */
static json_t *view_created(struct http_request *req, const struct session *session)
{
	json_t *view = encode_session(session);
	struct session_info info = {0};

	session_info(session, &info);
	encode_cuts_tell(info.cuts, view, reply_warnings(req));
	return view;
}

void v1_session_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_session_request struct session_request request = {0};
	struct session *session = NULL;
	struct error err = {0};
	cleanup_free char *resolved = NULL;
	bool reused = false;
	json_t *view;
	size_t len;
	const char *body = http_body(req, &len);

	request.tenant = args->principal->tenant;
	request.request_id = http_request_id(req);
	request.key_id = args->principal->key_id;
	if (decode_session(body, len, args->warnings, &request, &err) < 0) {
		reply_invalid(req, &err, "body");
		return;
	}
	if ((request.dependencies && resolve_packages(r, &request, &resolved, &err) < 0) ||
	    session_create(r->parts.sessions, &request, &session, &reused, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	if (resolved)
		session_set_dependencies(session, resolved);
	view = view_created(req, session);
	/* An ephemeral session is ready at once; clients expect "creating". */
	if (!reused)
		json_set(view, "status", json_string(session_state_name(SESSION_CREATING)));
	if (reused)
		durable_reply_session(req, session, HTTP_OK, view);
	else
		durable_reply_session_created(req, session, HTTP_CREATED, view, r->parts.sessions);
}

/* No installation is ever in progress. */
static int check_alive(const struct session_info *info, struct error *err)
{
	if (info->state != SESSION_TERMINATED && info->state != SESSION_FAILED)
		return 0;
	return error_set(err, ERR_CONFLICT, 0, "session %s is %s", info->id,
	                 session_state_name(info->state));
}

void v1_session_install(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_session_request struct session_request request = {0};
	cleanup_free char *resolved = NULL;
	struct session_info info = {0};
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);
	struct session *session = lookup_session(r, args, &err);

	if (session)
		session_info(session, &info);
	if (!session || check_alive(&info, &err) < 0 ||
	    decode_install(body, len, info.language, args->warnings, &request, &err) < 0 ||
	    resolve_packages(r, &request, &resolved, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	session_set_dependencies(session, resolved);
	durable_reply_session(req, session, HTTP_OK, encode_session(session));
}

static const char *const status_words[] = {
	"creating", "ready", "running", "paused", "terminated", "failed", NULL,
};
static_assert(ARRAY_SIZE(status_words) == SESSION_STATE_COUNT + 1, "every state has its word");
const struct fields v1_session_query = QUERY_PAGE_FIELDS(status_words);

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

void v1_session_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *tenant = args->principal->tenant;
	struct query_page page = {0};
	struct error err = {0};

	if (query_page(req, args->query, &page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	if (listing_sessions(r, req, tenant, &page))
		return;
	list_from_memory(r->parts.sessions, tenant, &page);
	reply_json(req, HTTP_OK,
	           query_page_object(&page, "sessions", session_count(r->parts.sessions, tenant)));
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
