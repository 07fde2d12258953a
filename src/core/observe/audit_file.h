/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the files of the audit log: the one that is written, its head, and full ones. Blocks; used
 * by the start of the daemon and then by the log's thread alone.
 */

#include "base/attr.h"
#include "base/error.h"
#include "chain/chain.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit_file {
	char *path; /* owned, as all */
	char *folder;
	const char *name; /* within path */
	int dir, fd, head_fd;
	struct chain_head head; /* of what is written */
	uint64_t size;
	bool is_longer;                 /* than @size, by what could not be taken back */
	struct chain_head settled_head; /* of what is on the disk */
	uint64_t settled_size;
	uint64_t max_bytes, keep;
};

/* What was found at the start. */
struct audit_found {
	uint64_t torn_bytes;     /* of a last line that was not complete: taken off */
	enum chain_fault damage; /* the file was set aside */
	uint64_t bad_line;
	char aside[64]; /* its new name */
};

/** audit_file_open - with @strict damage is an error (ERR_CONFIG) and nothing is changed. */
int audit_file_open(struct audit_file *f, bool strict, struct audit_found *ret_found,
                    struct error *err) attr_must_check;
/** audit_file_anchor - what else is known of where it ended: a log that ends before it, or is
 * another one there, is damaged as in audit_file_open. */
int audit_file_anchor(struct audit_file *f, bool strict, const struct chain_head *anchor,
                      struct audit_found *found, struct error *err) attr_must_check;
void audit_file_close(struct audit_file *f);
/** audit_file_settle - as spool_config.settle: what was written is on the disk, and its head. */
int audit_file_settle(struct audit_file *f, bool *ret_undone) attr_must_check;
/** audit_file_write - as spool_config.write: each line of @data becomes one of the chain. */
int audit_file_write(struct audit_file *f, const char *data, size_t len,
                     size_t *ret_taken) attr_must_check;
