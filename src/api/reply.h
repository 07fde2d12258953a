/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: core's results and errors as JSON, and JSON as answers. The result object is the same for
 * every dialect and every way of asking; what a host does not count is null.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include <jansson.h>
#include <stdbool.h>

struct http_header;
struct http_request;
struct outcome;
struct report;

/** reply_read_report - what the runner said, or nothing where that makes no sense. */
void reply_read_report(const struct outcome *outcome, struct report *ret_report);
/* What an execution of a session says beyond, or instead of, what a lone one says. Borrowed. */
struct reply_extra {
	const json_t *head; /* members before the output */
	const json_t *tail; /* members after it */
};

/**
 * reply_add_result - the one result object as text; @extra may be NULL. Return: 0 or -1: it does
 * not fit into @b, or into memory; @b then holds a part of it.
 */
int reply_add_result(struct buf *b, const struct outcome *outcome, const struct report *report,
                     const struct reply_extra *extra) attr_must_check;
/** reply_result_brief - the same without output, which is null, for listings. Return: owned. */
json_t *reply_result_brief(const struct outcome *outcome, const struct report *report,
                           const struct reply_extra *extra) attr_must_check;
/**
 * reply_error_object - what a caller learns of @err. Of failures of our own it is only told where
 * to look: their words name paths and parts of the host. Return: owned.
 */
json_t *reply_error_object(const struct error *err, const char *request_id) attr_must_check;
/** reply_is_internal - whether @err is to be logged, because its caller is not told. */
bool reply_is_internal(const struct error *err);

#define REPLY_CTX_LEN 96
/** reply_log_ctx - which request a line of the log is of. */
const char *reply_log_ctx(const struct http_request *req, char ret_ctx[REPLY_CTX_LEN]);
#define reply_log(req, level, ...)                                                                 \
	do {                                                                                       \
		char reply_ctx_[REPLY_CTX_LEN];                                                    \
		if (log_is_on(level))                                                              \
			log_write(level, reply_log_ctx(req, reply_ctx_), __VA_ARGS__);             \
	} while (0)
/** reply_log_error - the end of an error's chain, where the caller is not told. */
void reply_log_error(const struct http_request *req, const struct error *err);

/** reply_text - JSON that is text already; it is taken out of @text. */
void reply_text(struct http_request *req, int status, struct buf *text);
/** reply_json - @body is released. */
void reply_json(struct http_request *req, int status, json_t *body);
/** reply_error - the end of the chain: also logs what the caller is not told. */
void reply_error(struct http_request *req, const struct error *err);
/** reply_error_retry - as reply_error; 429 and 503 say when to come back. */
void reply_error_retry(struct http_request *req, const struct error *err, unsigned seconds);
/** reply_error_as - with the status that another dialect has for it. */
void reply_error_as(struct http_request *req, const struct error *err, int status);
/** reply_unauthenticated - 401, and what to send. */
void reply_unauthenticated(struct http_request *req, const struct error *err);
/** reply_not_allowed - 405; @allow is the list of methods. */
void reply_not_allowed(struct http_request *req, const struct error *err, const char *allow);
/** reply_error_header - as reply_error, with a header of its own. */
void reply_error_header(struct http_request *req, const struct error *err,
                        const struct http_header *header);
/** reply_nothing - no body, as 204 has none. */
void reply_nothing(struct http_request *req, int status);
