/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/api_call.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/id.h"
#include "http/client.h"

/* Answers of this kind are small; a page of sessions has the longest. */
#define ANSWER_MAX (64u << 20)
#define ID_MAX     64

#define TICK_US 250000

struct answer {
	const struct api_call *call;
	struct buf body;
};

static int on_data(void *ctx, int status, const char *data, size_t len)
{
	struct answer *answer = ctx;

	(void)status;
	return buf_add(&answer->body, data, len);
}

static void on_tick(void *ctx, uint64_t sent)
{
	const struct answer *answer = ctx;

	answer->call->on_tick(answer->call->ctx, sent);
}

int api_call(const struct endpoint *endpoint, const struct api_call *call, json_t **ret_answer,
             int *ret_status, struct error *err)
{
	cleanup_free char *url = xasprintf("%s%s", endpoint->url, call->path);
	struct answer got = {.call = call, .body = BUF_INIT(ANSWER_MAX)};
	struct http_client_request request = {
		.method = call->method,
		.socket_path = endpoint->socket,
		.url = url,
		.bearer = endpoint->key,
		.ca_file = endpoint->ca_file,
		.untrusted = ENDPOINT_UNTRUSTED,
		.unreached = ENDPOINT_UNREACHED,
		.body = call->body,
		.body_len = call->body_len || !call->body ? call->body_len : strlen(call->body),
		.on_data = on_data,
		.on_tick = call->on_tick ? on_tick : NULL,
		.tick_us = TICK_US,
		.ctx = &got,
	};
	json_t *object = NULL;
	int r = http_client_run(&request, ret_status, err);

	/* 204: done, and nothing to say. */
	if (r >= 0)
		object = *ret_status == 204 ? json_object()
		                            : json_loadb(got.body.data ? got.body.data : "",
		                                         got.body.len, JSON_ALLOW_NUL, NULL);
	buf_done(&got.body);
	if (r < 0)
		return -1;
	if (!json_is_object(object)) {
		json_decref(object);
		return error_set(err, ERR_PROTOCOL, 0,
		                 "the answer (status %d) is not one of a Millibox daemon",
		                 *ret_status);
	}
	*ret_answer = object;
	return 0;
}

int api_endpoint(const struct endpoint_options *options, struct endpoint *ret_endpoint,
                 struct error *err)
{
	if (endpoint_find(options, ret_endpoint, err) < 0)
		return -1;
	if (!ret_endpoint->chosen && !endpoint_is_served(ret_endpoint))
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "no daemon listens at %s, and this command needs one: start "
		                 "milliboxd, or give --socket or --url",
		                 ret_endpoint->socket);
	return 0;
}

char *api_path(const char *id, const char *suffix, struct error *err)
{
	if (id_is_valid(id, ID_MAX))
		return xasprintf("/api/v1/sessions/%s%s", id, suffix);
	(void)error_set(err, ERR_INVALID, 0, "'%s' is no id of a session", id);
	return NULL;
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("-._~/", c);
}

char *api_escape(const char *text)
{
	static const char digits[] = "0123456789ABCDEF";
	char *escaped = xmalloc(3 * strlen(text) + 1);
	char *to = escaped;

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (is_plain(*text)) {
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
	/* The dot: "files/mkdir" would be an order, "files/./mkdir" is a file. */
	const char *dot = path[0] == '/' ? "" : "./";
	cleanup_free char *suffix = xasprintf("/files/%s%s%s", dot, escaped, query);

	return api_path(id, suffix, err);
}
