/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: binary units for sizes in bytes, all of one type, uint64_t. A size that is printed in units
 * is divided as (double)bytes / MIB.
 */

#include <stdint.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)
