/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/shorten.h"

#include "base/utf8.h"
#include <errno.h>
#include <string.h>

/* 1/SLACK of the room may be given up to cut at a line end. */
#define SLACK 4

static size_t head_end(const char *text, size_t room)
{
	size_t end = utf8_cut(text, room);
	const char *line = end > 0 ? memrchr(text, '\n', end) : NULL;

	return line && (size_t)(line - text) >= end - end / SLACK ? (size_t)(line - text) + 1 : end;
}

static size_t tail_begin(const char *text, size_t len, size_t room)
{
	size_t begin = len - room;
	const char *line;

	while (begin < len && ((unsigned char)text[begin] & 0xc0) == 0x80)
		begin++; /* inside a character */
	line = memchr(text + begin, '\n', room / SLACK);
	return line && line + 1 < text + len ? (size_t)(line - text) + 1 : begin;
}

int shorten(struct buf *b, const char *text, size_t len, size_t max, const char *where)
{
	size_t head, tail;

	if (len <= max)
		return buf_add(b, text, len);
	head = head_end(text, max / 2);
	tail = tail_begin(text, len, max - max / 2);
	if (buf_add(b, text, head) < 0 ||
	    buf_addf(b, "%s[... %zu of %zu bytes left out at offset %zu%s%s ...]\n",
	             head > 0 && text[head - 1] != '\n' ? "\n" : "", tail - head, len, head,
	             where ? "; all of it: " : "", where ? where : "") < 0 ||
	    buf_add(b, text + tail, len - tail) < 0)
		return -ENOBUFS;
	return 1;
}
