/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how many members a pool should have: the requests in the time that two members take to make,
 * plus a reserve. A miss enlarges the reserve by half and one: there were too few; every
 * POOL_CALM_US without a miss reduces it by a quarter. Without requests the target falls to the
 * floor. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_CALM_US (5 * 1000 * 1000ULL)
#define POOL_RATE_US (2 * 1000 * 1000ULL) /* time constant */

struct pool_demand {
	double per_us;  /* requests: moving average */
	double fill_us; /* to make a member: moving average; 0: unknown */
	double reserve;
	uint64_t asked_us; /* last request */
	uint64_t calm_us;  /* no miss since */
};

/** pool_demand_asked - @hit: it got a member. */
void pool_demand_asked(struct pool_demand *d, bool hit, uint64_t now_us);
void pool_demand_made(struct pool_demand *d, uint64_t fill_us);
/** pool_demand_rate - requests per microsecond. */
double pool_demand_rate(const struct pool_demand *d, uint64_t now_us);
/** pool_demand_target - also shrinks the reserve. */
size_t pool_demand_target(struct pool_demand *d, size_t least, size_t max, uint64_t now_us);
