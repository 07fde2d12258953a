/* SPDX-License-Identifier: Apache-2.0 */
#include "api/events.h"

#include "api/json.h"
#include "base/alloc.h"
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

char *event_render(enum event_form form, const char *name, uint64_t id, json_t *object,
                   size_t *ret_len)
{
	cleanup_json json_t *event = json_object();
	cleanup_free char *text = NULL;
	char *line;
	int r;

	/* The name first: a person who watches the stream reads from the left. */
	json_set(event, "event", json_string(name));
	r = json_object_update(event, object);
	assert(r == 0);
	(void)r;
	json_decref(object);
	text = json_write(json_incref(event), ret_len);
	/* JSON has no raw line break, so one line of data is always enough. */
	if (form == EVENT_FORM_SSE)
		line = xasprintf("id: %" PRIu64 "\nevent: %s\ndata: %s\n\n", id, name, text);
	else
		line = xasprintf("%s\n", text);
	*ret_len = strlen(line);
	return line;
}
