/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: string helpers that cannot truncate silently. */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

static inline bool str_equal(const char *a, const char *b)
{
	return __builtin_strcmp(a, b) == 0;
}
bool str_has_prefix(const char *s, const char *prefix);
/** str_copy - Return: 0, or -ENAMETOOLONG with an empty @dst. */
int str_copy(char *dst, size_t size, const char *src) attr_must_check;
/** str_format - snprintf that fails (-ENAMETOOLONG, empty @dst) instead of truncating. */
int str_format(char *dst, size_t size, const char *fmt, ...) attr_printf(3, 4) attr_must_check;
/** str_list_free - a NULL-terminated array of owned strings. */
void str_list_free(char **list);
void str_list_freep(char ***list);
#define cleanup_str_list attr_cleanup(str_list_freep)
size_t str_list_count(char *const *list);
/** str_list_has - false for NULL. */
bool str_list_has(char *const *list, const char *s);
/** str_list_copy - a deep copy; an empty list for NULL. */
char **str_list_copy(char *const *list) attr_owned(str_list_free);
