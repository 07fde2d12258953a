/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: HTTP client over TCP or a Unix socket: libcurl (only lib/http includes its header).
 * Blocking form, for the CLI; the daemon's upstreams will get a multi form on the loop.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct http_client_request {
	const char *method;
	const char *socket_path; /* NULL: TCP */
	const char *url;         /* "http://localhost/api/v1/execute" */
	const char *body;        /* NULL: none */
	size_t body_len;
	/* Instead of @body one of any length, sent as it is given: up to @size bytes to @data. May
	 * wait. Return: how many, 0: the end, < 0: stop; the peer then sees that it is cut off. */
	ssize_t (*on_body)(void *ctx, char *data, size_t size);
	const char *accept;    /* NULL: application/json */
	const char *bearer;    /* NULL: none */
	const char *ca_file;   /* of https: whom to believe; NULL: whom the system believes */
	const char *untrusted; /* what to do where that fails, for the message; NULL: nothing */
	const char *unreached; /* likewise where nobody listens */
	uint64_t timeout_us;   /* 0: none */
	int cancel_fd;         /* readable: stop (ERR_UNAVAILABLE with sys ECANCELED); 0: none */
	/* Pieces of the answer's body as they come. Return < 0 to stop, as by cancel_fd. */
	int (*on_data)(void *ctx, int status, const char *data, size_t len);
	/* About every @tick_us while it lasts: @sent bytes of the body have left. NULL: never. It
	 * may ask somebody else something, and holds the transfer up for that long. */
	void (*on_tick)(void *ctx, uint64_t sent);
	uint64_t tick_us;
	void *ctx;
};

/** http_client_run - Return: 0 with *ret_status, or -1 (ERR_UNAVAILABLE when nobody answers,
 * ERR_UNTRUSTED when it is not certain who does). */
int http_client_run(const struct http_client_request *request, int *ret_status,
                    struct error *err) attr_must_check;
