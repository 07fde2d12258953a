/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what an agent can do about an error, in tools and arguments. Pure. */

#include "base/buf.h"
#include "base/error.h"
#include <stdbool.h>

/** remedy_describe - the error in one sentence. */
const char *remedy_describe(enum error_code code);
/** remedy_name_argument - @err about an unknown field in the words of a tool. */
void remedy_name_argument(struct error *err);
/** remedy_add_text - @text of a denial, with the arguments of tools for the fields of requests. */
void remedy_add_text(const char *text, struct buf *to);
/** remedy_of - @brief: for the default profile, whose tools are few. */
const char *remedy_of(const struct error *err, bool brief);
