/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the end of the audit log, in the store: an anchor that an attacker who changes the log and
 * its head would have to change too. The log is written first, so it is never behind; the anchor
 * follows every second. After a crash in between the log is longer, and the anchor follows at the
 * next start; a log that ends before its anchor, or differs there, was tampered with.
 */

#include "base/attr.h"
#include "base/error.h"

struct audit;
struct loop;
struct store;
struct audit_row;

/** audit_row_check - before store_start: compare the log with its anchor; see audit_anchor. */
int audit_row_check(struct store *s, struct audit *a, struct error *err) attr_must_check;

/** audit_row_free - writes the anchor; after audit_stop and before the store is closed. */
void audit_row_free(struct audit_row *row);
/** audit_row_new - all arguments are borrowed. */
struct audit_row *audit_row_new(struct store *s, struct audit *a, struct loop *loop)
	attr_owned(audit_row_free);
