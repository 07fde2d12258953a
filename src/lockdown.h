/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the daemon takes from itself before it reads a byte from anybody: ids, capabilities,
 * core dumps, and all system calls but those of a program that serves sockets. Called once, in this
 * order, after everything that needs more is open. Not reversible.
 *
 * Capabilities and filters belong to a thread. There are two: the loop's, which reads what
 * strangers send and may write no file, and the store's, which writes files that are open and may
 * speak to nobody. Each seals itself.
 */

#include "base/attr.h"
#include "base/error.h"
#include <sys/types.h>

/** lockdown_drop_ids - become @uid and @gid with no groups; checked that there is no way back. */
int lockdown_drop_ids(uid_t uid, gid_t gid, struct error *err) attr_must_check;
/** lockdown_seal - no capabilities, no new ones, no dumps, the filter. */
int lockdown_seal(struct error *err) attr_must_check;
/** lockdown_seal_store - the same for the thread that has the database. Called in it. */
int lockdown_seal_store(struct error *err) attr_must_check;
