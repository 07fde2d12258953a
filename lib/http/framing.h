/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: strict check of the bytes of an HTTP/1.1 connection, before anything parses them. Pure: no
 * I/O. Every line ends with CRLF; no line has another control character, except tabs in headers;
 * no header is folded; a header's name is a token; the length of a body is given once, in one way;
 * chunks are as long as announced.
 *
 * A parser that accepts less than this, or a proxy that accepts it differently, disagrees with us
 * about where a request ends; what lies between is a smuggled request.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer header lines do not matter for framing; longer chunk lines are invalid. */
#define FRAMING_LINE_MAX 128

enum framing_state {
	FRAMING_REQUEST,    /* request line, or an empty line before it */
	FRAMING_HEADER,     /* header line, or the empty one */
	FRAMING_BODY,       /* @left bytes */
	FRAMING_CHUNK,      /* line with the size of a chunk */
	FRAMING_CHUNK_DATA, /* @left bytes */
	FRAMING_CHUNK_END,  /* the empty line after them */
	FRAMING_TRAILER,    /* trailer line, or the empty one */
	FRAMING_UPGRADE,    /* what follows may be another protocol: not checked */
	FRAMING_COUNT
};

/* All zero: at the start of a connection. */
struct framing {
	enum framing_state state;
	char line[FRAMING_LINE_MAX];               /* start of the current line */
	size_t line_len;                           /* without CRLF; may exceed the buffer */
	bool cr;                                   /* its last byte was CR */
	bool named;                                /* it has a colon, or in a chunk's a semicolon */
	bool is_get, has_length, chunked, upgrade; /* of the current request */
	uint64_t left;
	uint64_t heads;  /* complete ones */
	const char *bad; /* why the bytes are invalid; NULL: they are not */
};

/**
 * framing_feed - the next bytes of the connection. Return: how many are valid; less than @len with
 * @f->bad set, after which nothing is valid.
 */
size_t framing_feed(struct framing *f, const char *data, size_t len);
/** framing_is_body - the bytes expected, or found invalid, belong to a body that has begun. */
bool framing_is_body(const struct framing *f);
