/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: pools of boxes made ahead of requests. A pool has one shape: all that a decision says about
 * a box and about the process that waits in it (root, limits,
 * layers, command, environment). So whatever is asked for may be in a pool, not only what is usual,
 * and what is handed out is exactly what would have been made.
 *
 * A box in a pool has no tenant: no byte of a tenant goes into a box before it was taken, and a box
 * that was taken never comes back. Members that died, or are too old, are not handed out; one that
 * dies unnoticed is found by its new owner, which makes a box of its own (run_box.c).
 *
 * How many there are follows the demand (pool_demand.h), between a floor that a few shapes have and
 * ceilings for all together: of members, and of the memory that they use. A shape gets a pool when
 * it was asked for more than once. They are made in the background, a few at a time, and only while
 * no request waits for a place.
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

/* The id of what was prepared in a member, as of the one program of any box. */
#define POOL_EXEC_ID 1

struct pools_config {
	struct loop *loop;
	struct driver *driver;             /* borrowed */
	const struct scheduler *scheduler; /* borrowed: whether requests wait */
	struct metrics *metrics;           /* borrowed; NULL: metrics off */
	size_t max;                        /* members of all shapes; 0: there are no pools */
	uint64_t memory_max;               /* bytes that they use, together */
	uint64_t age_us;                   /* older ones are not handed out */
	uint64_t idle_us;                  /* a shape unused for so long shrinks to its floor */
	size_t cores;
	/* The last member is gone, after pools_drain. */
	void (*on_drained)(void *ctx);
	void *ctx;
};

/* Members that are there end. */
void pools_free(struct pools *p);
struct pools *pools_new(const struct pools_config *config) attr_owned(pools_free);

/** pools_keep - from now on there are always @floor of what @decision decided. */
void pools_keep(struct pools *p, const struct policy_decision *decision, size_t floor);

/* What was taken. The box is the caller's. */
struct pool_hit {
	struct box *box;
	bool prepared;              /* POOL_EXEC_ID waits for box_run; else the box is empty */
	bool resident;              /* prepared, as a runner that stays */
	uint64_t key;               /* of the shape */
	struct box_counters before; /* what it had used when it was ready */
};

/**
 * pools_take - a member of the shape that @decision has, for @tenant. Return: false where there is
 * none: that is noted as demand.
 */
bool pools_take(struct pools *p, const struct policy_decision *decision, const char *tenant,
                struct pool_hit *ret_hit);
/** pools_confirm - the box that was taken worked: count a hit. */
void pools_confirm(struct pools *p);
/** pools_discard - a box taken from the pool of @key was dead: destroy it and count a miss. */
void pools_discard(struct pools *p, uint64_t key, struct box *box);
/** pools_flush - what things are made of, or what is decided, has changed: all members end, and no
 * shape has a floor any more (pools_keep). */
void pools_flush(struct pools *p);
/** pools_forget - a template of @tenant has changed: shapes that its requests have caused go. */
void pools_forget(struct pools *p, const char *tenant);
/** pools_drain - all members end, and no others are made. */
void pools_drain(struct pools *p);
/** pools_count - members that are not gone. */
size_t pools_count(const struct pools *p);

/* One pool, for people. Borrowed for the call. */
struct pool_info {
	uint64_t key;         /* of the shape */
	const char *language; /* NULL: any that starts as a process of its own */
	const struct box_spec *spec;
	bool prepared, resident;
	size_t ready, making, target, floor;
	uint64_t memory_bytes; /* that its members use */
	uint64_t hits, misses, failures, made;
	uint64_t fill_us;  /* how long one takes to be made, on average */
	double per_second; /* how many are asked for */
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
