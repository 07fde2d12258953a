/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: parser for an execution's event stream: one JSON object per line, in chunks of any size.
 * Pure.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/size.h"
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* The last line repeats both streams; any byte may be escaped as \u0000. */
#define EVENTS_LINE_MAX (512 * MIB)

enum event_kind {
	EVENT_PENDING, /* has the execution's id */
	EVENT_START,
	EVENT_STDOUT,
	EVENT_STDERR,
	EVENT_INSTALL, /* output of a package manager */
	EVENT_RESULT,
	EVENT_END,
	EVENT_ERROR,
	EVENT_OTHER, /* of a later version: ignored */
	EVENT_KIND_COUNT
};

/* Borrowed for the callback. */
struct event {
	enum event_kind kind;
	uint64_t number;  /* in its execution, from 1; 0: none, sent again with the end */
	const char *data; /* STDOUT, STDERR, INSTALL: may contain NUL; PENDING: the id */
	size_t len;
	json_t *object; /* RESULT: representations by media type; END: result; ERROR: error object
	                 */
};

struct events {
	struct buf line;
	/* Return: < 0 to stop: events_feed returns it. */
	int (*on_event)(void *ctx, const struct event *event);
	void *ctx;
};

void events_init(struct events *e, size_t line_max,
                 int (*on_event)(void *ctx, const struct event *event), void *ctx);
void events_done(struct events *e);
/** events_restart - forget half a line: the stream broke. */
void events_restart(struct events *e);
/**
 * events_feed - Return: 0, or a negative errno: -EPROTO: not an event, -ENOBUFS: line too long, or
 * what on_event returned.
 */
int events_feed(struct events *e, const char *data, size_t len) attr_must_check;
