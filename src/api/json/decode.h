/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: JSON -> what core understands, with the path of the bad field. Types are exact: "true" is
 * not true, null is not "absent", and a field nobody knows is an error. What is allowed is core's
 * business; here is only what is well-formed. Pure.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/run/run.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct decoded_exec {
	struct run_request request;
	bool stream;
	json_t *event;   /* owned; NULL: the code has no handler */
	json_t *context; /* owned; NULL: not given */
};

struct decode_limits {
	size_t max_code_bytes;
};

void decoded_exec_done(struct decoded_exec *d);
#define cleanup_decoded_exec attr_cleanup(decoded_exec_done)

/** decode_exec - body of POST /api/v1/execute. @ret_run is zeroed; done by the caller in any case.
 */
int decode_exec(const char *body, size_t len, const struct decode_limits *limits,
                struct decoded_exec *ret_run, struct error *err) attr_must_check;
/** decode_exec_object - the same of a body that was read already. */
int decode_exec_object(const json_t *object, const struct decode_limits *limits,
                       struct decoded_exec *ret_run, struct error *err) attr_must_check;
