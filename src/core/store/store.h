/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the database of the daemon, state_dir/millibox.db: what must survive it. This file opens it;
 * each noun has its own store_<noun>.c on top, with all of its SQL.
 *
 * The schema is src/core/migrations/NNN_name.sql, numbered from 001 without gaps, embedded by the
 * build (their list is in meson.build) and applied in order, each in one transaction. A released
 * file never changes: what comes later is a new one.
 *
 * Before the loop runs: store_db with db_query_now and db_exec_now. Afterwards db_read and
 * db_write.
 */

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include <stdbool.h>

struct db;
struct loop;
struct store;

/* Something that is to be written; part of what it is in. */
struct store_item {
	struct list node; /* of the store, while it is not written as it is */
	/* Queue it and take it off the list. Return: 0, or -1: there is no room. */
	int (*write)(struct store_item *item);
};

/** store_done_fn - @err NULL: it is on the disk, or was read from it. Else why not; with ECANCELED
 * the store is being closed, and what uses it may be gone. */
typedef void store_done_fn(void *ctx, const struct error *err);

#define STORE_FILE "millibox.db"

/** store_close - what was queued is written first. */
void store_close(struct store *s);
/**
 * store_open - in @dir, which exists; NULL: in memory, for a daemon after which nobody asks.
 * ERR_CONFIG, and nothing is changed, for a file that is damaged, of another program, or of a newer
 * version.
 */
int store_open(const char *dir, struct store **ret_store, struct error *err) attr_must_check;
/** store_start - from here on it works beside the loop; see db_start. */
int store_start(struct store *s, struct loop *loop, int (*on_thread)(struct error *err),
                struct error *err) attr_must_check;
/** store_finish - queue all that is not written yet, however much; nothing changes any more. */
void store_finish(struct store *s);
/** store_is_failing - the latest write was not possible: the disk is full, or broken. */
bool store_is_failing(const struct store *s);
/** store_db - for those who have tables in it. */
struct db *store_db(struct store *s);

struct store_search;
/** store_search_cancel - @fn is not called. */
void store_search_cancel(struct store_search *search);
