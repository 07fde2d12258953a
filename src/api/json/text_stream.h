/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a byte stream as UTF-8: an incomplete character is held until its rest arrives. Invalid
 * bytes become U+FFFD. Pure.
 */

#include "base/attr.h"
#include <stddef.h>

struct text_stream {
	char held[4]; /* start of a character */
	size_t held_len;
};

/** text_stream_feed - Return: owned text, possibly empty. */
char *text_stream_feed(struct text_stream *s, const char *data, size_t len,
                       size_t *ret_len) attr_must_check;
/** text_stream_end - the held bytes as text. */
char *text_stream_end(struct text_stream *s, size_t *ret_len) attr_must_check;
