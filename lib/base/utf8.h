/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: turns arbitrary bytes into valid UTF-8, for JSON. */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

/**
 * utf8_next - the first character of @len > 0 bytes. Return: its length, or that of the maximal
 * invalid part with *ret_valid false.
 */
size_t utf8_next(const char *data, size_t len, bool *ret_valid);
bool utf8_is_valid(const char *data, size_t len);
/**
 * utf8_sanitize - copy, with U+FFFD for every maximal invalid part, as Unicode recommends. NUL
 * stays. Return: owned, NUL-terminated.
 */
char *utf8_sanitize(const char *data, size_t len, size_t *ret_len) attr_must_check;
/** utf8_cut - the largest length <= @len that does not cut inside a sequence. */
size_t utf8_cut(const char *data, size_t len);
