/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: anchor of the audit log in the store: an attacker who changes the log and its head would
 * have to change it too. It follows the log every second, and after a crash at the next start. A
 * log that ends before its anchor, or differs there, was tampered with.
 */

#include "base/attr.h"
#include "base/error.h"

struct audit;
struct loop;
struct store;
struct audit_row;

/** audit_row_check - call before store_start; see audit_anchor. */
int audit_row_check(struct store *s, struct audit *a, struct error *err) attr_must_check;

/** audit_row_free - writes the anchor; call between audit_stop and store_close. */
void audit_row_free(struct audit_row *row);
/** audit_row_new - all arguments are borrowed. */
struct audit_row *audit_row_new(struct store *s, struct audit *a, struct loop *loop)
	attr_owned(audit_row_free);
