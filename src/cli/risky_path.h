/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: files that programs of the user execute, or take commands from, by themselves: when a
 * directory is entered or opened, at a commit, at the start of a build. What a box writes there
 * would run as the user, who may not have seen it. Directories are descriptors; what is in them is
 * hostile.
 */

#include "base/attr.h"
#include <sys/types.h>

/* A path that is to be changed. */
struct risky_change {
	int before, after;         /* directories: what is there, and what is to be */
	const char *path;          /* relative */
	mode_t old_mode, new_mode; /* tree_entry_mode */
};

/** risky_path_reason - Return: who would run it, a literal; NULL: nobody. */
const char *risky_path_reason(const struct risky_change *change);

/* For risky_path.c. */

/** risky_git_reason - the same for git: repositories, and what their settings name. */
const char *risky_git_reason(const struct risky_change *change);
/** risky_npm_reason - the same for a package.json: its scripts. */
const char *risky_npm_reason(const struct risky_change *change);
