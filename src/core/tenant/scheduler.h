/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: admission: who may run now, who waits, who is sent away. Each tenant has a queue: in it
 * first come is first served, and the queues take turns, so that a thousand waiting executions of
 * one tenant do not delay the first one of another. Nothing here knows a box or blocks; every
 * operation takes constant time.
 *
 * An entry waits, then runs (a place is taken), then leaves (its answer was given, its box is
 * still going down: the place is free for the next, but the box counts until it is gone, so that
 * slow teardown can't pile boxes up), then is out.
 *
 * A queue may have bounds of its own, on entries that run and on the memory of boxes. Who is over
 * them waits, however many places are free; the others' turns go on.
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

/* Of one tenant, who embeds it; scheduler_queue_init before use. */
struct scheduler_queue {
	struct list node;    /* scheduler.turns, while its first could run; else alone */
	struct list waiting; /* struct scheduler_entry.node */
	size_t counts[SCHEDULER_PLACE_COUNT];
	uint64_t memory_bytes; /* of boxes: of entries that run or leave, and what is held beside */
	size_t running_max;    /* 0: no bound but that of all */
	uint64_t memory_max;   /* 0: no bound */
};

/* Embedded by its owner; zero is SCHEDULER_OUT. */
struct scheduler_entry {
	struct list node; /* scheduler_queue.waiting */
	enum scheduler_place place;
	struct scheduler_queue *queue; /* NULL: one for all who have none. Set while OUT */
	uint64_t memory_bytes;         /* of its box; 0: it brings none of its own */
	uint64_t admitted_us;
	bool patient; /* waits however long the queue is: its owner bounds how many there are */
	/* Its turn has come. May call scheduler_leave and scheduler_out, for this entry too. */
	void (*on_turn)(void *ctx);
	void *ctx;
};

struct scheduler {
	struct list turns; /* struct scheduler_queue.node: the first is the next */
	struct scheduler_queue common;
	size_t queues; /* that somebody waits in */
	size_t counts[SCHEDULER_PLACE_COUNT];
	size_t running_max;
	size_t waiting_max;
	size_t boxes_max;
	uint64_t hold_us; /* moving average of how long a place is held */
	bool dispatching;
};

void scheduler_queue_init(struct scheduler_queue *q);
/** scheduler_init - *s is not moved afterwards. */
void scheduler_init(struct scheduler *s, size_t running_max, size_t waiting_max, size_t boxes_max);
/**
 * scheduler_enter - Return: 0 admitted now (on_turn is not called), 1 waiting (on_turn follows),
 * or -1 with ERR_BUSY: @waiting_max wait, and its own queue has its share of them.
 */
int scheduler_enter(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us,
                    struct error *err) attr_must_check;
/** scheduler_resume - it runs already, whatever the bounds say: it has a place, and others wait. */
void scheduler_resume(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us);
/** scheduler_leave - it runs no more, but is not gone. The next one's turn may come in this call.
 */
void scheduler_leave(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us);
/** scheduler_out - from any place; idempotent. The next one's turn may come in this call. */
void scheduler_out(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us);
/** scheduler_hold - a box that is nobody's turn takes memory of @q: whether that is allowed is the
 * caller's to ask before. */
void scheduler_hold(struct scheduler *s, struct scheduler_queue *q, uint64_t bytes);
/** scheduler_release - the end of scheduler_hold; also after the bounds of @q were changed (@bytes
 * 0). Somebody's turn may come in this call. */
void scheduler_release(struct scheduler *s, struct scheduler_queue *q, uint64_t bytes,
                       uint64_t now_us);
/** scheduler_retry_after - in how many seconds a place in the queue should be free; at least 1. */
unsigned scheduler_retry_after(const struct scheduler *s);
