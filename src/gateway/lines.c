/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/lines.h"

#include <assert.h>
#include <string.h>

#define ADD_MAX ((size_t)LINES_EDGE * 256)
/* Where an id is looked for. */
#define EDGE_ID 64

void lines_init(struct lines *l, size_t max)
{
	*l = (struct lines){.max = max};
	/* A whole line, the beginning of one that is too long, and what was just read. */
	buf_init(&l->buf, max + 2 * (size_t)LINES_EDGE + ADD_MAX);
}

void lines_done(struct lines *l)
{
	buf_done(&l->buf);
}

void lines_reset(struct lines *l)
{
	size_t max = l->max;

	buf_done(&l->buf);
	lines_init(l, max);
}

static size_t skip_spaces(const char *text, size_t len, size_t at)
{
	while (at < len && (text[at] == ' ' || text[at] == '\r'))
		at++;
	return at;
}

/* "id": NUMBER at @at. Return: the number, or 0; *ret_end is behind it. */
static uint32_t read_id(const char *text, size_t len, size_t at, size_t *ret_end)
{
	static const char key[] = "\"id\":";
	size_t digits = 0;
	uint32_t id = 0;

	if (len - at < sizeof(key) || memcmp(text + at, key, sizeof(key) - 1) != 0)
		return 0;
	at = skip_spaces(text, len, at + sizeof(key) - 1);
	for (; at < len && text[at] >= '0' && text[at] <= '9' && digits < 9; at++, digits++)
		id = id * 10 + (uint32_t)(text[at] - '0');
	*ret_end = at;
	return id;
}

/* What is inside a result can look the same: so only as the first members, before any bracket, or
 * as the last of all. */
uint32_t lines_id(const char *text, size_t len)
{
	size_t edge = len < EDGE_ID ? len : EDGE_ID, end = 0;
	uint32_t id;

	for (size_t i = 1; i < edge && text[i] != '{' && text[i] != '['; i++) {
		id = read_id(text, len, i, &end);
		if (id && text[0] == '{')
			return id;
	}
	for (size_t i = len - edge; i < len; i++) {
		id = read_id(text, len, i, &end);
		end = id ? skip_spaces(text, len, end) : len;
		if (id && end < len && text[end] == '}' && skip_spaces(text, len, end + 1) == len)
			return id;
	}
	return 0;
}

/* Keep the beginning and the latest part of a line that is too long. */
static void cut(struct lines *l)
{
	struct buf *b = &l->buf;

	l->is_cut = true;
	memmove(b->data + LINES_EDGE, b->data + b->len - LINES_EDGE, LINES_EDGE);
	b->len = l->seen = 2 * (size_t)LINES_EDGE;
}

void lines_add(struct lines *l, const char *data, size_t len)
{
	struct buf *b = &l->buf;

	assert(len <= ADD_MAX);
	buf_consume(b, l->taken);
	l->seen -= l->taken;
	l->taken = 0;
	if (b->len == 0 && b->cap > ADD_MAX) /* after a long line */
		lines_reset(l);
	if (buf_add(b, data, len) < 0)
		assert(false); /* cut() makes room */
}

static bool has_more(struct lines *l)
{
	struct buf *b = &l->buf;

	l->seen = b->len;
	if (b->len - l->taken > (l->is_cut ? 2 * (size_t)LINES_EDGE : l->max)) {
		buf_consume(b, l->taken);
		l->taken = 0;
		l->seen = b->len;
		cut(l);
	}
	return false;
}

bool lines_next(struct lines *l, struct line *ret)
{
	struct buf *b = &l->buf;
	const char *start = b->data + l->taken;
	const char *end =
		b->len > l->seen ? memchr(b->data + l->seen, '\n', b->len - l->seen) : NULL;

	if (!end)
		return has_more(l);
	*ret = (struct line){.text = start, .len = (size_t)(end - start)};
	ret->is_cut = l->is_cut || ret->len > l->max;
	if (ret->is_cut)
		ret->id = lines_id(start, ret->len);
	l->is_cut = false;
	l->taken = l->seen = (size_t)(end - b->data) + 1;
	return true;
}
