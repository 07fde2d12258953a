/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: parser for server-sent events in chunks of any size. Pure. */

#include "base/attr.h"
#include "base/buf.h"
#include <stddef.h>

#define SSE_ID_LEN 64

struct sse {
	struct buf line, data;
	char id[SSE_ID_LEN];      /* of the last complete event; "": none */
	char next_id[SSE_ID_LEN]; /* of the event being read */
	/* Events without data are skipped. */
	void (*on_event)(void *ctx, const char *data, size_t len);
	void *ctx;
};

void sse_init(struct sse *s, size_t max, void (*on_event)(void *ctx, const char *data, size_t len),
              void *ctx);
void sse_done(struct sse *s);
/** sse_feed - Return: 0, or -ENOBUFS: too long. */
int sse_feed(struct sse *s, const char *data, size_t len) attr_must_check;
