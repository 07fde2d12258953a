/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: bytes as text (RFC 4648, with padding). Pure. */

#include "base/attr.h"
#include <stddef.h>

/** base64_encode - Return: owned, NUL-terminated. @len is bounded by what the caller read. */
char *base64_encode(const void *data, size_t len) attr_must_check;
