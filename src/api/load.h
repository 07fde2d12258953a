/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what a path names may have left memory, or belong to an earlier daemon: it is brought back
 * from the store before the handler is called, which then finds it like any other.
 */

#include "api/internal.h"
#include <stdbool.h>

/**
 * load_then_handle - call the handler of @route, now or when what it needs was looked for. @args is
 * borrowed.
 */
void load_then_handle(struct router *r, struct http_request *req, const struct route *route,
                      const struct route_args *args);
