/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define BUF_MIN_CAP 64

void buf_init(struct buf *b, size_t max)
{
	*b = BUF_INIT(max);
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = BUF_INIT(b->max);
}

/* Doubling keeps appending linear. */
static size_t grown_cap(const struct buf *b, size_t need)
{
	size_t cap = b->cap < BUF_MIN_CAP ? BUF_MIN_CAP : b->cap;

	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	return cap - 1 > b->max ? b->max + 1 : cap;
}

int buf_reserve(struct buf *b, size_t len)
{
	size_t need;
	char *data;

	/* The NUL needs a byte too. */
	if (len > b->max - b->len || b->len + len == SIZE_MAX)
		return -ENOBUFS;
	need = b->len + len + 1;
	if (need <= b->cap)
		return 0;

	/* A peer decides the size: return an error instead of aborting. */
	size_t cap = grown_cap(b, need);
	data = realloc(b->data, cap);
	if (!data)
		return -ENOBUFS;
	data[b->len] = '\0';
	b->data = data;
	b->cap = cap;
	return 0;
}

int buf_add(struct buf *b, const void *data, size_t len)
{
	if (buf_reserve(b, len) < 0)
		return -ENOBUFS;
	if (len > 0)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int buf_add_str(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || buf_reserve(b, (size_t)n) < 0)
		return -ENOBUFS;

	va_start(ap, fmt);
	n = vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
	return 0;
}

size_t buf_add_some(struct buf *b, const void *data, size_t len)
{
	size_t room = b->max - b->len;
	size_t some = len < room ? len : room;

	return buf_add(b, data, some) < 0 ? 0 : some;
}

void buf_consume(struct buf *b, size_t len)
{
	assert(len <= b->len);
	if (len == 0)
		return;
	b->len -= len;
	memmove(b->data, b->data + len, b->len + 1);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

void buf_trim(struct buf *b)
{
	char *data = b->data ? realloc(b->data, b->len + 1) : NULL;

	if (!data)
		return;
	b->data = data;
	b->cap = b->len + 1;
}

char *buf_take(struct buf *b, size_t *ret_len)
{
	char *data = b->data ? b->data : xmemdup0("", 0);

	if (ret_len)
		*ret_len = b->len;
	*b = BUF_INIT(b->max);
	return data;
}
