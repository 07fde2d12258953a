/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static attr_noreturn void out_of_memory(void)
{
	static const char text[] = "out of memory\n";
	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)n;
	abort();
}

static void *check_allocated(void *ptr)
{
	if (!ptr)
		out_of_memory();
	return ptr;
}

/* xmalloc(0) may return NULL, which looks like a failure. */
void *xmalloc(size_t size)
{
	return check_allocated(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
	if (count == 0 || size == 0)
		count = size = 1;
	return check_allocated(calloc(count, size));
}

void *xrealloc_array(void *ptr, size_t count, size_t size)
{
	if (count == 0 || size == 0)
		count = size = 1;
	return check_allocated(reallocarray(ptr, count, size));
}

char *xstrdup(const char *s)
{
	return xmemdup0(s, strlen(s));
}

char *xstrndup(const char *s, size_t max)
{
	return xmemdup0(s, strnlen(s, max));
}

char *xmemdup0(const void *data, size_t len)
{
	char *copy;

	if (len == SIZE_MAX)
		out_of_memory();
	copy = xmalloc(len + 1);
	if (len > 0)
		memcpy(copy, data, len);
	copy[len] = '\0';
	return copy;
}

char *xasprintf(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		out_of_memory();
	return text;
}
