/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: groups of v1 for processors that rest between two boxes, because making and removing groups
 * is a good part of what a box costs. Such a group counts nothing that anybody reads, and what it
 * limits is given anew by writing the quota; so one whose box is gone serves another with the same
 * limits, under a new name.
 *
 * No other group can. What pids.peak and the accounts of v2 count cannot be set back, and memory
 * may be charged to a group long after its last process: an inotify instance that is on its way in
 * a message of nobody's charges whatever it hears of to the group of whoever made it.
 *
 * The box's other groups are removed first: that they could be is the proof that no process is left
 * in the one that rests. Those that rest are empty, are removed with the engine, and swept like any
 * group after it was killed.
 */

#include "engine/internal.h"

#define GROUPREST_SIZE 16

struct rested_group {
	char name[ENGINE_ID_LEN];
	int dir; /* owned */
	struct engine_limits limits;
};

struct grouprest {
	const struct host *host;                    /* borrowed */
	int tree;                                   /* whose groups rest; -1: none's do */
	struct rested_group groups[GROUPREST_SIZE]; /* the longest rested first */
	size_t count;
};

/** limits_are_same - whether groups with the limits @a will do for a box with @b. */
bool limits_are_same(const struct engine_limits *a, const struct engine_limits *b);

void grouprest_open(struct grouprest *rest, const struct host *host);
void grouprest_close(struct grouprest *rest);
/** grouprest_take - move what fits @limits into @groups, under the name that these have. */
void grouprest_take(struct grouprest *rest, const struct engine_limits *limits,
                    struct box_groups *groups);
/**
 * grouprest_give - end the groups of a box that had @limits and is gone: what may serve again
 * rests, all others are removed. Return: 0, or -EBUSY to try again later.
 */
int grouprest_give(struct grouprest *rest, const struct engine_limits *limits,
                   struct box_groups *groups) attr_must_check;

/** group_renew - of step_cgroup.c: give the time of the period anew, and end what is owed of it. */
int group_renew(const struct cgroup_tree *tree, int dir,
                const struct engine_limits *l) attr_must_check;
