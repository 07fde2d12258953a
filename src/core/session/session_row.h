/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: sessions in the store; written like records (run_row.h). An ended one no longer in memory is
 * loaded on demand and then remembered like one that just ended.
 *
 * Sessions of a daemon that died are live in the store. At startup session_row_live reads them, to
 * be restored (session_restore.c).
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

/* For session*.c. */

void session_row_changed(struct session *session);
/**
 * session_row_delete - neither it nor its runs can be read afterwards. @fn is called when that is
 * on disk; may be NULL. ERR_BUSY: no room, nothing changed.
 */
int session_row_delete(struct session *session, store_done_fn *fn, void *ctx,
                       struct error *err) attr_must_check;
/**
 * session_row_when_written - call @fn when the session's present state is on disk. Return: 0; 1: it
 * is, or there is no store: @fn is not called; -1: ERR_BUSY.
 */
int session_row_when_written(struct session *session, store_done_fn *fn, void *ctx,
                             struct error *err) attr_must_check;
/** session_row_gone - before it is freed: write pending changes. */
void session_row_gone(struct session *session);

/** session_row_load - load an ended one of @tenant; @fn as in run_row_load. */
struct store_load *session_row_load(struct session_service *sessions, const char *tenant,
                                    const char *id, store_done_fn *fn, void *ctx,
                                    struct error *err) attr_must_check;

/** session_row_live - those not ended, oldest first, for session_row_read. */
int session_row_live(struct store *s, struct db_rows **ret_rows, struct error *err) attr_must_check;
/** session_row_read - a row as a session in no table. Return: owned. */
struct session *session_row_read(struct session_service *sessions, const struct db_rows *rows,
                                 size_t row);

/* Columns of session_row_read, in order. */
#define STORE_SESSION_COLUMNS                                                                      \
	"tenant, id, created_ms, updated_ms, active_ms, ended_ms, state, mode, language,"          \
	" agent_id, box_id, reason, executions, idle_us, lifetime_us, history, env, spec, "        \
	"dependencies, notes"
