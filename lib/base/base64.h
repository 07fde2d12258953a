/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: base64 (RFC 4648, standard alphabet, padded). Pure. */

#include "base/attr.h"
#include <stddef.h>

/** base64_decode - Return: owned bytes, NUL appended, length in @ret_len; NULL: not base64. */
char *base64_decode(const char *text, size_t len, size_t *ret_len) attr_must_check;
/** base64_encode - Return: owned, NUL-terminated. */
char *base64_encode(const void *data, size_t len) attr_must_check;
