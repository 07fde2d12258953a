/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: blocking HTTP client over TCP or a Unix socket, for the command line and libmillibox:
 * libcurl (only lib/http includes its header). Threads may run requests at the same time, each with
 * a kept connection of its own.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct http_client;

/** http_client_new - a connection that requests may share. Return: NULL: out of memory. */
void http_client_free(struct http_client *kept);
struct http_client *http_client_new(void) attr_owned(http_client_free);

struct http_client_request {
	const char *method;
	const char *socket_path; /* NULL: TCP */
	const char *url;         /* "http://localhost/api/v1/execute" */
	const char *body;        /* NULL: none */
	size_t body_len;
	/* Streams a body of any length instead of @body: store up to @size bytes. May block.
	 * Return: how many, 0: the end, < 0: abort; the peer sees a truncated body. */
	ssize_t (*on_body)(void *ctx, char *data, size_t size);
	const char *accept;    /* NULL: application/json */
	const char *bearer;    /* NULL: none */
	const char *ca_file;   /* https: trusted authorities; NULL: the system's */
	const char *untrusted; /* hint when verification fails; NULL: none */
	const char *unreached; /* hint when nothing listens */
	uint64_t timeout_us;   /* 0: none */
	int cancel_fd;         /* readable: stop (ERR_UNAVAILABLE with sys ECANCELED); 0: none */
	/* A piece of the response body. Return < 0 to stop. */
	int (*on_data)(void *ctx, int status, const char *data, size_t len);
	/* About every @tick_us, with @sent bytes of the body. NULL: never. May send its own
	 * request; the transfer waits. */
	void (*on_tick)(void *ctx, uint64_t sent);
	uint64_t tick_us;
	void *ctx;
	/* Reuses its connection; NULL, or in use by the request whose callback this is: a new one.
	 * A request whose body was sent is not sent twice, even if the connection breaks. */
	struct http_client *kept;
};

/**
 * http_client_run - Return: 0 with *ret_status, or -1 (ERR_UNAVAILABLE: nothing answers;
 * ERR_UNTRUSTED: the peer cannot be verified).
 */
int http_client_run(const struct http_client_request *request, int *ret_status,
                    struct error *err) attr_must_check;
