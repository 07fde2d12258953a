/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: HTTP requests on the loop, many at a time: libcurl's multi interface. For programs that talk
 * to servers which an operator has named: no redirect is followed, and no proxy of the environment
 * is used.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fetch;
struct fetcher;
struct loop;

struct fetch_request {
	const char *method;
	const char *socket_path; /* NULL: TCP */
	const char *url;
	const char *body; /* copied; NULL: none */
	size_t body_len;
	/* Streams a body of any length instead of @body: store up to @size bytes. Return: how many,
	 * 0: the end, < 0: abort; the peer sees a truncated body. */
	ssize_t (*on_body)(void *ctx, char *data, size_t size);
	const char *const *headers; /* "Name: value", NULL-terminated; copied */
	uint64_t timeout_us;        /* of the whole; 0: none */
	/* A piece of the answer's body. Return < 0 to stop; on_done follows. */
	int (*on_data)(void *ctx, struct fetch *f, const char *data, size_t len);
	/* Once, never inside fetch_start, and not after fetch_cancel; @f is freed afterwards.
	 * @err: NULL, or why there is no (whole) answer. */
	void (*on_done)(void *ctx, struct fetch *f, const struct error *err);
	void *ctx;
};

void fetcher_free(struct fetcher *x);
/** fetcher_new - Return: NULL with *err if libcurl cannot start. */
struct fetcher *fetcher_new(struct loop *loop, struct error *err) attr_owned(fetcher_free);
struct fetch *fetch_start(struct fetcher *x, const struct fetch_request *request) attr_must_check;
/** fetch_cancel - no callback follows; @f must not be used any more. */
void fetch_cancel(struct fetch *f);
/** fetch_status - HTTP status; 0: no answer yet. */
int fetch_status(const struct fetch *f);
/** fetch_header - of the answer; NULL: none. */
const char *fetch_header(const struct fetch *f, const char *name);
