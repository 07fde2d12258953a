/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the daemon drops before it reads the first byte of a client: ids, capabilities, core
 * dumps, and all system calls but those of a socket server. Called once, in this order, after
 * everything that needs more is open. Irreversible.
 *
 * Capabilities and filters are per thread. The loop's thread reads untrusted input and writes no
 * file; the store's writes to open files without sockets; the audit log's may also create, rename
 * and remove files, and reads only what it wrote. Each thread seals itself.
 */

#include "base/attr.h"
#include "base/error.h"
#include <sys/types.h>

/** lockdown_core_limit - RLIMIT_CORE of all our processes, while root may still raise it. */
int lockdown_core_limit(struct error *err) attr_must_check;
/** lockdown_drop_ids - switch to @uid and @gid without groups; checks that there is no way back. */
int lockdown_drop_ids(uid_t uid, gid_t gid, struct error *err) attr_must_check;
/** lockdown_seal - no capabilities, no new privileges, no core dumps, and the filter. */
int lockdown_seal(struct error *err) attr_must_check;
/** lockdown_seal_audit - called in the audit log's thread. */
int lockdown_seal_audit(struct error *err) attr_must_check;
/** lockdown_seal_store - called in the database thread. */
int lockdown_seal_store(struct error *err) attr_must_check;
