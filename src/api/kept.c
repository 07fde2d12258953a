/* SPDX-License-Identifier: Apache-2.0 */
#include "api/kept.h"

#include "api/durable_reply.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/session/session.h"

#define HTTP_OK 200

/* A session that was made and could not be written down. */
struct unkept {
	struct session_service *sessions;
	char tenant[TENANT_NAME_MAX + 1];
	char id[SESSION_ID_MAX + 1];
};

static void undo(void *ctx)
{
	const struct unkept *unkept = ctx;
	struct session *session = session_find(unkept->sessions, unkept->tenant, unkept->id);

	if (session)
		session_delete(session);
}

void kept_session_made(struct http_request *req, struct session *session, int status, json_t *body,
                       struct session_service *sessions)
{
	struct change *change = change_new(req, status);
	struct identity_done done = change_done(change);
	struct session_info info = {0};
	struct error err = {0};

	change_set_body(change, body);
	if (sessions) {
		struct unkept *unkept = NEW(struct unkept);

		session_info(session, &info);
		unkept->sessions = sessions;
		/* They are as short as their owners'. */
		(void)!str_copy(unkept->tenant, sizeof(unkept->tenant), info.tenant);
		(void)!str_copy(unkept->id, sizeof(unkept->id), info.id);
		change_set_undo(change, undo, unkept);
	}
	change_begun(change, session_when_kept(session, done.fn, done.ctx, &err), &err);
}

void kept_session(struct http_request *req, struct session *session, json_t *body)
{
	kept_session_made(req, session, HTTP_OK, body, NULL);
}

void kept_session_deleted(struct http_request *req, struct session *session, json_t *body)
{
	struct change *change = change_new(req, HTTP_OK);
	struct identity_done done = change_done(change);
	struct error err = {0};

	change_set_body(change, body);
	change_begun(change, session_delete_kept(session, done.fn, done.ctx, &err), &err);
}
