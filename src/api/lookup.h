/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: sessions and executions by the id in a path. lookup_then_handle first loads those not in
 * memory from the store.
 *
 * Other tenants' ids, unknown and malformed ids get the same error: a caller must not learn which
 * ids others use.
 */

#include "api/internal.h"

struct run_record;
struct session;

/** lookup_session - NULL with ERR_SESSION_NOT_FOUND. */
struct session *lookup_session(struct router *r, const struct route_args *args, struct error *err);
/** lookup_execution - NULL with ERR_EXECUTION_NOT_FOUND. */
struct run_record *lookup_execution(struct router *r, const struct route_args *args,
                                    struct error *err);
/** lookup_then_handle - call @route's handler, perhaps after loading. @args is borrowed. */
void lookup_then_handle(struct router *r, struct http_request *req, const struct route *route,
                        const struct route_args *args);
