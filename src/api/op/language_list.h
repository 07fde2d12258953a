/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: which languages work, for the lists and messages of every dialect. */

#include "api/route.h"
#include <stdbool.h>
#include <stddef.h>

struct language_query;
struct runner;

/** op_language_is_there - on the host. */
bool op_language_is_there(const struct router *r, const struct runner *runner);
/** op_language_names - of those, with commas between; as many as fit. */
void op_language_names(const struct router *r, char *ret_names, size_t size);
/** op_language_then - call @then when the languages are known, within the bound of @query: now or
 * later. */
void op_language_then(struct router *r, struct http_request *req, const struct route_args *args,
                      const struct language_query *query, route_fn *then);
/** op_language_then_tools - for a list of tools, which names languages of the host. */
void op_language_then_tools(struct router *r, struct http_request *req,
                            const struct route_args *args, route_fn *then);
