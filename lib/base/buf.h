/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a growable byte buffer with a hard maximum, for data whose size a peer decides. An uncounted
 * NUL follows the bytes.
 */

#include "base/attr.h"
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data; /* owned; NULL until the first byte */
	size_t len;
	size_t cap;
	size_t max;
};

#define BUF_INIT(max_bytes) ((struct buf){.max = (max_bytes)})

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
#define cleanup_buf attr_cleanup(buf_done)

/** buf_add - Return: 0, or -ENOBUFS (maximum reached or out of memory) with nothing added. */
int buf_add(struct buf *b, const void *data, size_t len) attr_must_check;
int buf_add_str(struct buf *b, const char *s) attr_must_check;
int buf_addf(struct buf *b, const char *fmt, ...) attr_printf(2, 3) attr_must_check;
/** buf_add_some - as much as fits. Return: bytes added. */
size_t buf_add_some(struct buf *b, const void *data, size_t len);
/** buf_reserve - room for @len more bytes at b->data + b->len; the caller raises b->len. */
int buf_reserve(struct buf *b, size_t len) attr_must_check;
void buf_consume(struct buf *b, size_t len);
void buf_reset(struct buf *b);
/** buf_trim - give back room that no byte is in. */
void buf_trim(struct buf *b);
/** buf_take - the bytes, NUL-terminated, never NULL; empties the buffer. */
char *buf_take(struct buf *b, size_t *ret_len) attr_must_check;
