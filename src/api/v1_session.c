/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include "api/decode_session.h"
#include "api/json.h"
#include "api/query.h"
#include "api/reply.h"
#include "api/view.h"
#include "core/session.h"

#define HTTP_OK      200
#define HTTP_CREATED 201

/* NULL: answered. */
static struct session *find(struct router *r, struct http_request *req,
                            const struct route_args *args)
{
	struct error err = {0};
	struct session *session = find_session(r, args, &err);

	if (!session)
		reply_error(req, &err);
	return session;
}

void v1_session_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_session_request struct session_request request = {0};
	struct session *session = NULL;
	struct error err = {0};
	bool reused = false;
	size_t len;
	const char *body = http_body(req, &len);

	request.tenant = args->principal->tenant;
	request.request_id = http_request_id(req);
	if (decode_session(body, len, &request, &err) < 0 ||
	    session_create(r->parts.sessions, &request, &session, &reused, &err) < 0)
		reply_error(req, &err);
	else
		reply_json(req, reused ? HTTP_OK : HTTP_CREATED, view_session(session));
}

static void list(struct session_service *sessions, const char *tenant, struct query_page *page)
{
	size_t i = query_page_begin(page);
	const struct session *session;

	while (!query_page_is_done(page) && (session = session_at(sessions, tenant, i++))) {
		struct session_info info = {0};

		session_info(session, &info);
		if (query_page_wants(page, session_state_name(info.state)))
			query_page_add(page, view_session(session));
	}
}

void v1_session_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *tenant = args->principal->tenant;
	const char *words[SESSION_STATE_COUNT];
	struct query_page page;
	struct error err = {0};

	for (int state = 0; state < SESSION_STATE_COUNT; state++)
		words[state] = session_state_name((enum session_state)state);
	if (query_page(req, words, ARRAY_SIZE(words), &page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	list(r->parts.sessions, tenant, &page);
	reply_json(req, HTTP_OK,
	           query_page_object(&page, "sessions", session_count(r->parts.sessions, tenant)));
}

void v1_session_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find(r, req, args);

	if (session)
		reply_json(req, HTTP_OK, view_session(session));
}

void v1_session_stats(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find(r, req, args);

	if (session)
		reply_json(req, HTTP_OK, view_session_stats(session));
}

void v1_session_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find(r, req, args);
	json_t *body;

	if (!session)
		return;
	session_delete(session);
	body = json_object();
	json_set(body, "message", json_string("The session is deleted."));
	json_set(body, "session_id", json_string(args->id));
	reply_json(req, HTTP_OK, body);
}

void v1_session_terminate(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find(r, req, args);

	if (!session)
		return;
	session_terminate(session, "terminated by its owner");
	reply_json(req, HTTP_OK, view_session(session));
}

/* What the remaining ones have in common: something that may not be possible now. */
static void act(struct router *r, struct http_request *req, const struct route_args *args,
                int (*action)(struct session *session, struct error *err))
{
	struct session *session = find(r, req, args);
	struct error err = {0};

	if (!session)
		return;
	if (action(session, &err) < 0)
		reply_error(req, &err);
	else
		reply_json(req, HTTP_OK, view_session(session));
}

void v1_session_pause(struct router *r, struct http_request *req, const struct route_args *args)
{
	act(r, req, args, session_pause);
}

void v1_session_resume(struct router *r, struct http_request *req, const struct route_args *args)
{
	act(r, req, args, session_resume);
}

void v1_session_interrupt(struct router *r, struct http_request *req, const struct route_args *args)
{
	act(r, req, args, session_interrupt);
}

void v1_session_keepalive(struct router *r, struct http_request *req, const struct route_args *args)
{
	act(r, req, args, session_keepalive);
}
