/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shared by the files of lib/db:
 *
 *   conn.c          the connection: statements, values, rows, errors
 *   check.c         checks before a file is trusted, and migrations
 *   clean_marker.c  whether a file is as a clean close left it
 *   db_readonly.c   queries of another process's database
 *   rows.c          rows that were copied out
 *   batch.c         jobs and grouped commits
 *   db.c            the thread and its queue
 */

#include "base/buf.h"
#include "db/db.h"
#include <sqlite3.h>

struct map;

/* Used by one thread at a time. */
struct conn {
	sqlite3 *sql;
	struct map *statements; /* by text: sqlite3_stmt, owned */
};

/* A value copied out; its bytes are at @at in the arena. */
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

/** conn_open - @exclusive: for checking; creates and changes no other file. */
int conn_open(struct conn *c, const char *path, bool exclusive, struct error *err) attr_must_check;
void conn_close(struct conn *c);
/** conn_has_wal - @path is open, or was not closed cleanly. */
bool conn_has_wal(const char *path);
/** conn_error - Return: always -1. */
int conn_error(const struct conn *c, int rc, const char *what, struct error *err);
int conn_script(struct conn *c, const char *sql, struct error *err) attr_must_check;
/** conn_run - @ret_rows NULL: discard rows. */
int conn_run(struct conn *c, const struct db_statement *statement, size_t max_bytes,
             struct db_rows **ret_rows, struct error *err) attr_must_check;
/** conn_number - first column of the first row. */
int conn_number(struct conn *c, const char *sql, int64_t *ret_number,
                struct error *err) attr_must_check;
/** conn_setup - for a connection that writes: WAL, durable, defensive. */
int conn_setup(struct conn *c, struct error *err) attr_must_check;

/** check_file - reject files that are not ours to write; changes nothing. */
int check_file(const struct db_config *config, int64_t *ret_version,
               struct error *err) attr_must_check;
/** migrate - from @version to the latest. */
int migrate(struct conn *c, const struct db_config *config, int64_t version,
            struct error *err) attr_must_check;

/** clean_marker_matches - @path was closed cleanly and has not changed since. */
bool clean_marker_matches(const char *path);
/** clean_marker_clear - call before writing. *ret_fd, the caller's, is for clean_marker_write. */
int clean_marker_clear(const char *path, int *ret_fd, struct error *err) attr_must_check;
/** clean_marker_write - after closing; no-op if @fd is -1. */
void clean_marker_write(const char *path, int fd);

struct db_rows *rows_new(size_t columns, size_t max_bytes);
/** rows_add - copy @stmt's current row. Return: 0 or -ENOBUFS. */
int rows_add(struct db_rows *rows, sqlite3_stmt *stmt) attr_must_check;
