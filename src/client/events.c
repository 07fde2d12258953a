/* SPDX-License-Identifier: Apache-2.0 */
#include "client/events.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/str.h"

static const char *const kind_names[] = {
	[EVENT_PENDING] = "pending", [EVENT_START] = "start",     [EVENT_STDOUT] = "stdout",
	[EVENT_STDERR] = "stderr",   [EVENT_RESULT] = "result",   [EVENT_END] = "end",
	[EVENT_ERROR] = "error",     [EVENT_INSTALL] = "install",
};
static_assert(ARRAY_SIZE(kind_names) == EVENT_OTHER, "one name per known kind");

void events_init(struct events *e, size_t line_max,
                 int (*on_event)(void *ctx, const struct event *event), void *ctx)
{
	*e = (struct events){.on_event = on_event, .ctx = ctx};
	buf_init(&e->line, line_max);
}

void events_done(struct events *e)
{
	buf_done(&e->line);
}

void events_restart(struct events *e)
{
	buf_reset(&e->line);
}

static int read_text(const json_t *value, struct event *event)
{
	event->data = json_string_value(value);
	event->len = json_string_length(value);
	return event->data ? 0 : -EPROTO;
}

/* Output that is not text is in "base64", unchanged. @ret_bytes owns it. */
static int read_output(const json_t *object, struct event *event, char **ret_bytes)
{
	const json_t *encoded = json_object_get(object, "base64");

	if (!encoded)
		return read_text(json_object_get(object, "data"), event);
	if (!json_is_string(encoded))
		return -EPROTO;
	*ret_bytes =
		base64_decode(json_string_value(encoded), json_string_length(encoded), &event->len);
	event->data = *ret_bytes;
	return event->data ? 0 : -EPROTO;
}

/* @object must have the member its kind requires. */
static int read_event(json_t *object, struct event *event, char **ret_bytes)
{
	static const char *const members[EVENT_KIND_COUNT] = {
		[EVENT_RESULT] = "data", [EVENT_END] = "result", [EVENT_ERROR] = "error"};
	const char *name = json_string_value(json_object_get(object, "event"));
	json_int_t number = json_integer_value(json_object_get(object, "id"));

	if (!name)
		return -EPROTO;
	event->number = number > 0 ? (uint64_t)number : 0;
	while (event->kind < EVENT_OTHER && !str_equal(name, kind_names[event->kind]))
		event->kind++;
	if (event->kind == EVENT_PENDING)
		return read_text(json_object_get(object, "execution_id"), event);
	if (event->kind == EVENT_STDOUT || event->kind == EVENT_STDERR ||
	    event->kind == EVENT_INSTALL)
		return read_output(object, event, ret_bytes);
	if (!members[event->kind])
		return 0;
	event->object = json_object_get(object, members[event->kind]);
	return json_is_object(event->object) ? 0 : -EPROTO;
}

static int take_line(struct events *e, const char *line, size_t len)
{
	cleanup_free char *bytes = NULL;
	struct event event = {0};
	json_t *object;
	int r;

	/* Keep-alive. */
	if (len == 0 || (len == 1 && line[0] == '\r'))
		return 0;
	object = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	if (!object)
		return -EPROTO;
	r = read_event(object, &event, &bytes);
	if (r >= 0)
		r = e->on_event(e->ctx, &event);
	json_decref(object);
	return r;
}

/* A line in one chunk is not copied. */
static int end_line(struct events *e, const char *data, size_t len)
{
	int r;

	if (e->line.len == 0)
		return len > e->line.max ? -ENOBUFS : take_line(e, data, len);
	r = buf_add(&e->line, data, len);
	if (r >= 0)
		r = take_line(e, e->line.data, e->line.len);
	buf_reset(&e->line);
	return r;
}

int events_feed(struct events *e, const char *data, size_t len)
{
	const char *newline;

	while ((newline = memchr(data, '\n', len))) {
		size_t piece = (size_t)(newline - data);
		int r = end_line(e, data, piece);

		if (r < 0)
			return r;
		data += piece + 1;
		len -= piece + 1;
	}
	return len > 0 ? buf_add(&e->line, data, len) : 0;
}
