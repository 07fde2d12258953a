/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the audit log: who did what, one line of JSON each, in an append-only file whose lines form
 * a hash chain (chain/chain.h). No secrets; of code only its hash.
 *
 * A thread writes and syncs lines in groups. Responses do not wait: a power failure or a kill can
 * lose the last lines, never the order or truth of the others.
 *
 * The head (path + ".head"), number and hash of the last line, reveals missing lines; the store has
 * a copy (audit_row.h). A full file is renamed with the number of its last line as suffix; the
 * chain continues in a new one.
 *
 * At start, a torn last line, from a kill during a write, is removed and recorded. Anything else is
 * damage: with audit.required the daemon does not start; without, the file is set aside, which the
 * next line records.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chain/chain.h"

struct audit;
struct json_t;
struct metrics;

struct audit_config {
	const char *path;
	uint64_t max_bytes;
	uint64_t keep; /* rotated files */
	bool required;
};

/* Strings are borrowed for the call; NULL: unknown or none. */
struct audit_event {
	const char *action; /* noun.verb, "session.create"; a literal */
	const char *tenant, *key_id;
	const char *object; /* id */
	const char *result; /* "ok", status of an execution, or error code */
	const char *request_id;
	struct json_t *detail; /* an object; the call releases it */
};

/** audit_close - after everything is written, or has failed. */
void audit_close(struct audit *a);
/** audit_open - check the existing log, with the starting user's rights. Blocks. */
int audit_open(const struct audit_config *config, struct audit **ret_audit,
               struct error *err) attr_must_check;
/**
 * audit_anchor - call between audit_open and audit_start. A log that does not match the store's
 * copy of the head is damaged.
 */
int audit_anchor(struct audit *a, const struct chain_head *anchor,
                 struct error *err) attr_must_check;
/** audit_path - absolute, without links. */
const char *audit_path(const struct audit *a);
/** audit_head - of what is on disk. */
struct chain_head audit_head(struct audit *a);
/** audit_stop - write what is queued; accepts no more. */
void audit_stop(struct audit *a);
/** audit_give - chown the files to the daemon's user. */
int audit_give(struct audit *a, uid_t uid, gid_t gid, struct error *err) attr_must_check;
/** audit_start - start the thread, which calls @on_thread first. */
int audit_start(struct audit *a, int (*on_thread)(struct error *err),
                struct error *err) attr_must_check;
/** audit_write - @a NULL: audit off. Never blocks or fails: see audit_check. */
void audit_write(struct audit *a, const struct audit_event *event);
/** audit_check - ERR_UNAVAILABLE if a required log cannot be written. */
int audit_check(struct audit *a, struct error *err) attr_must_check;
/** audit_measure - a metrics source; @ctx: the log. */
void audit_measure(void *ctx, struct metrics *m);
