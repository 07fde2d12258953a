/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/text_stream.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include <string.h>

char *text_stream_feed(struct text_stream *s, const char *data, size_t len, size_t *ret_len)
{
	size_t total = s->held_len + len, whole;
	cleanup_free char *joined = NULL;

	/* One frame of the wire and three held bytes at most. */
	joined = xmalloc(total + 1);
	memcpy(joined, s->held, s->held_len);
	memcpy(joined + s->held_len, data, len);
	whole = utf8_cut(joined, total);
	s->held_len = total - whole;
	assert(s->held_len < sizeof(s->held));
	memcpy(s->held, joined + whole, s->held_len);
	return utf8_sanitize(joined, whole, ret_len);
}

char *text_stream_end(struct text_stream *s, size_t *ret_len)
{
	size_t len = s->held_len;

	s->held_len = 0;
	return utf8_sanitize(s->held, len, ret_len);
}
