/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: an execution as events: one JSON object each, as a line (application/x-ndjson) or as a
 * server-sent event (text/event-stream). The object is the same in both: {"event": name, ...}.
 */

#include "base/attr.h"
#include "base/buf.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum event_form {
	EVENT_FORM_NONE, /* one answer, no events */
	EVENT_FORM_NDJSON,
	EVENT_FORM_SSE,
	EVENT_FORM_COUNT
};

/** event_form_choose - from the Accept header (NULL: none sent) and the request's own wish. Pure.
 */
enum event_form event_form_choose(const char *accept, bool wanted);
const char *event_form_type(enum event_form form);
/**
 * event_render - @object without "event" is completed with @name and released. Return: owned text
 * that can be sent, its length in @ret_len. Pure.
 */
char *event_render(enum event_form form, const char *name, uint64_t id, json_t *object,
                   size_t *ret_len) attr_must_check;
