/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: validates the daemon's requests before the privileged program acts on them. Pure. */

#include "base/attr.h"
#include "base/error.h"
#include "engine/engine.h"
#include <stdbool.h>
#include <stddef.h>

/**
 * request_check - fields that the operation does not use must be zero, so that they can get a
 * meaning later. On failure @ret_request still has op, seq and, if valid, box_id, for the answer.
 */
int request_check(const void *data, size_t len, struct engine_request *ret_request,
                  struct error *err) attr_must_check;

/** request_limits_check - check the ranges. */
int request_limits_check(const struct engine_limits *limits, struct error *err) attr_must_check;

/** request_limits_within - check against the operator's maxima. */
int request_limits_within(const struct engine_limits *limits, const struct engine_limits *maxima,
                          struct error *err) attr_must_check;

/** request_limits_most - upper ends of the ranges, if the operator set no maxima. */
struct engine_limits request_limits_most(void);

/** request_limits_default - for --plan. */
struct engine_limits request_limits_default(void);
/** request_check_zygote - on failure *ret_request has its seq, or 0. */
int request_check_zygote(const void *data, size_t len, struct engine_zygote *ret_request,
                         struct error *err) attr_must_check;
