/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the daemon takes from itself before it reads a byte from anybody: ids, capabilities,
 * core dumps, and all system calls but those of a program that serves sockets. Called once, in this
 * order, after everything that needs more is open. Not reversible.
 *
 * Capabilities and filters belong to a thread. The loop's reads what strangers send and may write
 * no file; the store's writes files that are open and may speak to nobody; the audit log's may also
 * make, rename and remove files, and reads nothing but what it wrote. Each seals itself.
 */

#include "base/attr.h"
#include "base/error.h"
#include <sys/types.h>

/** lockdown_drop_ids - become @uid and @gid with no groups; checked that there is no way back. */
int lockdown_drop_ids(uid_t uid, gid_t gid, struct error *err) attr_must_check;
/** lockdown_seal - no capabilities, no new ones, no dumps, the filter. */
int lockdown_seal(struct error *err) attr_must_check;
/** lockdown_seal_audit - the same for the thread that writes the audit log. Called in it. */
int lockdown_seal_audit(struct error *err) attr_must_check;
/** lockdown_seal_store - the same for the thread that has the database. Called in it. */
int lockdown_seal_store(struct error *err) attr_must_check;
