/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: records in the store. A record is written as a whole row shortly after a change, so that a
 * quick run costs one write; at once if a caller waits for it (run_record_hold). Read back when a
 * caller asks for one no longer in memory.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/store/store.h"
#include <stdbool.h>
#include <stddef.h>

struct run_record;
struct run_records;
struct store;

/* For run_record.c; run_row_changed, _flush and _paused do nothing without a store. */

void run_row_changed(struct run_record *e);
/** run_row_write_now - run_record_was_stored follows from the loop. */
int run_row_write_now(struct run_record *e, struct error *err) attr_must_check;
/** run_row_flush - write now. Return: true: that failed, and it must stay. */
bool run_row_flush(struct run_record *e);
/** run_row_hurry - write now, without an answer. Return: false: all changes are on disk. */
bool run_row_hurry(struct run_record *e) attr_must_check;
void run_row_paused(struct run_record *e);
void run_row_gone(struct run_record *e);

/* At startup, before store_start. */

struct db_rows;
/** run_row_live - those not ended, in order. */
int run_row_live(struct store *s, struct db_rows **ret_rows, struct error *err) attr_must_check;
/** run_row_read_live - a row as a record, pending or running. *ret_request: as in struct
 * run_record_new; borrowed from the row. */
struct run_record *run_row_read_live(struct run_records *all, const struct db_rows *rows,
                                     size_t row, const char **ret_request);

/**
 * run_row_load - load an ended one of @tenant into @all; ERR_BUSY. @fn is called from the loop,
 * once it is added.
 */
struct store_load *run_row_load(struct run_records *all, const char *tenant, const char *id,
                                store_done_fn *fn, void *ctx, struct error *err) attr_must_check;
struct store_load *run_row_load_latest(struct run_records *all, const char *tenant,
                                       const char *session_id, store_done_fn *fn, void *ctx,
                                       struct error *err) attr_must_check;

#define STORE_FILES                                                                                \
	"(SELECT json_group_array(json_array(f.path, f.size, f.changed_ms, f.sha256))"             \
	" FROM files f WHERE f.execution = e.no)"
/* Columns of run_row_read, in order. */
#define STORE_EXECUTION_HEAD                                                                       \
	"e.id, e.tenant, e.session_id, e.session_ms, e.created_ms, e.started_ms,"                  \
	" e.completed_ms, e.language, e.timeout_us, e.request_id, e.key_id, e.outcome, e.failure," \
	" " STORE_FILES ","
#define STORE_EXECUTION_COLUMNS STORE_EXECUTION_HEAD " e.report, e.code, e.out, e.err, e.events"
#define STORE_EXECUTION_BRIEF   STORE_EXECUTION_HEAD " NULL, NULL, NULL, NULL, NULL"
/** run_row_read - a row as a record in no table. Return: owned. */
struct run_record *run_row_read(struct run_records *all, const struct db_rows *rows, size_t row);
