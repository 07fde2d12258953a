/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: admission: which execution runs, waits, or is rejected. Each tenant has a first-in first-out
 * queue; the queues take turns, so that many waiting executions of one tenant do not delay another.
 * Never blocks; every operation takes constant time.
 *
 * An entry waits, runs (takes a place), leaves (its result is delivered: the place is free, but its
 * box counts until it is gone, so that slow teardown cannot pile up boxes), then is out.
 *
 * A queue may bound its running entries and the memory of its boxes; beyond that they wait even if
 * places are free.
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

/* Embedded in its tenant. */
struct scheduler_queue {
	struct list node;    /* scheduler.turns while its first entry could run */
	struct list waiting; /* struct scheduler_entry.node */
	size_t counts[SCHEDULER_PLACE_COUNT];
	uint64_t memory_bytes; /* running and leaving entries, and scheduler_hold */
	size_t running_max;    /* 0: unbounded */
	uint64_t memory_max;   /* 0: unbounded */
};

/* Embedded by its owner; zero is SCHEDULER_OUT. */
struct scheduler_entry {
	struct list node; /* scheduler_queue.waiting */
	enum scheduler_place place;
	struct scheduler_queue *queue; /* NULL: common. Set while OUT */
	uint64_t memory_bytes;         /* 0: no box of its own */
	uint64_t admitted_us;
	bool patient; /* never rejected: its owner bounds their number */
	/* May call scheduler_leave and scheduler_out, for this entry too. */
	void (*on_turn)(void *ctx);
	void *ctx;
};

struct scheduler {
	struct list turns; /* struct scheduler_queue.node */
	struct scheduler_queue common;
	size_t queues; /* with waiting entries */
	size_t counts[SCHEDULER_PLACE_COUNT];
	size_t running_max;
	size_t waiting_max;
	size_t boxes_max;
	uint64_t hold_us; /* moving average of hold times */
	bool dispatching;
};

void scheduler_queue_init(struct scheduler_queue *q);
/** scheduler_init - *s must not move afterwards. */
void scheduler_init(struct scheduler *s, size_t running_max, size_t waiting_max, size_t boxes_max);
/**
 * scheduler_enter - Return: 0 admitted (on_turn is not called), 1 waiting (on_turn follows), or -1
 * with ERR_BUSY: @waiting_max entries wait and its queue has its share.
 */
int scheduler_enter(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us,
                    struct error *err) attr_must_check;
/** scheduler_resume - take a place for a running entry, regardless of bounds. */
void scheduler_resume(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us);
/** scheduler_leave - its box still exists. May call on_turn of another entry. */
void scheduler_leave(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us);
/** scheduler_out - from any place; idempotent. May call on_turn of another entry. */
void scheduler_out(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us);
/** scheduler_hold - count memory of a box without an entry. The caller checked the quota. */
void scheduler_hold(struct scheduler *s, struct scheduler_queue *q, uint64_t bytes);
/** scheduler_release - end scheduler_hold; @bytes 0: the bounds of @q changed. May call on_turn. */
void scheduler_release(struct scheduler *s, struct scheduler_queue *q, uint64_t bytes,
                       uint64_t now_us);
/** scheduler_retry_after - estimated seconds, at least 1. */
unsigned scheduler_retry_after(const struct scheduler *s);
