/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: sessions in the store; written like records of runs (run_row.h). An ended one that is no
 * longer in memory is loaded on demand, and then remembered like one that has just ended.
 *
 * Sessions of a daemon that died are still live in the store. At the next start session_row_live
 * reads them, to be restored (session_restore.c).
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/run/run_row.h"
#include <stddef.h>
#include <stdint.h>

struct db_rows;
struct session;
struct session_service;
struct store;

/* Called by session*.c; do nothing without a store. */

void session_row_changed(struct session *session);
/**
 * session_row_delete - neither it nor its runs can be read afterwards. @fn is called when that is
 * on disk; may be NULL. ERR_BUSY: no room, nothing has changed.
 */
int session_row_delete(struct session *session, store_done_fn *fn, void *ctx,
                       struct error *err) attr_must_check;
/**
 * session_row_when_written - @fn is called when the session as it is now is on disk. Return: 0;
 * 1: it is, or there is no store, and @fn is not called; -1: ERR_BUSY, no room.
 */
int session_row_when_written(struct session *session, store_done_fn *fn, void *ctx,
                             struct error *err) attr_must_check;
/** session_row_gone - it is about to be freed: write pending changes now. */
void session_row_gone(struct session *session);

/** session_row_load - load an ended one of @tenant; @fn as in run_row_load. */
struct store_load *session_row_load(struct session_service *sessions, const char *tenant,
                                    const char *id, store_done_fn *fn, void *ctx,
                                    struct error *err) attr_must_check;

/* At the start, before store_start. */

/**
 * session_row_live - sessions that have not ended, oldest first, for session_row_read.
 */
int session_row_live(struct store *s, struct db_rows **ret_rows, struct error *err) attr_must_check;
/** session_row_read - a row as a session in memory, in no table yet. Return: owned. */
struct session *session_row_read(struct session_service *sessions, const struct db_rows *rows,
                                 size_t row);
/** store_end_lost - mark live sessions as failed and their runs as crashed. Return: how many
 * sessions, or -1. */
int64_t store_end_lost(struct store *s, struct error *err) attr_must_check;

/* The columns that session_row_read reads, in its order. */
#define STORE_SESSION_COLUMNS                                                                      \
	"tenant, id, created_ms, updated_ms, active_ms, ended_ms, state, mode, language,"          \
	" agent_id, box_id, reason, executions, idle_us, lifetime_us, history, env, spec, "        \
	"dependencies, notes"
