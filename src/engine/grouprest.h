/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: groups of v1 that rest between two boxes. Making and removing groups is a tenth of what a
 * box costs the machine, the kernel's own clearing away included, and most of that is the one for
 * memory. A group whose box is gone may serve another with the same limits, under a new name, if
 * nothing of the first can be told in it:
 *
 *   memory   nobody was killed for want of it; no buffer of a socket is counted; what is charged
 *            still (pages of files that others read too, objects the kernel has yet to free) is
 *            little; the peak is set back
 *   cpu      the time of the period is given anew
 *
 * Groups that count what cannot be set back (pids.peak, cpuacct, all of v2) are removed as ever;
 * that they could be is the proof that no process is left in those that rest.
 *
 * They are empty, are removed with the engine, and swept like any group after it was killed.
 */

#include "engine/internal.h"

/* Of all trees together: with two that can rest, some twenty milliseconds of a busy machine. */
#define GROUPREST_SIZE 32

struct rested_group {
	char name[ENGINE_ID_LEN];
	size_t tree;
	int dir; /* owned */
	struct engine_limits limits;
};

struct grouprest {
	const struct host *host;                    /* borrowed */
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
 * grouprest_give - end the groups of a box that had @limits and is gone: those that may serve again
 * rest, all others are removed. Return: 0, or -EBUSY to try again later.
 */
int grouprest_give(struct grouprest *rest, const struct engine_limits *limits,
                   struct box_groups *groups) attr_must_check;

/** group_renew - of step_cgroup.c: set back what a box has used up in a group, for the next. */
int group_renew(const struct cgroup_tree *tree, int dir,
                const struct engine_limits *l) attr_must_check;
