/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a stream as lines of at most a given length. Of a longer one, which is not kept, the id of
 * the message remains if it can be seen near the beginning or the end, where servers write it.
 * Pure.
 */

#include "base/buf.h"
#include <stdbool.h>
#include <stdint.h>

#define LINES_EDGE 256

struct lines {
	struct buf buf;
	size_t max;
	size_t seen;  /* of buf: no line ends there */
	size_t taken; /* of buf: lines that were returned */
	bool is_cut;  /* the present line is too long; buf has its beginning and its latest part */
};

struct line {
	const char *text; /* until the next call */
	size_t len;
	bool is_cut;
	uint32_t id; /* if it is cut; 0: not seen */
};

void lines_init(struct lines *l, size_t max);
void lines_done(struct lines *l);
void lines_reset(struct lines *l);
/** lines_add - after lines_next has returned false; at most LINES_EDGE * 256 bytes at a time. */
void lines_add(struct lines *l, const char *data, size_t len);
bool lines_next(struct lines *l, struct line *ret);
/** lines_id - of a message that cannot be read, see above. Return: 0: not seen. */
uint32_t lines_id(const char *text, size_t len);
