/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what a box reads: frames of four bytes, the length in network order, and JSON. Pure.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "gateway/scan.h"

#define FRAME_HEAD 4
#define URL_LEN    2048

/** frame_length - of the message that a head announces. */
size_t frame_length(const unsigned char head[FRAME_HEAD]);

/* A request of a box: parts of its text. */
struct request {
	char url[URL_LEN];
	char tool[256];
	struct scan_value arguments; /* an object, or absent */
};

/** request_read - Return: NULL, or what is wrong with it. */
const char *request_read(const char *text, size_t len, struct request *ret) attr_must_check;

/** answer_begin - room for the head; then add JSON. @ret must be new. */
int answer_begin(struct buf *ret) attr_must_check;
/** answer_end - write the head. */
void answer_end(struct buf *b);
/** answer_string - add @text as JSON; it is cut at the maximum of @b. */
int answer_string(struct buf *b, const char *text) attr_must_check;
/** answer_error - a whole frame. @ret must be new, with room for 4 KiB. */
void answer_error(struct buf *ret, const char *text);
