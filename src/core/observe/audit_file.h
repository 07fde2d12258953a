/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the files of the audit log: current, head, and rotated. Blocks; used at start, then only by
 * the log's thread.
 */

#include "base/attr.h"
#include "base/error.h"
#include "chain/chain.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit_file {
	char *path; /* owned, like all pointers here */
	char *folder;
	const char *name; /* within path */
	int dir, fd, head_fd;
	struct chain_head head; /* written */
	uint64_t size;
	bool is_longer;                 /* than @size: truncating a failed write failed */
	struct chain_head settled_head; /* on disk */
	uint64_t settled_size;
	uint64_t max_bytes, keep;
};

struct audit_found {
	uint64_t torn_bytes;     /* of a removed torn line */
	enum chain_fault damage; /* set aside */
	uint64_t bad_line;
	char aside[64]; /* new name */
};

/** audit_file_open - with @strict, damage is an error (ERR_CONFIG) and nothing is changed. */
int audit_file_open(struct audit_file *f, bool strict, struct audit_found *ret_found,
                    struct error *err) attr_must_check;
/** audit_file_anchor - a log that ends before @anchor, or differs there, is damaged. */
int audit_file_anchor(struct audit_file *f, bool strict, const struct chain_head *anchor,
                      struct audit_found *found, struct error *err) attr_must_check;
void audit_file_close(struct audit_file *f);
/** audit_file_settle - spool_config.settle: sync, then write the head. */
int audit_file_settle(struct audit_file *f, bool *ret_undone) attr_must_check;
/** audit_file_write - spool_config.write. */
int audit_file_write(struct audit_file *f, const char *data, size_t len,
                     size_t *ret_taken) attr_must_check;
