/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: framing of server-sent events (text/event-stream). */

#include "base/attr.h"
#include "base/buf.h"

#define SSE_TYPE "text/event-stream"

struct sse {
	const char *id;    /* NULL: none */
	const char *name;  /* NULL: none */
	unsigned retry_ms; /* 0: none */
};

/**
 * sse_open - everything before the data. The caller adds the data, without line breaks, then
 * sse_close. Return: 0 or -ENOBUFS, both.
 */
int sse_open(struct buf *b, const struct sse *event) attr_must_check;
int sse_close(struct buf *b) attr_must_check;
