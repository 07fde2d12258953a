/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the gate of the privileged program: bytes of the daemon become a request that holds, or an
 * error. Pure. Everything behind it relies on what is checked here, so there is one place to read.
 */

#include "base/attr.h"
#include "base/error.h"
#include "engine/engine.h"
#include <stdbool.h>
#include <stddef.h>

/**
 * request_check - @data of @len bytes as a request into @ret_request. Fields that the operation
 * does not use must be zero: what nobody reads today cannot come to mean something tomorrow.
 * On failure @ret_request still has op, seq and (where it was valid) box_id, for the answer.
 */
int request_check(const void *data, size_t len, struct engine_request *ret_request,
                  struct error *err) attr_must_check;

/** request_limits_check - ranges; shared with --plan. */
int request_limits_check(const struct engine_limits *limits, struct error *err) attr_must_check;

/** request_limits_within - nothing above what the operator allows a box. */
int request_limits_within(const struct engine_limits *limits, const struct engine_limits *maxima,
                          struct error *err) attr_must_check;

/** request_limits_most - the upper ends of the ranges: maxima where the operator set none. */
struct engine_limits request_limits_most(void);

/** request_limits_default - the limits of a box nobody said anything about, for --plan. */
struct engine_limits request_limits_default(void);
/** request_check_zygote - the same of a ZYGOTE. After a failure *ret_request has its seq, or 0. */
int request_check_zygote(const void *data, size_t len, struct engine_zygote *ret_request,
                         struct error *err) attr_must_check;
