/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: JSON responses, and errors in the envelope of the request's dialect. */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include <jansson.h>
#include <stdbool.h>

struct http_header;
struct http_request;

/** reply_error_object - the common error envelope. Internal errors may name paths of the host: the
 * caller is referred to the log. Return: owned. */
json_t *reply_error_object(const struct error *err, const char *request_id) attr_must_check;

#define REPLY_CTX_LEN 96
const char *reply_log_ctx(const struct http_request *req, char ret_ctx[REPLY_CTX_LEN]);
#define reply_log(req, level, ...)                                                                 \
	do {                                                                                       \
		char reply_ctx_[REPLY_CTX_LEN];                                                    \
		if (log_is_on(level))                                                              \
			log_write(level, reply_log_ctx(req, reply_ctx_), __VA_ARGS__);             \
	} while (0)
/** reply_log_error - log an error that the caller is not shown. */
void reply_log_error(const struct http_request *req, const struct error *err);

/** reply_text - JSON text, which is taken out of @text. */
void reply_text(struct http_request *req, int status, struct buf *text);
/** reply_json - @body is released. */
void reply_json(struct http_request *req, int status, json_t *body);
/** reply_error - in the dialect's envelope; internal errors are logged, too. */
void reply_error(struct http_request *req, const struct error *err);
/** reply_error_retry - as reply_error; 429 and 503 get Retry-After. */
void reply_error_retry(struct http_request *req, const struct error *err, unsigned seconds);
/** reply_error_as - with another status. */
void reply_error_as(struct http_request *req, const struct error *err, int status);
/** reply_unauthenticated - 401 with WWW-Authenticate. */
void reply_unauthenticated(struct http_request *req, const struct error *err);
/** reply_not_allowed - 405; @allow is the list of methods. */
void reply_not_allowed(struct http_request *req, const struct error *err, const char *allow);
/** reply_error_header - as reply_error, with one more header. */
void reply_error_header(struct http_request *req, const struct error *err,
                        const struct http_header *header);
/** reply_nothing - without a body, as 204. */
void reply_nothing(struct http_request *req, int status);
