/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: small allocations; they abort when memory is out. Data whose size a peer decides goes into a
 * struct buf with a maximum.
 */

#include "base/attr.h"
#include <stdlib.h>

void *xmalloc(size_t size) attr_owned(free) attr_not_null;
void *xcalloc(size_t count, size_t size) attr_owned(free) attr_not_null;
/** xrealloc_array - resize to @count elements of @size bytes, with an overflow check. */
void *xrealloc_array(void *ptr, size_t count, size_t size) attr_must_check attr_not_null;
char *xstrdup(const char *s) attr_owned(free) attr_not_null;
char *xstrndup(const char *s, size_t max) attr_owned(free) attr_not_null;
char *xmemdup0(const void *data, size_t len) attr_owned(free) attr_not_null;
char *xasprintf(const char *fmt, ...) attr_printf(1, 2) attr_owned(free) attr_not_null;

static inline void freep(void *pp)
{
	free(*(void **)pp);
}
#define cleanup_free attr_cleanup(freep)

/** NEW - a zeroed object of @type. */
#define NEW(type) ((type *)xcalloc(1, sizeof(type)))
