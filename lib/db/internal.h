/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the files of lib/db share:
 *
 *   conn.c   the connection: statements, values, rows, SQLite's results as errors
 *   check.c  what is looked at before a file is trusted, and the schema's versions
 *   clean_marker.c   whether a file is as it was left in good order
 *   db_readonly.c   rows of a file that is somebody else's
 *   rows.c   rows that were copied out
 *   batch.c  jobs, and grouped commits
 *   db.c     the thread and its queue
 */

#include "base/buf.h"
#include "db/db.h"
#include <sqlite3.h>

struct map;

/* Belongs to one thread at a time. */
struct conn {
	sqlite3 *sql;
	struct map *statements; /* by text: sqlite3_stmt, owned */
};

/* One value that was copied out; its bytes are at @at in the arena. */
struct db_cell {
	enum db_type type;
	int64_t number;
	size_t at, len;
};

struct db_rows {
	struct buf arena;
	struct db_cell *cells; /* owned; row by row */
	size_t count, columns, cap;
};

/** conn_open - @exclusive: for looking only; no other file is made or changed. */
int conn_open(struct conn *c, const char *path, bool exclusive, struct error *err) attr_must_check;
void conn_close(struct conn *c);
/** conn_error - what SQLite said, as ours. Return: always -1. */
int conn_error(const struct conn *c, int rc, const char *what, struct error *err);
/** conn_script - statements of ours, without values. */
int conn_script(struct conn *c, const char *sql, struct error *err) attr_must_check;
/** conn_run - @ret_rows NULL: none are wanted. */
int conn_run(struct conn *c, const struct db_statement *statement, size_t max_bytes,
             struct db_rows **ret_rows, struct error *err) attr_must_check;
/** conn_number - the first column of the first row. */
int conn_number(struct conn *c, const char *sql, int64_t *ret_number,
                struct error *err) attr_must_check;
/** conn_setup - how a connection that writes works: WAL, durable, distrustful. */
int conn_setup(struct conn *c, struct error *err) attr_must_check;

/** check_file - refuse what is not ours to write; changes nothing. *ret_version: of its schema. */
int check_file(const struct db_config *config, int64_t *ret_version,
               struct error *err) attr_must_check;
/** migrate - from @version to the last. */
int migrate(struct conn *c, const struct db_config *config, int64_t version,
            struct error *err) attr_must_check;

/** clean_marker_matches - @path was closed in good order, and is as it was then. */
bool clean_marker_matches(const char *path);
/** clean_marker_clear - it is about to be written. *ret_fd: for clean_marker_write, and the
 * caller's to close. */
int clean_marker_clear(const char *path, int *ret_fd, struct error *err) attr_must_check;
/** clean_marker_write - it was closed; nothing where @fd is -1. */
void clean_marker_write(const char *path, int fd);

struct db_rows *rows_new(size_t columns, size_t max_bytes);
/** rows_add - the row that @stmt stands on. Return: 0 or -ENOBUFS. */
int rows_add(struct db_rows *rows, sqlite3_stmt *stmt) attr_must_check;
