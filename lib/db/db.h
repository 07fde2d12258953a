/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: SQLite made ours (only lib/db includes sqlite3.h): one database, one connection, one thread
 * that owns it. Two lives:
 *
 *   opened   db_open checked and migrated the file. The caller's thread owns the connection and
 *            reads and writes with db_query_now and db_exec_now, which block.
 *   started  db_start gave the connection to a thread of its own. db_write and db_read queue jobs;
 *            their callbacks come from the loop, in the order of queueing.
 *
 * Jobs run in the order in which they were queued. What is queued while the disk is busy is
 * committed together; a write's callback comes after its commit is on the disk (WAL, synchronous
 * FULL), and a read sees every write queued before it. A write of several statements happens
 * wholly or not at all.
 *
 * The queue is bounded in bytes: beyond that a job is refused with ERR_BUSY and changes nothing.
 *
 * SQL is written as literals (DB_SQL does not take anything else); values are bound, never pasted.
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

/* Borrowed for the call: whoever keeps it, copies it. */
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
/** DB_BYTES - @len bytes of anything. */
#define DB_BYTES(bytes, size)                                                                      \
	((struct db_value){.type = DB_TYPE_BYTES, .data = (bytes), .len = (size)})

/* A statement and what its ?1, ?2, … stand for. */
struct db_statement {
	const char *sql; /* a literal: prepared once, then found by its text */
	const struct db_value *values;
	size_t count;
};

/** DB_SQL - DB_SQL("DELETE FROM t WHERE id = ?1", DB_TEXT(id)); the text must be a literal. */
#define DB_SQL(text, ...)                                                                          \
	((struct db_statement){"" text, (const struct db_value[]){__VA_ARGS__},                    \
	                       sizeof((const struct db_value[]){__VA_ARGS__}) /                    \
	                               sizeof(struct db_value)})

/* One step of the schema; runs in a transaction of its own. Versions count from 1, no gaps. */
struct db_migration {
	unsigned version;
	const char *name;
	const char *sql; /* statements, with ";" between them */
};

struct db_config {
	const char *path;                      /* made with mode 0600 where it is missing; NULL:
	                                          in memory, gone when it is closed */
	uint32_t application_id;               /* tells our files from those of other programs */
	const struct db_migration *migrations; /* borrowed during db_open */
	size_t migrations_count;
	/* Of jobs that are not done. One may exceed it alone; small ones have a reserve. */
	size_t queue_max_bytes;
};

/** db_close - waits until everything queued is done. No callback comes any more. */
void db_close(struct db *db);
static inline void db_closep(struct db **db)
{
	db_close(*db);
}

/**
 * db_open - ERR_CONFIG, and not a byte of the file, of its -wal or of its -shm changed, where it is
 * no database, damaged, of another program or of a newer version of this one: the message says what
 * to do.
 */
int db_open(const struct db_config *config, struct db **ret_db, struct error *err) attr_must_check;

/** db_readonly_query - rows of somebody else's database, which is not changed. Blocks. */
int db_readonly_query(const char *path, const struct db_statement *query, size_t max_bytes,
                      struct db_rows **ret_rows, struct error *err) attr_must_check;

/* Before db_start. They block. */

/** db_exec_now - @count statements in one transaction. */
int db_exec_now(struct db *db, const struct db_statement *steps, size_t count,
                struct error *err) attr_must_check;
/** db_query_now - all rows, of at most @max_bytes; free them with db_rows_free. */
int db_query_now(struct db *db, const struct db_statement *query, size_t max_bytes,
                 struct db_rows **ret_rows, struct error *err) attr_must_check;

/**
 * db_start - from here on the connection belongs to a new thread, which calls @on_thread first (a
 * filter of its own, say; NULL: nothing to do) and does nothing without its success. @loop must
 * outlive @db.
 */
int db_start(struct db *db, struct loop *loop, int (*on_thread)(struct error *err),
             struct error *err) attr_must_check;

/* On the loop. */

/** db_done_fn - @err NULL: it is on the disk. Else nothing of it is there. */
typedef void db_done_fn(void *ctx, const struct error *err);
/** db_rows_fn - @rows are the callee's to read until it returns; NULL with @err. */
typedef void db_rows_fn(void *ctx, const struct db_rows *rows, const struct error *err);

/**
 * db_write - @count statements, wholly or not at all; values are copied. @on_done may be NULL: then
 * a failure is logged.
 * ERR_CONFLICT in the callback: a constraint; ERR_STORAGE: the disk is full or broken.
 * Return: the job, until its callback; NULL with *err: ERR_BUSY.
 */
struct db_job *db_write(struct db *db, const struct db_statement *steps, size_t count,
                        db_done_fn *on_done, void *ctx, struct error *err) attr_must_check;
/** db_change - a write of one statement that says what it did (RETURNING); durable as db_write. */
struct db_job *db_change(struct db *db, const struct db_statement *step, size_t max_bytes,
                         db_rows_fn *on_rows, void *ctx, struct error *err) attr_must_check;
/** db_read - ERR_TOO_LARGE in the callback for more than @max_bytes of rows. */
struct db_job *db_read(struct db *db, const struct db_statement *query, size_t max_bytes,
                       db_rows_fn *on_rows, void *ctx, struct error *err) attr_must_check;
/** db_forget - no callback comes of @job, which happens all the same. */
void db_forget(struct db_job *job);
/** db_set_queue_max - from now on. */
void db_set_queue_max(struct db *db, size_t bytes);
/** db_has_room - whether a job of @bytes would be taken now. */
bool db_has_room(const struct db *db, size_t bytes);
/** db_waiting - bytes of jobs that are not done. */
size_t db_waiting(const struct db *db);
/** db_last_write_failed - ERR_NONE, or why the latest commit was not possible (ERR_STORAGE). */
const struct error *db_last_write_error(const struct db *db);

/* Rows. Columns count from 0; a value of another type reads as 0, or as nothing. */

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
/** db_rows_bytes - also of text. NULL for SQL's NULL; a NUL follows the bytes. */
const char *db_rows_bytes(const struct db_rows *rows, size_t row, size_t column, size_t *ret_len);
