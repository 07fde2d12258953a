/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: pools of boxes made ahead of requests. All boxes of a pool have one shape: everything that a
 * decision says about a box and its waiting process (root, limits, layers, command, environment). A
 * request gets exactly what would have been made for it.
 *
 * No byte of a tenant enters a box before it is taken, and a taken box never comes back. Dead or
 * old members are not handed out; the new owner of one that died unnoticed makes its own box
 * (run_box.c).
 *
 * The number of members follows the demand (pool_demand.h), between a floor, which a few shapes
 * have, and maxima of members and memory. A shape requested repeatedly gets a pool. Members are
 * made in the background, a few at a time; for sessions only while none waits for a box. A tenant
 * below its share has a place to make one and a part of the members.
 */

#include "base/attr.h"
#include "core/policy/policy.h"
#include "driver/driver.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct metrics;
struct pools;
struct scheduler;

/* Of a member's prepared process. */
#define POOL_EXEC_ID 1

struct pools_config {
	struct loop *loop;
	struct driver *driver;             /* borrowed */
	const struct scheduler *scheduler; /* borrowed: load */
	struct metrics *metrics;           /* borrowed; NULL: metrics off */
	size_t max;                        /* members; 0: pools off */
	uint64_t memory_max;               /* of all members */
	uint64_t age_us;                   /* maximum age */
	uint64_t idle_us;                  /* then a shape shrinks to its floor */
	size_t cores;
	/* After pools_drain: all members are gone. */
	void (*on_drained)(void *ctx);
	void *ctx;
};

void pools_free(struct pools *p);
struct pools *pools_new(const struct pools_config *config) attr_owned(pools_free);

/** pools_keep - keep @floor members of this shape for TENANT_DEFAULT. */
void pools_keep(struct pools *p, const struct policy_decision *decision, size_t floor);

/* The caller owns the box. */
struct pool_hit {
	struct box *box;
	bool prepared;              /* POOL_EXEC_ID waits for box_run; else the box is empty */
	bool resident;              /* that process is a session's runner */
	uint64_t key;               /* shape */
	struct box_counters before; /* usage when ready */
};

/** pools_take - counts as demand. Return: false: none. */
bool pools_take(struct pools *p, const struct policy_decision *decision, const char *tenant,
                struct pool_hit *ret_hit);
/** pools_confirm - the taken box works: count a hit. */
void pools_confirm(struct pools *p);
/** pools_discard - a taken box was dead: destroy it and count a miss. */
void pools_discard(struct pools *p, uint64_t key, struct box *box);
/** pools_end - destroy a box of another owner: the drain waits for its end. */
void pools_end(struct pools *p, struct box *box);
/** pools_flush - roots or policies changed: end all members and reset all floors. */
void pools_flush(struct pools *p);
/** pools_forget - a template of @tenant changed: drop the pools that its requests caused. */
void pools_forget(struct pools *p, const char *tenant);
/** pools_drain - end all members and make no more. */
void pools_drain(struct pools *p);
/** pools_count - members not gone. */
size_t pools_count(const struct pools *p);

/* Borrowed for the call. */
struct pool_info {
	uint64_t key;         /* shape */
	const char *language; /* NULL: empty boxes */
	const struct box_spec *spec;
	bool prepared, resident;
	size_t ready, making, target, floor;
	uint64_t memory_bytes;
	uint64_t hits, misses, failures, made;
	uint64_t fill_us;  /* average */
	double per_second; /* requests */
	uint64_t idle_us;
};

/** pools_at - Return: false past the end. */
bool pools_at(const struct pools *p, size_t index, struct pool_info *ret_info);

struct pools_totals {
	size_t ready, making, max;
	uint64_t memory_bytes, memory_max;
	uint64_t hits, misses;
};
void pools_totals(const struct pools *p, struct pools_totals *ret_totals);
