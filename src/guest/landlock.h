/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: Landlock repeats what a box's mounts enforce: read and execute the runtime tree, write the
 * workspace and temporary directories. The agent creates the ruleset once; each payload restricts
 * itself with it. TCP is left alone: a box has only its own loopback, and programs test servers on
 * it.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>

/** landlock_abi - the kernel's version, 0: no Landlock. */
int landlock_abi(void);
/**
 * landlock_make - a ruleset with every right that @abi knows; skips missing paths. @own_root: the
 * box may change its root. Return: the descriptor, or -1 with @err.
 */
int landlock_make(int abi, bool own_root, struct error *err) attr_must_check;
/**
 * landlock_allow_zero - allow writing to /dev/zero. Not in landlock_make(): a writable /dev/zero
 * can be mapped shared, which RLIMIT_DATA does not count.
 */
int landlock_allow_zero(int ruleset, int abi) attr_must_check;
/** landlock_apply - restrict the calling process. */
int landlock_apply(int ruleset) attr_must_check;
