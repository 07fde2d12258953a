/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: sessions in the store; written like executions (store_execution.h). One that has ended and
 * is no longer in memory is brought back when somebody asks for it, and is then remembered like one
 * that has just ended.
 *
 * What lived when a daemon died is, at the next start, still written as living:
 * store_end_lost makes it failed and crashed. Whoever can re-attach to boxes reads
 * session_row_live before that, restores what is still there (session_restore_row), and ends
 * only the rest.
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

/* Called by session*.c; nothing happens where there is no store. */

void session_row_changed(struct session *session);
/**
 * session_row_delete - by its owner: neither it nor its executions can be read any more. @fn is
 * told when that is on the disk; NULL: nobody waits for it. ERR_BUSY: there is no room, and nothing
 * has changed.
 */
int session_row_delete(struct session *session, store_done_fn *fn, void *ctx,
                       struct error *err) attr_must_check;
/**
 * session_row_when_written - @fn is told when the session as it is now is on the disk. Return: 0;
 * 1: it is, or nobody keeps it, and @fn is not called; -1: ERR_BUSY, there is no room.
 */
int session_row_when_written(struct session *session, store_done_fn *fn, void *ctx,
                             struct error *err) attr_must_check;
/** session_row_gone - its memory goes; what was not written is written now. */
void session_row_gone(struct session *session);

/** store_load_session - bring an ended one of @tenant back; @fn as in store_load_execution. */
struct store_search *store_load_session(struct session_service *sessions, const char *tenant,
                                        const char *id, store_done_fn *fn, void *ctx,
                                        struct error *err) attr_must_check;

/* At the start, before store_start. */

/**
 * session_row_live - those that had not ended when the daemon did, oldest first, in rows that
 * session_row_read understands.
 */
int session_row_live(struct store *s, struct db_rows **ret_rows, struct error *err) attr_must_check;
/** session_row_read - one row as a session in memory, in no table yet; its state is the one that
 * was written. Return: owned by whoever enters it. */
struct session *session_row_read(struct session_service *sessions, const struct db_rows *rows,
                                 size_t row);
/** store_end_lost - every session that is written as living has failed, and what it had not
 * finished has crashed. Return: how many sessions, or -1. */
int64_t store_end_lost(struct store *s, struct error *err) attr_must_check;

/* The columns that session_row_read reads, in its order. */
#define STORE_SESSION_COLUMNS                                                                      \
	"tenant, id, created_ms, updated_ms, active_ms, ended_ms, state, mode, language,"          \
	" agent_id, box_id, reason, executions, idle_us, lifetime_us, history, env, spec, "        \
	"dependencies, notes"
