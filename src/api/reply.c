/* SPDX-License-Identifier: Apache-2.0 */
#include "api/reply.h"

#include "api/internal.h"
#include "api/json/json.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "http/server.h"
#include "http/status.h"
#include <string.h>

#define JSON_TYPE "application/json"

json_t *reply_error_object(const struct error *err, const char *request_id)
{
	json_t *j = json_object();
	char detail[sizeof(err->field) + sizeof(err->msg) + 2];

	if (error_is_internal(err))
		(void)snprintf(detail, sizeof(detail), "See the daemon's log.");
	else
		(void)snprintf(detail, sizeof(detail), "%s%s%s", err->field,
		               err->field[0] ? ": " : "", err->msg);
	json_set(j, "error_code", json_string(error_text(err->code)));
	json_set(j, "description", json_string(error_describe(err->code)));
	json_set(j, "error_detail", json_text(detail, strlen(detail)));
	json_set(j, "solution", json_string(error_solution(err->code)));
	json_set(j, "request_id", json_string(request_id));
	json_set(j, "retry_after", err->retry_s ? json_integer(err->retry_s) : json_null());
	json_set(j, "field",
	         err->field[0] ? json_text(err->field, strlen(err->field)) : json_null());
	return j;
}

json_t *reply_error_shared(const struct error *err, const char *request_id)
{
	json_t *j = reply_error_object(err, request_id);
	json_t *detail = json_object_get(j, "error_detail");

	json_set(j, "error", json_incref(json_object_get(j, "description")));
	json_set(j, "message", json_incref(detail));
	json_set(j, "detail", json_incref(detail));
	return j;
}

json_t *reply_error_of(const struct http_request *req, const struct error *err)
{
	const struct route *route = (const struct route *)http_tag(req, REQUEST_TAG_ROUTE);
	const char *id = http_request_id(req);

	return route && (route->upstream || route->shared) ? reply_error_shared(err, id)
	                                                   : reply_error_object(err, id);
}

json_t *reply_warnings(struct http_request *req)
{
	json_t *list = (json_t *)http_tag(req, REQUEST_TAG_WARNINGS);

	if (!list) {
		list = json_array();
		http_set_tag(req, REQUEST_TAG_WARNINGS, (uintptr_t)list);
	}
	return list;
}

/* Ends with a newline: a terminal shows its prompt below. Takes @text. */
static void send_json(struct http_request *req, struct http_answer *answer, char *text, size_t len)
{
	text = xrealloc_array(text, len + 2, 1); /* frees excess capacity before the client reads */
	text[len] = '\n';
	text[len + 1] = '\0';
	answer->content_type = JSON_TYPE;
	answer->body = text;
	answer->len = len + 1;
	http_reply_owned(req, answer);
}

/* NULL: none. */
static json_t *warnings_of(const struct http_request *req)
{
	json_t *list = (json_t *)http_tag(req, REQUEST_TAG_WARNINGS);

	return json_array_size(list) > 0 ? list : NULL;
}

int reply_add_warnings(const struct http_request *req, struct buf *text)
{
	json_t *list = warnings_of(req);
	size_t end = text->len;

	if (!list || end < 2 || text->data[end - 1] != '}')
		return 0;
	text->len--; /* replaces the brace */
	if (buf_add_str(text, ",\"warnings\":") == 0 && json_add(text, json_incref(list)) == 0 &&
	    buf_add(text, "}", 1) == 0)
		return 0;
	text->len = end;
	text->data[end - 1] = '}';
	return -1;
}

void reply_text(struct http_request *req, int status, struct buf *text)
{
	struct http_answer answer = {.status = status};
	size_t len;
	char *body;

	if (reply_add_warnings(req, text) < 0)
		reply_log(req, LOG_LEVEL_WARN, "no room for warnings");
	body = buf_take(text, &len);
	send_json(req, &answer, body, len);
}

void reply_json(struct http_request *req, int status, json_t *body)
{
	struct http_answer answer = {.status = status};
	json_t *warnings = warnings_of(req);
	size_t len;
	char *text;

	if (warnings && json_is_object(body))
		json_set(body, "warnings", json_incref(warnings));
	text = json_write(body, &len);
	send_json(req, &answer, text, len);
}

const char *reply_log_ctx(const struct http_request *req, char ret_ctx[REPLY_CTX_LEN])
{
	/* Ids are short: it fits. */
	(void)snprintf(ret_ctx, REPLY_CTX_LEN, "request_id=%s", http_request_id(req));
	return ret_ctx;
}

