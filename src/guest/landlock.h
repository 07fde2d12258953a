/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: Landlock says again, in a second mechanism, what the mounts of a box say: the runtime tree
 * can be read and executed, the workspace and temporary places written, nothing else. The ruleset
 * is made once by the agent; each payload puts itself under it. TCP is left alone: a box has only
 * its own loopback, and programs test servers on it.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>

/** landlock_abi - version the kernel has, 0 for none. */
int landlock_abi(void);
/**
 * landlock_make - a ruleset descriptor with every right that @abi knows. Places that are not there
 * are left out. @own_root: the root is the box's own to change, a layer that goes with it.
 * Return: the descriptor, or -1 with @err.
 */
int landlock_make(int abi, bool own_root, struct error *err) attr_must_check;
/**
 * landlock_allow_zero - let @ruleset allow writing to /dev/zero. Not part of landlock_make(): who
 * can open it for writing can map it shared, which is memory that RLIMIT_DATA does not count.
 * Return: 0 or a negative errno.
 */
int landlock_allow_zero(int ruleset, int abi) attr_must_check;
/** landlock_apply - put the calling process under @ruleset. Return: 0 or a negative errno. */
int landlock_apply(int ruleset) attr_must_check;
