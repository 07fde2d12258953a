/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the files of the audit log: the current one, its head, and rotated ones. Blocks; used at
 * start, and then by the log's thread only.
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
	struct chain_head head; /* of what is written */
	uint64_t size;
	bool is_longer; /* than @size, by a failed write that could not be truncated */
	struct chain_head settled_head; /* of what is on disk */
	uint64_t settled_size;
	uint64_t max_bytes, keep;
};

/* What audit_file_open found. */
struct audit_found {
	uint64_t torn_bytes;     /* of an incomplete last line, removed */
	enum chain_fault damage; /* the file was set aside */
	uint64_t bad_line;
	char aside[64]; /* its new name */
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
/** audit_file_write - spool_config.write: chain each line of @data. */
int audit_file_write(struct audit_file *f, const char *data, size_t len,
                     size_t *ret_taken) attr_must_check;
