/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: bytes of unknown make into valid UTF-8, for everything that ends up in JSON. */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

bool utf8_is_valid(const char *data, size_t len);
/**
 * utf8_sanitize - a copy in which every maximal invalid part is U+FFFD, as the Unicode standard
 * recommends. NUL stays. Owned by the caller, NUL-terminated, length in @ret_len.
 */
char *utf8_sanitize(const char *data, size_t len, size_t *ret_len) attr_must_check;
/** utf8_cut - the largest length <= @len that does not cut inside a sequence. */
size_t utf8_cut(const char *data, size_t len);
