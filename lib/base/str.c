/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "base/alloc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool str_has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

int str_copy(char *dst, size_t size, const char *src)
{
	size_t len = strlen(src);

	assert(size > 0);
	if (len >= size) {
		dst[0] = '\0';
		return -ENAMETOOLONG;
	}
	memmove(dst, src, len + 1);
	return 0;
}

int str_format(char *dst, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	assert(size > 0);
	va_start(ap, fmt);
	n = vsnprintf(dst, size, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= size) {
		dst[0] = '\0';
		return -ENAMETOOLONG;
	}
	return 0;
}

void str_list_free(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

void str_list_freep(char ***list)
{
	str_list_free(*list);
	*list = NULL;
}

size_t str_list_count(char *const *list)
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

bool str_list_has(char *const *list, const char *s)
{
	for (; list && *list; list++)
		if (str_equal(*list, s))
			return true;
	return false;
}

char **str_list_copy(char *const *list)
{
	size_t count = str_list_count(list);
	char **copy = xcalloc(count + 1, sizeof(*copy));

	for (size_t i = 0; i < count; i++)
		copy[i] = xstrdup(list[i]);
	return copy;
}
