/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: admission: who may run now, who waits, who is sent away. First come, first served: one
 * queue, because there is one tenant; with several, a queue per tenant and a turn for each is a
 * change inside this file. Nothing here knows a box or blocks; every operation takes constant time.
 *
 * An entry waits, then runs (a place is taken), then leaves (its answer was given, its box is
 * still going down: the place is free for the next, but the box counts until it is gone, so that
 * slow teardown can't pile boxes up), then is out.
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

/* Embedded by its owner; zero is SCHEDULER_OUT. */
struct scheduler_entry {
	struct list node; /* scheduler.waiting */
	enum scheduler_place place;
	uint64_t admitted_us;
	bool patient; /* waits however long the queue is: its owner bounds how many there are */
	/* Its turn has come. May call scheduler_leave and scheduler_out, for this entry too. */
	void (*on_turn)(void *ctx);
	void *ctx;
};

struct scheduler {
	struct list waiting;
	size_t counts[SCHEDULER_PLACE_COUNT];
	size_t running_max;
	size_t waiting_max;
	size_t boxes_max;
	uint64_t hold_us; /* moving average of how long a place is held */
	bool dispatching;
};

void scheduler_init(struct scheduler *s, size_t running_max, size_t waiting_max, size_t boxes_max);
/**
 * scheduler_enter - Return: 0 admitted now (on_turn is not called), 1 waiting (on_turn follows),
 * or -1 with ERR_BUSY: the queue is full.
 */
int scheduler_enter(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us,
                    struct error *err) attr_must_check;
/** scheduler_leave - it runs no more, but is not gone. The next one's turn may come in this call.
 */
void scheduler_leave(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us);
/** scheduler_out - from any place; idempotent. The next one's turn may come in this call. */
void scheduler_out(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us);
/** scheduler_retry_after - in how many seconds a place in the queue should be free; at least 1. */
unsigned scheduler_retry_after(const struct scheduler *s);
