/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what a run writes to the audit log. */

#include "core/observe/audit.h"
#include "driver/box_spec.h"
#include <jansson.h>
#include <stddef.h>

struct outcome;

#define RUN_AUDIT_HASH_LEN 65 /* hex and NUL */
#define RUN_AUDIT_KEY_LEN  65

/* Borrowed for the call. */
struct run_audit {
	const char *tenant, *key_id, *request_id;
	const char *id;
	const char *session_id; /* NULL: none */
	const char *language;
	const char *code_hash;
	uint64_t timeout_us;
	const struct box_limits *limits; /* NULL: those of its session, logged with it */
	const struct outcome *outcome;   /* NULL: it could not be run, for @failure */
	const struct error *failure;
};

/** run_audit_hash - SHA-256 of code: the log identifies the code without containing it. */
void run_audit_hash(const char *code, size_t len, char ret_hex[RUN_AUDIT_HASH_LEN]);
void run_audit_end(struct audit *a, const struct run_audit *what);
/** run_audit_limits - @limits as JSON. Return: owned. */
json_t *run_audit_limits(const struct box_limits *limits) attr_must_check;
