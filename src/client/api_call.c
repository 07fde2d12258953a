/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api_call.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/size.h"
#include "http/client.h"
#include "http/status.h"
#include "json/json_dump.h"

/* The longest is a page of sessions. */
#define RESPONSE_MAX (64 * MIB)
#define ID_MAX       64

#define TICK_US 250000

struct response {
	const struct api_call *call;
	struct buf body;
};

static int on_data(void *ctx, int status, const char *data, size_t len)
{
	struct response *response = ctx;

	(void)status;
	return buf_add(&response->body, data, len);
}

static void on_tick(void *ctx, uint64_t sent)
{
	const struct response *response = ctx;

	response->call->on_tick(response->call->ctx, sent);
}

json_t *api_parse_object(const char *text, size_t len, int status, struct error *err)
{
	json_t *object = json_loadb(text ? text : "", len, JSON_ALLOW_NUL, NULL);

	if (json_is_object(object))
		return object;
	json_decref(object);
	(void)error_set(err, ERR_PROTOCOL, 0,
	                "the response (status %d) is not from a Millibox daemon", status);
	return NULL;
}

char *api_body(const json_t *object, struct error *err)
{
	char *text = json_dump_text(object, JSON_COMPACT);

	if (!text)
		(void)error_set(err, ERR_SYSTEM, ENOMEM, "build the request");
	return text;
}

int api_call(const struct endpoint *endpoint, const struct api_call *call, json_t **ret_answer,
             int *ret_status, struct error *err)
{
	cleanup_free char *url = xasprintf("%s%s", endpoint->url, call->path);
	struct response got = {.call = call, .body = BUF_INIT(RESPONSE_MAX)};
	struct http_client_request request = {
		ENDPOINT_REQUEST(endpoint),
		.method = call->method,
		.url = url,
		.body = call->body,
		.body_len = call->body_len || !call->body ? call->body_len : strlen(call->body),
		.on_data = on_data,
		.on_tick = call->on_tick ? on_tick : NULL,
		.tick_us = TICK_US,
		.timeout_us = call->timeout_us,
		.cancel_fd = call->cancel_fd,
		.ctx = &got,
	};
	json_t *object = NULL;
	int r = http_client_run(&request, ret_status, err);

	/* 204: no body. */
	if (r >= 0)
		object = *ret_status == HTTP_NO_CONTENT
		                 ? json_object()
		                 : api_parse_object(got.body.data, got.body.len, *ret_status, err);
	buf_done(&got.body);
	if (!object)
		return -1;
	*ret_answer = object;
	return 0;
}

int api_ready(const struct endpoint *endpoint, uint64_t timeout_us, int *ret_status,
              struct error *err)
{
	cleanup_free char *url = xasprintf("%s/readyz", endpoint->url);
	const struct http_client_request request = {
		.method = "GET",
		.socket_path = endpoint->socket,
		.url = url,
		.ca_file = endpoint->ca_file,
		.untrusted = endpoint_words(endpoint)->untrusted,
		.timeout_us = timeout_us,
	};

	return http_client_run(&request, ret_status, err);
}

int api_endpoint(const struct endpoint_options *options, struct endpoint *ret_endpoint,
                 struct error *err)
{
	if (endpoint_find(options, ret_endpoint, err) < 0)
		return -1;
	if (!ret_endpoint->chosen && !endpoint_is_served(ret_endpoint))
		return error_set(err, ERR_UNAVAILABLE, 0, "no daemon listens at %s; %s%s",
		                 ret_endpoint->socket, endpoint_words(ret_endpoint)->missing,
		                 ret_endpoint->barred ? "; that of the system, at " ENDPOINT_SYSTEM
		                                        ", serves members of its group"
		                                      : "");
	return 0;
}

char *api_path(const char *id, const char *suffix, struct error *err)
{
	if (id_is_valid(id, ID_MAX))
		return xasprintf("/api/v1/sessions/%s%s", id, suffix);
	(void)error_set(err, ERR_INVALID, 0, "'%s' is not a valid session id", id);
	return NULL;
}

char *api_execution_path(const char *id, const char *suffix, struct error *err)
{
	if (id_is_valid(id, ID_MAX))
		return xasprintf("/api/v1/executions/%s%s", id, suffix);
	(void)error_set(err, ERR_INVALID, 0, "'%s' is not a valid execution id", id);
	return NULL;
}

char *api_list_path(const char *path, const char *status, unsigned limit)
{
	cleanup_free char *escaped = status ? api_escape(status) : NULL;
	cleanup_free char *query = limit ? xasprintf("limit=%u", limit) : xstrdup("");

	return xasprintf("%s%s%s%s%s%s", path, limit || escaped ? "?" : "", query,
	                 limit && escaped ? "&" : "", escaped ? "status=" : "",
	                 escaped ? escaped : "");
}

char *api_escape(const char *text)
{
	static const char digits[] = "0123456789ABCDEF";
	char *escaped = xmalloc(3 * strlen(text) + 1);
	char *to = escaped;

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		/* C locale: letters are ASCII. */
		if (isalnum(c) || strchr("-._~/", c)) {
			*to++ = *text;
			continue;
		}
		*to++ = '%';
		*to++ = digits[c >> 4];
		*to++ = digits[c & 15];
	}
	*to = '\0';
	return escaped;
}

char *api_file_path(const char *id, const char *path, const char *query, struct error *err)
{
	cleanup_free char *escaped = api_escape(path);
	/* "files/mkdir" is an operation; "files/./mkdir" is a file. */
	const char *dot = path[0] == '/' ? "" : "./";
	cleanup_free char *suffix = xasprintf("/files/%s%s%s", dot, escaped, query);

	return api_path(id, suffix, err);
}
