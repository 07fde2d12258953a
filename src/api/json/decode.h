/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: bodies of requests -> the structs that core takes. Each body has a field table (fields.h);
 * here are the tables and what a table cannot say. Only the form is checked: what is allowed is
 * decided by core. Pure.
 */

#include "api/json/fields.h"
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

/* Body of POST /api/v1/execute. */
extern const struct fields decode_exec_fields;
/** decode_exec - @ret_exec is zeroed; the caller releases it in any case. */
int decode_exec(const char *body, size_t len, const struct decode_limits *limits,
                struct decoded_exec *ret_exec, struct error *err) attr_must_check;
/** decode_exec_object - the same from a parsed body. */
int decode_exec_object(const json_t *object, const struct decode_limits *limits,
                       struct decoded_exec *ret_exec, struct error *err) attr_must_check;
