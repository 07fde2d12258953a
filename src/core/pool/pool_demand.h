/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how many members a pool should have, from the rate of requests and the time to make a
 * member. Pure: the caller supplies the clock.
 *
 *   target = requests in the time that two members take, plus a reserve
 *
 * Every miss enlarges the reserve by one and by half of itself, since a burst has shown that there
 * were too few; every POOL_CALM_US without a miss reduces it by a quarter. Without requests the
 * target falls to the floor.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_CALM_US (5 * 1000 * 1000ULL)
#define POOL_RATE_US (2 * 1000 * 1000ULL) /* time constant of the rate */

struct pool_demand {
	double per_us;     /* rate of requests: moving average */
	double fill_us;    /* time to make a member: moving average; 0: unknown */
	double reserve;    /* members beyond these two */
	uint64_t asked_us; /* of the last request */
	uint64_t calm_us;  /* since when there was no miss */
};

/** pool_demand_asked - count a request; @hit: it got a member. */
void pool_demand_asked(struct pool_demand *d, bool hit, uint64_t now_us);
/** pool_demand_made - a member was made in @fill_us. */
void pool_demand_made(struct pool_demand *d, uint64_t fill_us);
/** pool_demand_rate - requests per microsecond. */
double pool_demand_rate(const struct pool_demand *d, uint64_t now_us);
/** pool_demand_target - at least @least, at most @max. Also shrinks the reserve. */
size_t pool_demand_target(struct pool_demand *d, size_t least, size_t max, uint64_t now_us);
