/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: sessions and executions by the id in a path. lookup_then_handle loads those that are not in
 * memory from the store before the handler runs.
 *
 * Ids of another tenant, unknown ids and malformed ids get the same error: a caller must not learn
 * which ids others use.
 */

#include "api/internal.h"

struct run_record;
struct session;

/** lookup_session - NULL with ERR_SESSION_NOT_FOUND in *err. */
struct session *lookup_session(struct router *r, const struct route_args *args, struct error *err);
/** lookup_execution - NULL with ERR_EXECUTION_NOT_FOUND in *err. */
struct run_record *lookup_execution(struct router *r, const struct route_args *args,
                                    struct error *err);
/** lookup_then_handle - call the handler of @route, perhaps after loading. @args is borrowed. */
void lookup_then_handle(struct router *r, struct http_request *req, const struct route *route,
                        const struct route_args *args);
