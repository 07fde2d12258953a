/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: admission: which work begins, waits, or is rejected. Each tenant has first-in first-out
 * queues, one per kind of work; tenants take turns, so that many waiting executions of one tenant
 * do not delay another. Never blocks.
 *
 * An entry waits, runs, leaves (its result is delivered, but its box counts until it is gone, so
 * that slow teardown cannot pile up boxes), then is out. A program that waits for something keeps
 * nothing that others need: running entries are bounded by memory and by the number of boxes. Only
 * building, from admission to scheduler_built, is bounded by the number of cores.
 *
 * Executions go first: while another tenant executes, boxes without an execution are built one at a
 * time, and after each the builder rests, so that they take a bounded part of the processor.
 *
 * A box's memory limit is a ceiling, not what it uses. So a new box counts a part of its limit, and
 * only until it is part of the measured memory.
 *
 * No tenant gets all: the last building place, a part of the boxes and half of the memory reserve
 * are for tenants that have less than their equal share.
 *
 * A queue may bound its running entries and the sum of its boxes' limits; beyond that they wait
 * even if there is room.
 */

#include "base/error.h"
#include "base/list.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scheduler_place {
	SCHEDULER_OUT,
	SCHEDULER_WAITING,
	SCHEDULER_RUNNING,
	SCHEDULER_LEAVING,
	SCHEDULER_PLACE_COUNT
};

enum scheduler_work {
	SCHEDULER_INSIDE, /* an execution in a box that exists */
	SCHEDULER_FRESH,  /* an execution and its box */
	SCHEDULER_OPEN,   /* a box without an execution; out when it is built */
	SCHEDULER_WORK_COUNT
};

/* Embedded in its tenant. */
struct scheduler_queue {
	/* In scheduler.turns while a first entry fits into the bounds of the queue. */
	struct scheduler_turns {
		struct list node;
		struct scheduler_queue *queue;
	} turns[SCHEDULER_WORK_COUNT];
	struct list waiting[SCHEDULER_WORK_COUNT]; /* struct scheduler_entry.node */
	size_t counts[SCHEDULER_PLACE_COUNT];      /* of executions */
	size_t building;
	size_t opening;        /* of that: OPEN */
	size_t boxes;          /* of FRESH entries, and scheduler_hold */
	uint64_t memory_bytes; /* the sum of their limits */
	size_t running_max;    /* 0: unbounded */
	uint64_t memory_max;   /* 0: unbounded */
};

/* Embedded by its owner; zero is SCHEDULER_OUT. */
struct scheduler_entry {
	struct list node; /* scheduler_queue.waiting */
	enum scheduler_place place;
	enum scheduler_work work;      /* set while OUT */
	struct scheduler_queue *queue; /* NULL: common. Set while OUT */
	uint64_t memory_bytes;         /* limit of the box to make; OPEN: held separately */
	uint64_t admitted_us;
	uint64_t sample; /* number of the memory sample it was admitted by */
	bool building;
	bool patient; /* never rejected: its owner bounds their number */
	/* May call scheduler_leave and scheduler_out, for this entry too. */
	void (*on_turn)(void *ctx);
	void *ctx;
};

struct scheduler_config {
	size_t running_max;  /* executions; 0: boxes and memory decide */
	size_t building_max; /* at least 1; one more for a tenant that builds nothing */
	size_t waiting_max;
	size_t boxes_max; /* 0: unbounded */
	/* Memory that new boxes may use, now. NULL: unbounded. */
	uint64_t (*measure)(void *ctx);
	uint64_t memory_reserve; /* bytes that remain */
	/* Memory is short and an entry waits for it: call scheduler_poll later. */
	void (*on_short)(void *ctx);
	/* The builder of OPEN entries rests: call scheduler_continue after @delay_us. */
	void (*on_rest)(void *ctx, uint64_t delay_us);
	void *ctx;
};

struct scheduler {
	struct scheduler_config config;
	struct list turns[SCHEDULER_WORK_COUNT]; /* struct scheduler_turns.node */
	struct scheduler_queue common;
	size_t queues; /* with waiting executions */
	size_t owners; /* queues with boxes */
	size_t counts[SCHEDULER_PLACE_COUNT];
	size_t building;
	size_t opening;      /* of that: OPEN */
	uint64_t rest_until; /* after an OPEN was built */
	/* The last two queues with an execution, the latest first. */
	struct {
		const struct scheduler_queue *queue; /* compared only: may be gone */
		uint64_t at_us;
	} active[2];
	size_t boxes;
	uint64_t available_bytes; /* as last measured */
	uint64_t sampled_us;
	uint64_t samples;
	uint64_t recent_bytes[2]; /* admitted since the last sample and the one before, by parity */
	uint64_t hold_us;         /* moving average of hold times */
	enum scheduler_work next; /* kinds take turns */
	bool dispatching;
};

void scheduler_queue_init(struct scheduler_queue *q);
/** scheduler_init - *s must not move afterwards. */
void scheduler_init(struct scheduler *s, const struct scheduler_config *config);
/**
 * scheduler_enter - Return: 0 admitted (on_turn is not called), 1 waiting (on_turn follows), or -1
 * with ERR_BUSY: waiting_max entries wait and its queue has its share.
 */
int scheduler_enter(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us,
                    struct error *err) attr_must_check;
/** scheduler_built - its box exists: another may be built. Idempotent. May call on_turn of another
 * entry. */
void scheduler_built(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us);
/** scheduler_resume - take a place for a running entry, regardless of bounds. */
void scheduler_resume(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us);
/** scheduler_leave - its box still exists. May call on_turn of another entry. */
void scheduler_leave(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us);
/** scheduler_out - from any place; idempotent. May call on_turn of another entry. */
void scheduler_out(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us);
/** scheduler_hold - count a box without an execution. The caller checked the quota. @q NULL:
 * common. */
void scheduler_hold(struct scheduler *s, struct scheduler_queue *q, uint64_t bytes);
/** scheduler_release - end scheduler_hold. May call on_turn. */
void scheduler_release(struct scheduler *s, struct scheduler_queue *q, uint64_t bytes,
                       uint64_t now_us);
/** scheduler_update - the bounds of @q changed. May call on_turn. */
void scheduler_update(struct scheduler *s, struct scheduler_queue *q, uint64_t now_us);
/** scheduler_poll - measure the memory again. May call on_turn. */
void scheduler_poll(struct scheduler *s, uint64_t now_us);
/** scheduler_continue - after on_rest. May call on_turn. */
void scheduler_continue(struct scheduler *s, uint64_t now_us);
/** scheduler_is_congested - executions that their tenant may run wait for others. */
bool scheduler_is_congested(const struct scheduler *s);
/** scheduler_delays_boxes - boxes without an execution wait for others. */
bool scheduler_delays_boxes(const struct scheduler *s);
/** scheduler_retry_after - estimated seconds, at least 1. */
unsigned scheduler_retry_after(const struct scheduler *s);
