/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: an execution as events: one JSON object each, as a line (application/x-ndjson) or as a
 * server-sent event (text/event-stream). The object is the same in both: {"event": name, ...}.
 */

#include "base/attr.h"
#include "base/buf.h"
#include <stdbool.h>
#include <stdint.h>

enum event_form {
	EVENT_FORM_NONE, /* one answer, no events */
	EVENT_FORM_NDJSON,
	EVENT_FORM_SSE,
	EVENT_FORM_COUNT
};

struct event {
	enum event_form form;
	const char *name;
	uint64_t id;
	const char *key;
};

/** event_form_choose - from the Accept header (NULL: none sent) and the request's own wish. Pure.
 */
enum event_form event_form_choose(const char *accept, bool wanted);
const char *event_form_type(enum event_form form);
/**
 * event_open - the begin of an event, up to the value of its one member @key. The caller adds the
 * value, which is JSON without raw line breaks, and then calls event_close. Pure, all of them.
 * Return: 0 or -ENOBUFS.
 */
int event_open(struct buf *b, const struct event *event) attr_must_check;
int event_close(struct buf *b, enum event_form form) attr_must_check;
