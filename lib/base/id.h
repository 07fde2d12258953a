/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: random identifiers, from getrandom. */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

/** id_random_bytes - aborts if the kernel cannot provide them. */
void id_random_bytes(void *ret_data, size_t len);
/** id_random - @len characters of [a-z0-9] and a NUL (5.17 bits each, no bias). */
void id_random(char *ret_text, size_t len);
/** id_is_valid - 1..@max characters of [A-Za-z0-9_-]. */
bool id_is_valid(const char *id, size_t max);
/** id_is_dotted - as id_is_valid; '.' too, but not first: "python3.11". */
bool id_is_dotted(const char *id, size_t max);
