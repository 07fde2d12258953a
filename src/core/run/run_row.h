/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: executions in the store. Written as a whole row whenever they have changed: within FLUSH_US,
 * so that one that is accepted, runs and ends quickly costs one write; at once where somebody waits
 * for it (run_record_hold). Read back when somebody asks for one that is no longer in memory.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/run/artifact_row.h"
#include "core/store/store.h"
#include <stdbool.h>
#include <stddef.h>

struct run_record;
struct run_records;
struct store;

/* Called by execution.c; nothing happens where there is no store. */

/** store_execution_changed - it is not what is written; it will be. */
void store_execution_changed(struct run_record *e);
/** store_execution_now - write it at once; run_record_was_stored follows from the loop. */
int store_execution_now(struct run_record *e, struct error *err) attr_must_check;
/** store_execution_flush - Return: whether something is left to write, and it must stay. */
bool store_execution_flush(struct run_record *e);
/** store_execution_paused - write down for how long it has stood still so far. */
void store_execution_paused(struct run_record *e);
/** store_execution_gone - its memory goes. */
void store_execution_gone(struct run_record *e);

/* At the start, before store_start. */

struct db_rows;
/** store_live_executions - those that had not ended when the daemon did, in the order of asking. */
int store_live_executions(struct store *s, struct db_rows **ret_rows,
                          struct error *err) attr_must_check;
/** store_read_live - one row as a record, pending or running. *ret_request: as in struct
 * run_record_new; borrowed from the row. */
struct run_record *store_read_live(struct run_records *all, const struct db_rows *rows, size_t row,
                                   const char **ret_request);

/**
 * store_load_execution - bring an ended one of @tenant back into @all; ERR_BUSY. @fn is called from
 * the loop when the search is over; what was found is in memory then.
 */
struct store_search *store_load_execution(struct run_records *all, const char *tenant,
                                          const char *id, store_done_fn *fn, void *ctx,
                                          struct error *err) attr_must_check;
/** store_load_latest - the newest of a session. */
struct store_search *store_load_latest(struct run_records *all, const char *tenant,
                                       const char *session_id, store_done_fn *fn, void *ctx,
                                       struct error *err) attr_must_check;

/* The columns that store_read_execution reads, in its order. */
#define STORE_EXECUTION_HEAD                                                                       \
	"e.id, e.tenant, e.session_id, e.session_ms, e.created_ms, e.started_ms,"                  \
	" e.completed_ms, e.language, e.timeout_us, e.request_id, e.key_id, e.outcome, e.failure," \
	" " STORE_FILES ","
#define STORE_EXECUTION_COLUMNS STORE_EXECUTION_HEAD " e.report, e.code, e.out, e.err, e.events"
#define STORE_EXECUTION_BRIEF   STORE_EXECUTION_HEAD " NULL, NULL, NULL, NULL, NULL"
/** store_read_execution - one row, as a record in no table. Return: owned. */
struct run_record *store_read_execution(struct run_records *all, const struct db_rows *rows,
                                        size_t row);
