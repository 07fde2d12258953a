/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: who did what: one line of JSON for each, in a file that is only ever appended to and whose
 * lines hold each other (chain/chain.h). No secrets, and of code only its hash.
 *
 * Lines are written by a thread of their own, grouped; what it has taken is on the disk before it
 * takes more. An answer does not wait for its line: a power failure, or a kill of the daemon, can
 * cost the lines of the last moments, and never the order or the truth of those that are there.
 *
 * Beside the file is its head (path + ".head"): number and hash of the last line, so that missing
 * ones are seen too; the store has it as well (audit_row.h). A file that has grown beyond its
 * size gets the number of its last line as a suffix, and the chain goes on in a new one.
 *
 * A log that is not as it was left: a torn last line, from a kill in the middle of a write, is
 * taken off and told in the next line. Anything else is damage: with audit.required the daemon does
 * not start; without, the file is set aside and the next line tells.
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
	uint64_t max_bytes; /* of one file */
	uint64_t keep;      /* full ones that are kept */
	bool required;
};

/* Strings are borrowed for the call; NULL: not known, or none. */
struct audit_event {
	const char *action; /* "session.create": noun and verb; a literal */
	const char *tenant, *key_id;
	const char *object; /* id of what it was done to */
	const char *result; /* "ok", the status of an execution, or the code of an error */
	const char *request_id;
	struct json_t *detail; /* an object; released by the call */
};

/** audit_close - after everything was written, or cannot be. */
void audit_close(struct audit *a);
/** audit_open - looks at what is there, with the rights of whoever started us. Blocks. */
int audit_open(const struct audit_config *config, struct audit **ret_audit,
               struct error *err) attr_must_check;
/** audit_anchor - where it ended, as somebody else remembers it; between audit_open and
 * audit_start. A log that is not what it was then is treated as a damaged one. */
int audit_anchor(struct audit *a, const struct chain_head *anchor,
                 struct error *err) attr_must_check;
/** audit_path - of the file that is written: absolute, without links. */
const char *audit_path(const struct audit *a);
/** audit_head - of what is on the disk. */
struct chain_head audit_head(struct audit *a);
/** audit_stop - everything that was told is written, or cannot be; nothing more is taken. */
void audit_stop(struct audit *a);
/** audit_give - the files to who will write them. */
int audit_give(struct audit *a, uid_t uid, gid_t gid, struct error *err) attr_must_check;
/** audit_start - from here on lines are written, by a thread that calls @on_thread first. */
int audit_start(struct audit *a, int (*on_thread)(struct error *err),
                struct error *err) attr_must_check;
/** audit_write - NULL for @a: nobody keeps a log. Never blocks, never fails: see audit_check. */
void audit_write(struct audit *a, const struct audit_event *event);
/** audit_check - ERR_UNAVAILABLE where a log is required and cannot be written. */
int audit_check(struct audit *a, struct error *err) attr_must_check;
/** audit_measure - a source of metrics; @ctx is the log. */
void audit_measure(void *ctx, struct metrics *m);
