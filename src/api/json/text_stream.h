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

/** text_stream_take - the same bytes, except those held. Return: owned, possibly empty. */
char *text_stream_take(struct text_stream *s, const char *data, size_t len,
                       size_t *ret_len) attr_must_check;
/** text_stream_rest - the held bytes. */
char *text_stream_rest(struct text_stream *s, size_t *ret_len) attr_must_check;
/** text_stream_feed - Return: owned text, possibly empty. */
char *text_stream_feed(struct text_stream *s, const char *data, size_t len,
                       size_t *ret_len) attr_must_check;
