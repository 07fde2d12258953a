/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: pools of boxes made ahead of requests. A pool has one shape: everything that a decision says
 * about a box and the process that waits in it (root, limits, layers, command, environment). So any
 * request may find its box in a pool, and gets exactly what would have been made for it.
 *
 * A box in a pool has no tenant: no byte of a tenant enters a box before it is taken, and a taken
 * box never comes back. Dead or old members are not handed out; the new owner of one that died
 * unnoticed makes a box of its own (run_box.c).
 *
 * The number of members follows the demand (pool_demand.h), between a floor, which a few shapes
 * have, and maxima of all members and of their memory. A shape that is requested repeatedly gets a
 * pool. Members are made in the background, a few at a time, and only while no request is queued.
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

/* Execution id of the prepared process of a member. */
#define POOL_EXEC_ID 1

struct pools_config {
	struct loop *loop;
	struct driver *driver;             /* borrowed */
	const struct scheduler *scheduler; /* borrowed: load and queued requests */
	struct metrics *metrics;           /* borrowed; NULL: metrics off */
	size_t max;                        /* members of all shapes; 0: pools off */
	uint64_t memory_max;               /* bytes used by all members */
	uint64_t age_us;                   /* older ones are not handed out */
	uint64_t idle_us;                  /* a shape idle this long shrinks to its floor */
	size_t cores;
	/* The last member is gone, after pools_drain. */
	void (*on_drained)(void *ctx);
	void *ctx;
};

/** pools_free - ends all members. */
void pools_free(struct pools *p);
struct pools *pools_new(const struct pools_config *config) attr_owned(pools_free);

/** pools_keep - keep @floor members of the shape of @decision. */
void pools_keep(struct pools *p, const struct policy_decision *decision, size_t floor);

/* A member that was taken. The caller owns the box. */
struct pool_hit {
	struct box *box;
	bool prepared;              /* POOL_EXEC_ID waits for box_run; else the box is empty */
	bool resident;              /* the prepared process is the runner of a session */
	uint64_t key;               /* of the shape */
	struct box_counters before; /* its usage when it became ready */
};

/** pools_take - take a member of the shape of @decision. Counts as demand. Return: false: none. */
bool pools_take(struct pools *p, const struct policy_decision *decision, const char *tenant,
                struct pool_hit *ret_hit);
/** pools_confirm - the taken box works: count a hit. */
void pools_confirm(struct pools *p);
/** pools_discard - a box taken from the pool of @key was dead: destroy it and count a miss. */
void pools_discard(struct pools *p, uint64_t key, struct box *box);
/** pools_flush - roots or policies have changed: end all members and reset all floors. */
void pools_flush(struct pools *p);
/** pools_forget - a template of @tenant has changed: drop the pools that its requests caused. */
void pools_forget(struct pools *p, const char *tenant);
/** pools_drain - end all members and make no more. */
void pools_drain(struct pools *p);
/** pools_count - members that are not gone. */
size_t pools_count(const struct pools *p);

/* One pool, for display. Borrowed for the call. */
struct pool_info {
	uint64_t key;         /* of the shape */
	const char *language; /* NULL: the boxes are empty */
	const struct box_spec *spec;
	bool prepared, resident;
	size_t ready, making, target, floor;
	uint64_t memory_bytes; /* used by its members */
	uint64_t hits, misses, failures, made;
	uint64_t fill_us;  /* average time to make a member */
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
