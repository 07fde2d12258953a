/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: events of a response: JSON objects {"event": name, ...}, as lines (application/x-ndjson) or
 * server-sent events (text/event-stream).
 */

#include "base/attr.h"
#include "base/buf.h"
#include <stdbool.h>
#include <stdint.h>

enum event_form {
	EVENT_FORM_NONE, /* one response, no events */
	EVENT_FORM_NDJSON,
	EVENT_FORM_SSE,
	EVENT_FORM_COUNT
};

struct event {
	enum event_form form;
	const char *name;
	uint64_t id;
	bool has_id;     /* SSE: the frame has @id */
	bool shows_id;   /* the object has @id, too */
	const char *key; /* of the first member; NULL: written by the caller */
};

/** event_form_choose - by Accept (NULL: not sent) and the request's option. Pure. */
enum event_form event_form_choose(const char *accept, bool wanted);
const char *event_form_type(enum event_form form);
/**
 * event_open - up to the value of the first member. The caller adds the value (JSON without raw
 * line breaks), perhaps more members, then event_close. Return: 0 or -ENOBUFS.
 */
int event_open(struct buf *b, const struct event *event) attr_must_check;
int event_close(struct buf *b, enum event_form form) attr_must_check;