void reply_log_error(const struct http_request *req, const struct error *err)
{
	char ctx[REPLY_CTX_LEN];

	log_error_ctx(reply_log_ctx(req, ctx), "request failed", err);
}

/*
 * Whether a client may send the request again by itself. What has perhaps begun, or cannot succeed
 * later, is neither to be repeated now nor after a while.
 */
void reply_add_retry(struct http_request *req, const struct error *err, int status)
{
	char seconds[16];

	if (err->retry_s > 0) {
		(void)snprintf(seconds, sizeof(seconds), "%u", err->retry_s);
		http_add_header(req, "Retry-After", seconds);
		http_add_header(req, "Should-Retry", "true");
	} else if (status == HTTP_TOO_MANY_REQUESTS || status == HTTP_SERVICE_UNAVAILABLE) {
		http_add_header(req, "Should-Retry", "false");
	}
}

/* @body is released. */
static void send_error_body(struct http_request *req, const struct error *err, int status,
                            json_t *body, const struct http_header *header)
{
	struct http_answer answer = {
		.status = status,
		.headers = header,
		.headers_count = header != NULL,
	};
	size_t len;
	char *text;

	http_set_tag(req, REQUEST_TAG_ERROR, (uintptr_t)err->code);
	reply_add_retry(req, err, status);
	if (error_is_internal(err))
		reply_log_error(req, err);
	text = json_write(body, &len);
	send_json(req, &answer, text, len);
}

static void send_error(struct http_request *req, const struct error *err, int status,
                       const struct http_header *header)
{
	const struct dialect *dialect = (const struct dialect *)http_tag(req, REQUEST_TAG_DIALECT);
	json_t *body = dialect && dialect->error_body
	                       ? dialect->error_body(err, http_request_id(req), &status)
	                       : reply_error_of(req, err);

	send_error_body(req, err, status, body, header);
}

void reply_error_as(struct http_request *req, const struct error *err, int status)
{
	send_error(req, err, status, NULL);
}

void reply_upgrade_error(struct http_request *req, const struct error *err)
{
	if (err->code != ERR_INVALID) {
		reply_error(req, err);
		return;
	}
	http_add_header(req, "Upgrade", "websocket");
	http_add_header(req, "Sec-WebSocket-Version", "13");
	reply_error_as(req, err, HTTP_UPGRADE_REQUIRED);
}

/* "resources.memory" in a body: ["body", "resources", "memory"]. */
static json_t *error_place(const struct error *err, const char *where)
{
	json_t *place = json_array();

	json_append(place, json_string(where));
	for (const char *part = err->field; *part; part += strspn(part, ".")) {
		size_t len = strcspn(part, ".");

		json_append(place, json_text(part, len));
		part += len;
	}
	return place;
}

void reply_invalid(struct http_request *req, const struct error *err, const char *where)
{
	bool missing = str_equal(err->msg, "is missing");
	json_t *body, *item, *list;

	if (error_http(err->code) != HTTP_BAD_REQUEST) {
		reply_error(req, err);
		return;
	}
	item = json_object();
	json_set(item, "type", json_string(missing ? "missing" : "value_error"));
	json_set(item, "loc", error_place(err, where));
	json_set(item, "msg", json_text(err->msg, strlen(err->msg)));
	list = json_array();
	json_append(list, item);
	body = reply_error_shared(err, http_request_id(req));
	json_set(body, "detail", list);
	send_error_body(req, err, HTTP_UNPROCESSABLE_CONTENT, body, NULL);
}

void reply_error(struct http_request *req, const struct error *err)
{
	send_error(req, err, error_http(err->code), NULL);
}

void reply_error_body(struct http_request *req, const struct error *err, json_t *body)
{
	send_error_body(req, err, error_http(err->code), body, NULL);
}

void reply_unauthenticated(struct http_request *req, const struct error *err)
{
	const struct http_header header = {"WWW-Authenticate", "Bearer realm=\"millibox\""};

	send_error(req, err, error_http(err->code), &header);
}

void reply_not_allowed(struct http_request *req, const struct error *err, const char *allow)
{
	const struct http_header header = {"Allow", allow};

	send_error(req, err, error_http(err->code), &header);
}

void reply_error_header(struct http_request *req, const struct error *err,
                        const struct http_header *header)
{
	send_error(req, err, error_http(err->code), header);
}

void reply_nothing(struct http_request *req, int status)
{
	http_reply(req, &(struct http_answer){.status = status, .body = ""});
}
