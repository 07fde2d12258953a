/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon's database, state_dir/millibox.db: everything that must survive the daemon. Each
 * owner of a table has a *_row.c with its SQL.
 *
 * The schema is src/core/store/migrations/NNN_name.sql, numbered from 001 without gaps, listed in
 * meson.build and applied in order, each in one transaction. Never change a released file: add a
 * new one.
 *
 * Before the loop runs use db_query_now and db_exec_now, afterwards db_read and db_write.
 */

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include <stdbool.h>

struct db;
struct loop;
struct store;

/* Embedded in an object with unwritten changes. */
struct store_item {
	struct list node; /* while unwritten */
	/* Queue the write and leave the list. Return: 0, or -1: queue full. */
	int (*write)(struct store_item *item);
};

/**
 * store_done_fn - @err NULL: written to disk, or read from it. ECANCELED: the store is closing; its
 * users may be gone.
 */
typedef void store_done_fn(void *ctx, const struct error *err);

#define STORE_FILE "millibox.db"

/** store_close - writes what is queued first. */
void store_close(struct store *s);
/**
 * store_open - @dir must exist; NULL: in memory. ERR_CONFIG, with nothing changed, if the file is
 * damaged, of another program, or of a newer version.
 */
int store_open(const char *dir, struct store **ret_store, struct error *err) attr_must_check;
/** store_start - start the database thread; see db_start. */
int store_start(struct store *s, struct loop *loop, int (*on_thread)(struct error *err),
                struct error *err) attr_must_check;
/** store_finish - queue all unwritten changes, without a bound; none may follow. */
void store_finish(struct store *s);
/** store_is_failing - the last write failed. */
bool store_is_failing(const struct store *s);
struct db *store_db(struct store *s);

struct store_load;
/** store_load_cancel - @fn will not be called. */
void store_load_cancel(struct store_load *load);
