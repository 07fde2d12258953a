/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what the files of the store share and nobody else sees. */

#include "base/list.h"
#include "core/store/store.h"
#include "db/db.h"
#include <stdint.h>

struct config;
struct timer;

struct store {
	struct db *db;
	struct timer *flush_timer; /* NULL: nothing works yet, or not any more */
	bool flush_due;
	struct list sessions, executions; /* struct store_item.node */
	struct list tasks;                /* struct store_task.node: not told yet */
	struct list orphans;              /* struct store_orphan.node */
	bool failing;                     /* the latest write was not possible, and that was said */
};

/* A search, and who wants to know. */
struct store_search {
	struct db_job *job;
	struct run_records *executions;
	struct session_service *sessions;
	store_done_fn *fn;
	void *ctx;
};

/* Somebody who is to be told of a write, once, whatever becomes of it. */
struct store_task {
	struct list node; /* of the store */
	struct store *store;
	store_done_fn *fn;
	void *ctx;
};

/* The owner of a write that is under way is gone: its callback frees it, or the end of the store.
 */
struct store_orphan {
	struct list node;
	void (*free)(struct store_orphan *orphan);
};

/** store_task_new - for the callback of a write, which is store_task_done. */
struct store_task *store_task_new(struct store *s, store_done_fn *fn, void *ctx);
/** store_task_done - tells, and frees it. @ctx: the task. */
void store_task_done(void *ctx, const struct error *err);
/** store_task_cancel - the write did not begin. */
void store_task_cancel(struct store_task *task);
/** store_write - as db_write, with @fn called by store_close at the latest (ERR_UNAVAILABLE). */
int store_write(struct store *s, const struct db_statement *steps, size_t count, store_done_fn *fn,
                void *ctx, struct error *err) attr_must_check;

/** store_wants_flush - something is in a list of what is to be written. */
void store_wants_flush(struct store *s, uint64_t delay_us);
/** store_flush - all that there is room for. */
void store_flush(struct store *s);
/** store_was_written - note what became of a write. Return: whether to try again. */
bool store_was_written(struct store *s, const struct error *err);

#define STORE_FLUSH_US (20 * 1000ULL)
#define STORE_RETRY_US (1000 * 1000ULL)
