/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: input of the parsers in a block of exactly its size, so that a sanitizer sees a read beyond
 * it.
 */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Text with NULs. */
struct text {
	const char *data;
	size_t len;
};
/* clang-format off */
#define TEXT(literal) {literal, sizeof(literal) - 1}
/* clang-format on */

/** text_exact - the first @len bytes of @data. */
static inline char *text_exact(const void *data, size_t len)
{
	char *copy = malloc(len ? len : 1);

	if (!copy)
		abort();
	memcpy(copy, data, len);
	return copy;
}
