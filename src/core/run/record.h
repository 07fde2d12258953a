/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what core writes into the audit log, in one place: sessions and executions. */

#include "core/observe/audit.h"
#include "driver/box_spec.h"
#include <stddef.h>

struct outcome;
struct session_info;

#define RECORD_HASH_LEN 65 /* hex and NUL */
#define RECORD_KEY_LEN  65

/* Borrowed for the call. */
struct record_execution {
	const char *tenant, *key_id, *request_id;
	const char *id;
	const char *session_id; /* NULL: none */
	const char *language;
	const char *code_hash;
	uint64_t timeout_us;
	const struct box_limits *limits; /* NULL: those of its session, which were told with it */
	const struct outcome *outcome;   /* NULL: it could not be run, for @failure */
	const struct error *failure;
};

/** record_hash - SHA-256 of code: a record tells which it was, not what it was. */
void record_hash(const char *code, size_t len, char ret_hex[RECORD_HASH_LEN]);
void record_execution(struct audit *a, const struct record_execution *what);
/** record_session - @action: "session.create" or "session.end". */
void record_session(struct audit *a, const char *action, const struct session_info *info);
