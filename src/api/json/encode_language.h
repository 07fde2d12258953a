/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: languages, as lists of all dialects show them. */

#include <jansson.h>

struct runner;
struct template;
struct toolchains;

/** encode_language - in the root of @t, or the host's if @t is NULL or uses that. */
json_t *encode_language(const struct toolchains *all, const struct template *t,
                        const struct runner *r);
