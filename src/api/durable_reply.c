/* SPDX-License-Identifier: Apache-2.0 */
#include "api/durable_reply.h"

#include "api/json/json.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/run/run_record.h"
#include "core/session/session.h"
#include "http/status.h"
#include <errno.h>

struct durable_reply {
	struct pending pending;
	int status;
	json_t *body; /* owned; NULL: none */
	/* Deleted if it cannot be persisted. NULL: none. */
	struct session_service *sessions;
	char tenant[TENANT_NAME_MAX + 1];
	char id[SESSION_ID_MAX + 1];
};

struct durable_reply *durable_reply_new(struct http_request *req, int status)
{
	struct durable_reply *reply = NEW(struct durable_reply);

	reply->status = status;
	pending_wait(&reply->pending, req, NULL);
	return reply;
}

void durable_reply_set_body(struct durable_reply *reply, json_t *body)
{
	reply->body = body;
}

static void delete_created(const struct durable_reply *reply)
{
	struct session *session =
		reply->sessions ? session_find(reply->sessions, reply->tenant, reply->id) : NULL;

	if (session)
		session_delete(session);
}

static void on_done(void *ctx, const struct error *err)
{
	struct durable_reply *reply = ctx;
	struct http_request *req = pending_resume(&reply->pending);

	/* ECANCELED: the daemon stops. */
	if (err && err->sys != ECANCELED)
		delete_created(reply);
	if (req && err)
		reply_error(req, err);
	else if (req && reply->body)
		reply_json(req, reply->status, TAKE_PTR(reply->body));
	else if (req)
		reply_nothing(req, reply->status);
	json_decref(reply->body);
	free(reply);
}

void durable_reply_started(struct durable_reply *reply, int r, const struct error *err)
{
	if (r != 0)
		on_done(reply, r < 0 ? err : NULL);
}

struct identity_done durable_reply_done(struct durable_reply *reply)
{
	return (struct identity_done){on_done, reply};
}

static void on_settled(void *ctx)
{
	on_done(ctx, NULL);
}

void durable_reply_ended(struct http_request *req, struct run_record *record, int status,
                         json_t *body)
{
	struct durable_reply *reply = durable_reply_new(req, status);

	reply->body = body;
	if (!run_record_when_settled(record, on_settled, reply))
		on_done(reply, NULL);
}

static void wait_for_session(struct durable_reply *reply, struct session *session, json_t *body)
{
	struct error err = {0};

	reply->body = body;
	durable_reply_started(reply, session_when_kept(session, on_done, reply, &err), &err);
}

void durable_reply_session(struct http_request *req, struct session *session, int status,
                           json_t *body)
{
	wait_for_session(durable_reply_new(req, status), session, body);
}

void durable_reply_session_created(struct http_request *req, struct session *session, int status,
                                   json_t *body, struct session_service *sessions)
{
	struct durable_reply *reply = durable_reply_new(req, status);
	struct session_info info = {0};

	session_info(session, &info);
	reply->sessions = sessions;
	/* Both fit: the session's are no longer. */
	(void)!str_copy(reply->tenant, sizeof(reply->tenant), info.tenant);
	(void)!str_copy(reply->id, sizeof(reply->id), info.id);
	wait_for_session(reply, session, body);
}

void durable_reply_session_delete(struct http_request *req, struct session *session, json_t *body)
{
	struct durable_reply *reply = durable_reply_new(req, HTTP_OK);
	struct error err = {0};

	reply->body = body;
	durable_reply_started(reply, session_delete_kept(session, on_done, reply, &err), &err);
}
