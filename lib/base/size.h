/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: binary units for sizes in bytes, all uint64_t. */

#include <stdint.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)
