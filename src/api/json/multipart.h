/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: streaming parser of multipart/form-data (RFC 7578). Content is not buffered; the consumer
 * may take less than offered. Boundary, headers and parts are bounded. Pure.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MULTIPART_BOUNDARY_MAX 70 /* RFC 2046 */
#define MULTIPART_HEADERS_MAX  4096
#define MULTIPART_PARTS_MAX    16
#define MULTIPART_NAME_MAX     255

struct multipart;

struct multipart_events {
	void *ctx;
	/* @filename NULL: none. Return: 0, or -1 with *err. */
	int (*on_part)(void *ctx, const char *name, const char *filename, struct error *err);
	/* Return: bytes taken, or -1 with *err; fewer than @len stops multipart_feed. */
	ssize_t (*on_data)(void *ctx, const char *data, size_t len, struct error *err);
	int (*on_part_end)(void *ctx, struct error *err);
};

void multipart_free(struct multipart *m);
/** multipart_new - @content_type: the request's. Return: NULL with *err: none, or no boundary. */
struct multipart *multipart_new(const char *content_type, const struct multipart_events *events,
                                struct error *err) attr_must_check;
/** multipart_feed - Return: bytes used, fewer if the consumer took less; or -1. */
ssize_t multipart_feed(struct multipart *m, const char *data, size_t len,
                       struct error *err) attr_must_check;
/** multipart_is_complete - the closing boundary was seen. */
bool multipart_is_complete(const struct multipart *m);
