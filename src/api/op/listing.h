/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: pages of lists from the store, which has more than memory. Without a store, or when its
 * writes fail, the caller lists memory.
 */

#include "api/internal.h"
#include <stdbool.h>

struct query_page;

/** listing_sessions - Return: whether the request is or will be answered; takes @page then. */
bool listing_sessions(struct router *r, struct http_request *req, const char *tenant,
                      const struct query_page *page);
/** listing_executions - of the session in @args, which is in memory. */
bool listing_executions(struct router *r, struct http_request *req, const struct route_args *args,
                        const struct query_page *page);
