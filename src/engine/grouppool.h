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

#define GROUPPOOL_SIZE 2

struct grouppool {
	const struct host *host; /* borrowed */
	struct box_groups spares[GROUPPOOL_SIZE];
	size_t count;
	struct engine_limits limits; /* of all spares */
	struct engine_limits wanted; /* of the latest box */
	bool is_wanted;
	uint64_t made; /* ever: names are never used again */
	struct grouprest rest;
};

void grouppool_open(struct grouppool *pool, const struct host *host);
void grouppool_close(struct grouppool *pool);
/** grouppool_take - groups for a box with these limits, which may be written already. */
int grouppool_take(struct grouppool *pool, const struct engine_limits *limits,
                   struct box_groups *ret_groups, struct error *err) attr_must_check;
/**
 * grouppool_give - end the groups of a box that had @limits and is gone. Return: 0, or -EBUSY to
 * try again later.
 */
int grouppool_give(struct grouppool *pool, const struct engine_limits *limits,
                   struct box_groups *groups) attr_must_check;
/** grouppool_refill - if one is missing or unwanted, make or remove one. For quiet moments. */
void grouppool_refill(struct grouppool *pool);
