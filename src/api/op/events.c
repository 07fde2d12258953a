/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/events.h"

#include "base/alloc.h"
#include "http/sse.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const types[] = {
	[EVENT_FORM_NONE] = "application/json",
	[EVENT_FORM_NDJSON] = "application/x-ndjson",
	[EVENT_FORM_SSE] = SSE_TYPE,
};
static_assert(ARRAY_SIZE(types) == EVENT_FORM_COUNT, "every form has its type");

enum event_form event_form_choose(const char *accept, bool wanted)
{
	if (accept && strcasestr(accept, types[EVENT_FORM_SSE]))
		return EVENT_FORM_SSE;
	if (wanted || (accept && strcasestr(accept, types[EVENT_FORM_NDJSON])))
		return EVENT_FORM_NDJSON;
	return EVENT_FORM_NONE;
}

const char *event_form_type(enum event_form form)
{
	return types[form];
}

int event_open(struct buf *b, const struct event *e)
{
	char id[24];

	(void)snprintf(id, sizeof(id), "%" PRIu64, e->id);
	if (e->form == EVENT_FORM_SSE &&
	    sse_open(b, &(struct sse){.id = e->has_id ? id : NULL, .name = e->name}) < 0)
		return -ENOBUFS;
	/* First, for people who watch the stream. */
	if (buf_addf(b, "{\"event\":\"%s\"", e->name) < 0 ||
	    (e->shows_id && buf_addf(b, ",\"id\":%s", id) < 0))
		return -ENOBUFS;
	return e->key ? buf_addf(b, ",\"%s\":", e->key) : 0;
}

int event_close(struct buf *b, enum event_form form)
{
	if (buf_add_str(b, "}") < 0)
		return -ENOBUFS;
	return form == EVENT_FORM_SSE ? sse_close(b) : buf_add_str(b, "\n");
}
