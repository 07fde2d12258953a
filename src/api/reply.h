/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: JSON responses, and errors in the dialect's envelope. */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include <jansson.h>
#include <stdbool.h>

struct http_header;
struct http_request;

/**
 * reply_error_object - the common error envelope. Internal errors may name paths of the host:
 * refers to the log. Return: owned.
 */
json_t *reply_error_object(const struct error *err, const char *request_id) attr_must_check;
/** reply_error_shared - with the names of the control plane's later versions besides. Owned. */
json_t *reply_error_shared(const struct error *err, const char *request_id) attr_must_check;
/** reply_error_of - for @req: shared on paths that the control plane has too. Owned. */
json_t *reply_error_of(const struct http_request *req, const struct error *err) attr_must_check;

#define REPLY_CTX_LEN 96
const char *reply_log_ctx(const struct http_request *req, char ret_ctx[REPLY_CTX_LEN]);
#define reply_log(req, level, ...)                                                                 \
	do {                                                                                       \
		char reply_ctx_[REPLY_CTX_LEN];                                                    \
		if (log_is_on(level))                                                              \
			log_write(level, reply_log_ctx(req, reply_ctx_), __VA_ARGS__);             \
	} while (0)
void reply_log_error(const struct http_request *req, const struct error *err);

/**
 * reply_warnings - what a request asked for and does not get, for people. reply_text and reply_json
 * add it to an object as `warnings`. Return: an array, borrowed from the request.
 */
json_t *reply_warnings(struct http_request *req);
/**
 * reply_add_warnings - to the end of a JSON object in @text, if there are any. Return: 0 or -1: no
 * room; @text is as before.
 */
int reply_add_warnings(const struct http_request *req, struct buf *text);

/** reply_text - JSON text, taken out of @text. */
void reply_text(struct http_request *req, int status, struct buf *text);
/** reply_json - @body is released. */
void reply_json(struct http_request *req, int status, json_t *body);
/**
 * reply_error - in the dialect's envelope; logs internal errors. Errors that error_retry was called
 * for have Retry-After and "Should-Retry: true"; other 429 and 503 have "Should-Retry: false".
 */
void reply_error(struct http_request *req, const struct error *err);
/** reply_add_retry - these headers, to a response of @status. */
void reply_add_retry(struct http_request *req, const struct error *err, int status);
/** reply_error_body - @body: reply_error_object, with more members; released. */
void reply_error_body(struct http_request *req, const struct error *err, json_t *body);
void reply_error_as(struct http_request *req, const struct error *err, int status);
/** reply_upgrade_error - of http_ws_accept: tells a plain request how to upgrade. */
void reply_upgrade_error(struct http_request *req, const struct error *err);
/**
 * reply_invalid - a malformed request: 422, and `detail` lists what is wrong in @where ("body",
 * "query"), as later versions of the control plane do. Other errors: as reply_error.
 */
void reply_invalid(struct http_request *req, const struct error *err, const char *where);
/** reply_unauthenticated - 401 with WWW-Authenticate. */
void reply_unauthenticated(struct http_request *req, const struct error *err);
/** reply_not_allowed - 405; @allow lists the methods. */
void reply_not_allowed(struct http_request *req, const struct error *err, const char *allow);
void reply_error_header(struct http_request *req, const struct error *err,
                        const struct http_header *header);
void reply_nothing(struct http_request *req, int status);
