/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/events.h"

#include "base/alloc.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char *const types[] = {
	[EVENT_FORM_NONE] = "application/json",
	[EVENT_FORM_NDJSON] = "application/x-ndjson",
	[EVENT_FORM_SSE] = "text/event-stream",
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
	/* JSON has no raw line break, so one line of data is always enough. */
	if (e->form == EVENT_FORM_SSE &&
	    buf_addf(b, "id: %" PRIu64 "\nevent: %s\ndata: ", e->id, e->name) < 0)
		return -ENOBUFS;
	/* The name first: a person who watches the stream reads from the left. */
	return buf_addf(b, "{\"event\":\"%s\",\"%s\":", e->name, e->key);
}

int event_close(struct buf *b, enum event_form form)
{
	return buf_add_str(b, form == EVENT_FORM_SSE ? "}\n\n" : "}\n");
}
