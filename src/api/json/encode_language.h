/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a language as JSON, for every dialect. */

#include <jansson.h>
#include <stdbool.h>

struct runner;
struct template;

/** language_is_there - on @t, or on the host if @t is NULL or uses its root. */
bool language_is_there(const struct runner *r, const struct template *t);
/** encode_language - @version: NULL: not known. */
json_t *encode_language(const struct runner *r, const struct template *t, const char *version);
