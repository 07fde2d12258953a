/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: several requests at once, for a single-threaded program that polls its own descriptors:
 * libcurl's multi interface. Callbacks run inside http_parallel_wait.
 */

#include "base/attr.h"
#include "base/error.h"
#include <poll.h>
#include <stddef.h>

struct http_parallel;
struct http_exchange;

/* Borrowed for the call, except @ctx; the body is copied. */
struct http_parallel_request {
	const char *method;
	const char *socket_path; /* NULL: TCP */
	const char *url;
	const char *body; /* NULL: none; application/json */
	size_t body_len;
	const char *const *headers; /* "Name: value", NULL-terminated */
	const char *bearer;         /* NULL: none */
	const char *ca_file;        /* NULL: the system's authorities */
	void *ctx;
	/* One line, without its end. */
	void (*on_header)(void *ctx, const char *line, size_t len);
	void (*on_data)(void *ctx, int status, const char *data, size_t len);
	/* Once. @err NULL: complete; its sys is ECONNREFUSED if nothing was sent. The exchange is
	 * freed afterwards. */
	void (*on_done)(void *ctx, int status, const struct error *err);
};

/** http_parallel_free - abort what is in progress; no callback follows. */
void http_parallel_free(struct http_parallel *p);
struct http_parallel *http_parallel_new(struct error *err) attr_owned(http_parallel_free);
int http_parallel_add(struct http_parallel *p, const struct http_parallel_request *request,
                      struct error *err) attr_must_check;
size_t http_parallel_count(const struct http_parallel *p);
/**
 * http_parallel_wait - until a transfer progresses, one of @fds is ready (revents), or the timeout.
 * Return: 0 or -1.
 */
int http_parallel_wait(struct http_parallel *p, struct pollfd *fds, size_t count, int timeout_ms,
                       struct error *err) attr_must_check;
