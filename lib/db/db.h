/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: SQLite (only lib/db includes sqlite3.h): one database, one connection, one thread that owns
 * it. Two states:
 *
 *   opened   db_open checked and migrated the file. The caller's thread owns the connection and
 *            uses db_query_now and db_exec_now, which block.
 *   started  db_start gave the connection to its own thread. db_write and db_read queue jobs;
 *            callbacks run on the loop, in the order of queueing.
 *
 * Jobs run in that order. Those queued while the disk is busy are committed together; a write's
 * callback runs after its commit is on disk (WAL, synchronous FULL), and a read sees every earlier
 * write. A write of several statements is atomic.
 *
 * The queue is bounded in bytes; beyond that: ERR_BUSY.
 *
 * SQL is a literal (DB_SQL accepts nothing else); values are bound.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct db;
struct db_job;
struct db_rows;
struct loop;

enum db_type {
	DB_TYPE_NULL,
	DB_TYPE_INT,
	DB_TYPE_TEXT,
	DB_TYPE_BYTES,
	DB_TYPE_COUNT
};

/* Borrowed for the call. */
struct db_value {
	enum db_type type;
	int64_t number;
	const void *data;
	size_t len;
};

static inline struct db_value db_text(const char *s)
{
	return s ? (struct db_value){DB_TYPE_TEXT, 0, s, strlen(s)} : (struct db_value){0};
}

#define DB_NULL       ((struct db_value){0})
#define DB_INT(value) ((struct db_value){.type = DB_TYPE_INT, .number = (int64_t)(value)})
/** DB_TEXT - a string; NULL is SQL's NULL. */
#define DB_TEXT(s) db_text(s)
#define DB_BYTES(bytes, size)                                                                      \
	((struct db_value){.type = DB_TYPE_BYTES, .data = (bytes), .len = (size)})

/* With the values of ?1, ?2, … */
struct db_statement {
	const char *sql; /* a literal: looked up by its text */
	const struct db_value *values;
	size_t count;
};

/** DB_SQL - DB_SQL("DELETE FROM t WHERE id = ?1", DB_TEXT(id)); @text is a literal. */
#define DB_SQL(text, ...)                                                                          \
	((struct db_statement){"" text, (const struct db_value[]){__VA_ARGS__},                    \
	                       sizeof((const struct db_value[]){__VA_ARGS__}) /                    \
	                               sizeof(struct db_value)})

/* In its own transaction. Versions count from 1 without gaps. */
struct db_migration {
	unsigned version;
	const char *name;
	const char *sql; /* separated by ";" */
};

struct db_config {
	const char *path;                      /* created with mode 0600; NULL: in memory */
	uint32_t application_id;               /* tells our files from other programs' */
	const struct db_migration *migrations; /* borrowed during db_open */
	size_t migrations_count;
	/* For unfinished jobs. One job may exceed it; small ones have a reserve. */
	size_t queue_max_bytes;
};

/** db_close - waits for queued jobs. No callback follows. */
void db_close(struct db *db);
static inline void db_closep(struct db **db)
{
	db_close(*db);
}

/**
 * db_open - ERR_CONFIG if the file is not a database, is damaged, or belongs to another program or
 * a newer version; then no byte of the file, its -wal or its -shm changes.
 */
int db_open(const struct db_config *config, struct db **ret_db, struct error *err) attr_must_check;

/** db_readonly_query - another process's database. Blocks. */
int db_readonly_query(const char *path, const struct db_statement *query, size_t max_bytes,
                      struct db_rows **ret_rows, struct error *err) attr_must_check;

/** db_exec_now - in one transaction. */
int db_exec_now(struct db *db, const struct db_statement *steps, size_t count,
                struct error *err) attr_must_check;
/** db_query_now - rows of at most @max_bytes; free them with db_rows_free. */
int db_query_now(struct db *db, const struct db_statement *query, size_t max_bytes,
                 struct db_rows **ret_rows, struct error *err) attr_must_check;

/**
 * db_start - give the connection to a new thread, which first calls @on_thread (may be NULL) and
 * ends if that fails. @loop must outlive @db.
 */
int db_start(struct db *db, struct loop *loop, int (*on_thread)(struct error *err),
             struct error *err) attr_must_check;

/** db_done_fn - @err NULL: committed to disk; else nothing was changed. */
typedef void db_done_fn(void *ctx, const struct error *err);
/** db_rows_fn - @rows are valid during the call; NULL with @err. */
typedef void db_rows_fn(void *ctx, const struct db_rows *rows, const struct error *err);

/**
 * db_write - @count statements, atomically; values are copied. @on_done NULL: a failure is logged.
 * The callback gets ERR_CONFLICT (a constraint) or ERR_STORAGE. Return: the job, valid until its
 * callback; NULL with *err: ERR_BUSY.
 */
struct db_job *db_write(struct db *db, const struct db_statement *steps, size_t count,
                        db_done_fn *on_done, void *ctx, struct error *err) attr_must_check;
/** db_change - one statement with RETURNING; as durable as db_write. */
struct db_job *db_change(struct db *db, const struct db_statement *step, size_t max_bytes,
                         db_rows_fn *on_rows, void *ctx, struct error *err) attr_must_check;
/** db_read - the callback gets ERR_TOO_LARGE beyond @max_bytes of rows. */
struct db_job *db_read(struct db *db, const struct db_statement *query, size_t max_bytes,
                       db_rows_fn *on_rows, void *ctx, struct error *err) attr_must_check;
/** db_forget - drop @job's callback; the job still runs. */
void db_forget(struct db_job *job);
void db_set_queue_max(struct db *db, size_t bytes);
bool db_has_room(const struct db *db, size_t bytes);
/** db_waiting - bytes of unfinished jobs. */
size_t db_waiting(const struct db *db);
/** db_last_write_error - ERR_NONE, or why the latest commit failed. */
const struct error *db_last_write_error(const struct db *db);

/* Rows. Columns count from 0; a value of another type reads as 0 or as empty. */

void db_rows_free(struct db_rows *rows);
static inline void db_rows_freep(struct db_rows **rows)
{
	db_rows_free(*rows);
}
#define cleanup_db_rows attr_cleanup(db_rows_freep)
size_t db_rows_count(const struct db_rows *rows);
int64_t db_rows_int(const struct db_rows *rows, size_t row, size_t column);
/** db_rows_text - NUL-terminated; NULL for SQL's NULL. */
const char *db_rows_text(const struct db_rows *rows, size_t row, size_t column);
/** db_rows_bytes - for text too. NULL for SQL's NULL; a NUL follows the bytes. */
const char *db_rows_bytes(const struct db_rows *rows, size_t row, size_t column, size_t *ret_len);
