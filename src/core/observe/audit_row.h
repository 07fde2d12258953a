/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: where the audit log ends, in the store: an anchor that whoever changes the log and its head
 * would have to change as well. The log is written first, so it is never behind; each second the
 * anchor follows. After a crash between the two the log is longer, and the anchor follows at the
 * next start; a log that ends before its anchor, or says something else there, was changed.
 */

#include "base/attr.h"
#include "base/error.h"

struct audit;
struct loop;
struct store;
struct audit_row;

/** audit_row_check - before store_start: the log against its anchor; see audit_anchor. */
int audit_row_check(struct store *s, struct audit *a, struct error *err) attr_must_check;

/** audit_row_free - writes where it ends, after audit_stop and before the store is closed. */
void audit_row_free(struct audit_row *row);
/** audit_row_new - all are borrowed. */
struct audit_row *audit_row_new(struct store *s, struct audit *a, struct loop *loop)
	attr_owned(audit_row_free);
