/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/text_stream.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include <string.h>

char *text_stream_take(struct text_stream *s, const char *data, size_t len, size_t *ret_len)
{
	size_t total = s->held_len + len, whole;
	char *joined;

	/* One frame of the wire and three held bytes at most. */
	joined = xmalloc(total + 1);
	memcpy(joined, s->held, s->held_len);
	memcpy(joined + s->held_len, data, len);
	whole = utf8_cut(joined, total);
	s->held_len = total - whole;
	assert(s->held_len < sizeof(s->held));
	memcpy(s->held, joined + whole, s->held_len);
	joined[whole] = '\0';
	*ret_len = whole;
	return joined;
}

char *text_stream_feed(struct text_stream *s, const char *data, size_t len, size_t *ret_len)
{
	size_t whole;
	cleanup_free char *bytes = text_stream_take(s, data, len, &whole);

	return utf8_sanitize(bytes, whole, ret_len);
}

char *text_stream_rest(struct text_stream *s, size_t *ret_len)
{
	*ret_len = TAKE(s->held_len, 0);
	return xmemdup0(s->held, *ret_len);
}
