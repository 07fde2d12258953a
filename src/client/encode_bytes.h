/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: bytes in a request: as text, or as {"base64": ...} if they are none. Pure. */

#include "base/attr.h"
#include <jansson.h>
#include <stddef.h>

/** encode_bytes - Return: owned. */
json_t *encode_bytes(const char *data, size_t len) attr_must_check;
