/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: shared by the files that write to the store. */

#include "base/list.h"
#include "core/store/store.h"
#include "db/db.h"
#include <stdint.h>

struct timer;

struct store {
	struct db *db;
	struct timer *flush_timer; /* NULL: not started, or stopped */
	bool flush_due;
	struct list sessions, executions; /* struct store_item.node */
	struct list tasks;                /* struct store_task.node */
	struct list orphans;              /* struct store_orphan.node */
	bool failing;                     /* the last write failed and was logged */
};

struct store_load {
	struct db_job *job;
	struct run_records *executions;
	struct session_service *sessions;
	store_done_fn *fn;
	void *ctx;
};

/* Calls @fn once with a write's result. */
struct store_task {
	struct list node; /* of the store */
	struct store *store;
	store_done_fn *fn;
	void *ctx;
};

/* Outlives its owner: freed by the write's callback, or by store_close. */
struct store_orphan {
	struct list node;
	void (*free)(struct store_orphan *orphan);
};

/** store_task_new - context for a write whose callback is store_task_done. */
struct store_task *store_task_new(struct store *s, store_done_fn *fn, void *ctx);
/** store_task_done - call @fn and free the task (@ctx). */
void store_task_done(void *ctx, const struct error *err);
/** store_task_cancel - without calling @fn. */
void store_task_cancel(struct store_task *task);
/** store_write - like db_write; store_close calls @fn at the latest (ERR_UNAVAILABLE). */
int store_write(struct store *s, const struct db_statement *steps, size_t count, store_done_fn *fn,
                void *ctx, struct error *err) attr_must_check;

void store_wants_flush(struct store *s, uint64_t delay_us);
/** store_flush - write what fits into the queue. */
void store_flush(struct store *s);
/** store_was_written - record a write's result. Return: whether to retry. */
bool store_was_written(struct store *s, const struct error *err);

/** store_time - 0 is NULL. */
static inline struct db_value store_time(uint64_t ms)
{
	return ms ? DB_INT(ms) : DB_NULL;
}

#define STORE_FLUSH_US (20 * 1000ULL)
#define STORE_RETRY_US (1000 * 1000ULL)
