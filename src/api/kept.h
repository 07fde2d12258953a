/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: answers about sessions that are given when what they say is on the disk. All take @body. A
 * client that leaves meanwhile undoes nothing.
 */

#include <jansson.h>

struct http_request;
struct session;
struct session_service;

/** kept_session_made - @sessions: from which it is taken again where it cannot be written; NULL: it
 * was there before. */
void kept_session_made(struct http_request *req, struct session *session, int status, json_t *body,
                       struct session_service *sessions);
/** kept_session - it was changed. */
void kept_session(struct http_request *req, struct session *session, json_t *body);
/** kept_session_deleted - deletes it; @session is invalid afterwards. */
void kept_session_deleted(struct http_request *req, struct session *session, json_t *body);
