/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: docs/api/openapi.yaml as JSON; made by tools/gen-openapi.py. */

#include <stddef.h>

extern const unsigned char openapi_json[];
extern const size_t openapi_json_len;
