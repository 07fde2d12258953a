/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a response that waits until its change is persisted. A client that leaves does not undo the
 * change.
 */

#include "base/error.h"
#include "core/identity/identity.h"
#include <jansson.h>

struct durable_reply;
struct http_request;
struct run_record;
struct session;
struct session_service;

struct durable_reply *durable_reply_new(struct http_request *req, int status);
/** durable_reply_done - the callback for when the change is persisted. */
struct identity_done durable_reply_done(struct durable_reply *reply);
/** durable_reply_set_body - takes @body. */
void durable_reply_set_body(struct durable_reply *reply, json_t *body);
/**
 * durable_reply_started - @r: of the function that got durable_reply_done. 0: it calls back; 1:
 * done, no store; -1: refused with *err.
 */
void durable_reply_started(struct durable_reply *reply, int r, const struct error *err);

/* All take @body. */

/** durable_reply_ended - @record was ended by the request; if it goes on, the reply is at once. */
void durable_reply_ended(struct http_request *req, struct run_record *record, int status,
                         json_t *body);

/** durable_reply_session - @session was changed; NULL body: none. */
void durable_reply_session(struct http_request *req, struct session *session, int status,
                           json_t *body);
/** durable_reply_session_created - deletes it if it cannot be persisted. */
void durable_reply_session_created(struct http_request *req, struct session *session, int status,
                                   json_t *body, struct session_service *sessions);
/** durable_reply_session_delete - @session is invalid afterwards. */
void durable_reply_session_delete(struct http_request *req, struct session *session, json_t *body);
