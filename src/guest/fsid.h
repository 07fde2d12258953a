/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: creates objects owned by the payload without becoming it. Changes the ids by which the
 * kernel owns and checks files, not those by which it signals and traces.
 */

#include "base/attr.h"
#include <sys/types.h>

struct fsid {
	int death_signal; /* the agent's parent-death signal */
};

/**
 * fsid_take - new files and pipes belong to @uid and @gid until fsid_give_back(), which must follow
 * in any case.
 */
int fsid_take(struct fsid *f, uid_t uid, gid_t gid) attr_must_check;
/** fsid_give_back - Return: 0, or a negative errno: not restored. */
int fsid_give_back(const struct fsid *f) attr_must_check;
