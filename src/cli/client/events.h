/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the stream of an execution: one JSON object per line, in pieces that are cut anywhere. Pure:
 * bytes in, events out.
 */

#include "base/buf.h"
#include "base/error.h"
#include <jansson.h>
#include <stddef.h>

/* A line repeats both streams at the end of a run, every byte of them perhaps as \u0000. */
#define EVENTS_LINE_MAX (512UL << 20)

enum event_kind {
	EVENT_PENDING, /* of a session's execution: it has its id */
	EVENT_START,
	EVENT_STDOUT,
	EVENT_STDERR,
	EVENT_END,
	EVENT_ERROR,
	EVENT_OTHER, /* of a later version: to be passed over */
	EVENT_KIND_COUNT
};

/* Borrowed for the callback. */
struct event {
	enum event_kind kind;
	const char *data; /* STDOUT, STDERR: may contain NUL; PENDING: the execution's id */
	size_t len;
	json_t *object; /* END: the result; ERROR: the error object */
};

struct events {
	struct buf line;
	/* Return: >= 0, or < 0 to stop: events_feed returns it. */
	int (*on_event)(void *ctx, const struct event *event);
	void *ctx;
};

void events_init(struct events *e, size_t line_max,
                 int (*on_event)(void *ctx, const struct event *event), void *ctx);
void events_done(struct events *e);
/**
 * events_feed - Return: 0, or a negative errno: -EPROTO for a line that is no event, -ENOBUFS for
 * one that is too long, or what on_event returned.
 */
int events_feed(struct events *e, const char *data, size_t len) attr_must_check;
