/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the daemon takes from itself before it reads a byte from anybody: ids, capabilities,
 * core dumps, and all system calls but those of a program that serves sockets. Called once, in this
 * order, from the one thread there is, after everything that needs more is open. Not reversible.
 */

#include "base/attr.h"
#include "base/error.h"
#include <sys/types.h>

/** lockdown_drop_ids - become @uid and @gid with no groups; checked that there is no way back. */
int lockdown_drop_ids(uid_t uid, gid_t gid, struct error *err) attr_must_check;
/** lockdown_seal - no capabilities, no new ones, no dumps, the filter. */
int lockdown_seal(struct error *err) attr_must_check;
