/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/sse.h"

#include "base/str.h"
#include <errno.h>
#include <string.h>

void sse_init(struct sse *s, size_t max, void (*on_event)(void *ctx, const char *data, size_t len),
              void *ctx)
{
	*s = (struct sse){.on_event = on_event, .ctx = ctx};
	buf_init(&s->line, max);
	buf_init(&s->data, max);
}

void sse_done(struct sse *s)
{
	buf_done(&s->line);
	buf_done(&s->data);
}

static void end_event(struct sse *s)
{
	if (s->next_id[0])
		(void)!str_copy(s->id, sizeof(s->id), s->next_id);
	s->next_id[0] = '\0';
	if (s->data.len > 0)
		s->on_event(s->ctx, s->data.data, s->data.len);
	buf_reset(&s->data);
}

/* Return: NULL: another field. */
static const char *field_value(const struct buf *line, const char *name)
{
	size_t len = strlen(name);
	const char *text = line->data;

	if (line->len < len + 1 || strncmp(text, name, len) != 0 || text[len] != ':')
		return NULL;
	return text + len + 1 + (text[len + 1] == ' ');
}

static int end_line(struct sse *s)
{
	const char *value;
	int r = 0;

	if (s->line.len > 0 && s->line.data[s->line.len - 1] == '\r')
		s->line.data[--s->line.len] = '\0';
	if (s->line.len == 0)
		end_event(s);
	else if ((value = field_value(&s->line, "id")))
		(void)!str_copy(s->next_id, sizeof(s->next_id), value);
	else if ((value = field_value(&s->line, "data")))
		r = buf_add(&s->data, value, s->line.len - (size_t)(value - s->line.data));
	buf_reset(&s->line);
	return r;
}

int sse_feed(struct sse *s, const char *data, size_t len)
{
	while (len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t part = end ? (size_t)(end - data) : len;

		if (buf_add(&s->line, data, part) < 0)
			return -ENOBUFS;
		if (end && end_line(s) < 0)
			return -ENOBUFS;
		part += end != NULL;
		data += part;
		len -= part;
	}
	return 0;
}
