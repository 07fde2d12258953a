/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what the files of the store share and nobody else sees. */

#include "base/list.h"
#include "core/store.h"
#include "core/store_execution.h"
#include "db/db.h"
#include <stdint.h>

struct config;
struct timer;

struct store {
	struct db *db;
	struct timer *flush_timer; /* NULL: nothing works yet, or not any more */
	bool flush_due;
	struct list sessions, executions; /* struct store_item.node */
	bool failing;                     /* the latest write was not possible, and that was said */
	struct store_cleaner *cleaner;
};

/* A search, and who wants to know. */
struct store_search {
	struct db_job *job;
	struct executions *executions;
	struct session_service *sessions;
	store_done_fn *fn;
	void *ctx;
};

/** store_wants_flush - something is in a list of what is to be written. */
void store_wants_flush(struct store *s, uint64_t delay_us);
/** store_flush - all that there is room for. */
void store_flush(struct store *s);
/** store_was_written - note what became of a write. Return: whether to try again. */
bool store_was_written(struct store *s, const struct error *err);

#define STORE_FLUSH_US (20 * 1000ULL)
#define STORE_RETRY_US (1000 * 1000ULL)
