/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how many members a pool should have, from who asked for one and how long one takes to be
 * made. Pure: the clock is the caller's.
 *
 *   target = what is asked for while two are made, and a reserve
 *
 * The reserve grows with every miss, and by half of itself, because a burst has just shown that
 * there were too few; it shrinks by a quarter for every POOL_CALM_US without one. Nobody asks: the
 * target falls to the floor.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_CALM_US (5 * 1000 * 1000ULL)
#define POOL_RATE_US (2 * 1000 * 1000ULL) /* time constant of the rate */

struct pool_demand {
	double per_us;              /* how many are asked for; moving average */
	double fill_us;             /* how long one takes to be made; moving average, 0: unknown */
	double reserve;             /* beyond that */
	uint64_t asked_us, calm_us; /* the last time; since when there was no miss */
};

/** pool_demand_asked - a request came; whether it got a member. */
void pool_demand_asked(struct pool_demand *d, bool hit, uint64_t now_us);
/** pool_demand_made - one was made, which took @fill_us. */
void pool_demand_made(struct pool_demand *d, uint64_t fill_us);
/** pool_demand_rate - how many are asked for, per microsecond. */
double pool_demand_rate(const struct pool_demand *d, uint64_t now_us);
/** pool_demand_target - at least @least, at most @max; calms down as time goes. */
size_t pool_demand_target(struct pool_demand *d, size_t least, size_t max, uint64_t now_us);
