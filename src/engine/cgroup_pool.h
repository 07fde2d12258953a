/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: groups made ahead. Making a box's groups takes the kernel's global lock once for each tree
 * and is the second most expensive part of a box; it depends on nothing of the box but its limits,
 * and most boxes have the same. So a few wait with the limits of the latest box written. What
 * the kernel counts in them begins at zero: those of an earlier box are among them only where that
 * can be set back (grouprest.h).
 *
 * They are empty, are removed with the engine, and swept like any group after it was killed.
 */

#include "base/error.h"
#include "engine/grouprest.h"
#include "engine/internal.h"

#define CGROUP_POOL_SIZE 2

struct cgroup_pool {
	const struct host *host; /* borrowed */
	struct box_groups spares[CGROUP_POOL_SIZE];
	size_t count;
	struct engine_limits limits; /* of all spares */
	struct engine_limits wanted; /* of the latest box */
	bool is_wanted;
	uint64_t made; /* ever: names are never used again */
	struct grouprest rest;
};

void cgroup_pool_open(struct cgroup_pool *pool, const struct host *host);
void cgroup_pool_close(struct cgroup_pool *pool);
/** cgroup_pool_take - groups for a box with these limits, which may be written already. */
int cgroup_pool_take(struct cgroup_pool *pool, const struct engine_limits *limits,
                     struct box_groups *ret_groups, struct error *err) attr_must_check;
/**
 * cgroup_pool_give - end the groups of a box that had @limits and is gone. Return: 0, or -EBUSY to
 * try again later.
 */
int cgroup_pool_give(struct cgroup_pool *pool, const struct engine_limits *limits,
                     struct box_groups *groups) attr_must_check;
/** cgroup_pool_refill - if one is missing or unwanted, make or remove one. For quiet moments. */
void cgroup_pool_refill(struct cgroup_pool *pool);
