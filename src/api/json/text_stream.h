/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: bytes in pieces that are cut anywhere, as pieces of text: a character that is cut in two
 * waits for its rest. Bytes that are no text become U+FFFD. Pure.
 */

#include "base/attr.h"
#include <stddef.h>

struct text_stream {
	char held[4]; /* the begin of a character */
	size_t held_len;
};

/**
 * text_stream_feed - Return: owned text, possibly empty, of @ret_len bytes; what may be the begin
 * of a character is held back.
 */
char *text_stream_feed(struct text_stream *s, const char *data, size_t len,
                       size_t *ret_len) attr_must_check;
/** text_stream_end - the text of what was held back, at the end of the stream. */
char *text_stream_end(struct text_stream *s, size_t *ret_len) attr_must_check;
