/* SPDX-License-Identifier: Apache-2.0 */
#include "db/internal.h"

#include "base/alloc.h"
#include "base/map.h"
#include <assert.h>
#include <errno.h>
#include <unistd.h>

/*
 * Theory of operation. The file may be damaged, or written by an attacker who took over the daemon.
 * The connection runs no code from the schema (trusted_schema off, no extensions, no attached
 * files), checks cells and rejects writes to SQLite's own structures (defensive). Values are bound
 * to statements prepared from literals.
 */

#define BUSY_TIMEOUT_MS 5000
/* Then the check continues without exclusive access. */
#define CHECK_TIMEOUT_MS 100
#define WAL_KEPT_BYTES   "16777216" /* kept of the -wal after a checkpoint */

struct result {
	int rc; /* primary */
	enum error_code code;
	int sys;
};

static const struct result results[] = {
	{SQLITE_FULL, ERR_STORAGE, ENOSPC},    {SQLITE_IOERR, ERR_STORAGE, EIO},
	{SQLITE_READONLY, ERR_STORAGE, EROFS}, {SQLITE_CANTOPEN, ERR_STORAGE, 0},
	{SQLITE_CORRUPT, ERR_STORAGE, 0},      {SQLITE_NOTADB, ERR_STORAGE, 0},
	{SQLITE_NOMEM, ERR_STORAGE, ENOMEM},   {SQLITE_BUSY, ERR_UNAVAILABLE, 0},
	{SQLITE_LOCKED, ERR_UNAVAILABLE, 0},   {SQLITE_CONSTRAINT, ERR_CONFLICT, 0},
	{SQLITE_TOOBIG, ERR_TOO_LARGE, 0},
};

bool conn_has_wal(const char *path)
{
	cleanup_free char *wal = xasprintf("%s-wal", path);

	return access(wal, F_OK) == 0;
}

int conn_error(const struct conn *c, int rc, const char *what, struct error *err)
{
	int sys = c->sql ? sqlite3_system_errno(c->sql) : 0;
	const char *text = c->sql ? sqlite3_errmsg(c->sql) : sqlite3_errstr(rc);

	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		if (results[i].rc == (rc & 0xff))
			return error_set(err, results[i].code,
			                 sys && rc != SQLITE_FULL ? sys : results[i].sys, "%s: %s",
			                 what, text);
	return error_set(err, ERR_SYSTEM, 0, "%s: %s", what, text);
}

static int configure(struct conn *c)
{
	static const struct {
		int option, value;
	} options[] = {
		{SQLITE_DBCONFIG_DEFENSIVE, 1},   {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
		{SQLITE_DBCONFIG_ENABLE_FKEY, 1}, {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
		{SQLITE_DBCONFIG_DQS_DDL, 0},     {SQLITE_DBCONFIG_DQS_DML, 0},
	};
	int rc = SQLITE_OK;

	for (size_t i = 0; i < ARRAY_SIZE(options) && rc == SQLITE_OK; i++)
		rc = sqlite3_db_config(c->sql, options[i].option, options[i].value, NULL);
	(void)sqlite3_limit(c->sql, SQLITE_LIMIT_ATTACHED, 0);
	return rc;
}

int conn_open(struct conn *c, const char *path, bool exclusive, struct error *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
	int rc = sqlite3_open_v2(path, &c->sql, flags, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_extended_result_codes(c->sql, 1);
	if (rc == SQLITE_OK)
		rc = configure(c);
	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(c->sql, exclusive ? CHECK_TIMEOUT_MS : BUSY_TIMEOUT_MS);
	if (rc != SQLITE_OK)
		return conn_error(c, rc, path, err);
	c->statements = map_new();
	return conn_script(c, "PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY", err);
}

void conn_close(struct conn *c)
{
	sqlite3_stmt *stmt;
	size_t pos = 0;
	int rc;

	while (c->statements && (stmt = map_next(c->statements, &pos, NULL)))
		(void)sqlite3_finalize(stmt); /* repeats the statement's last error */
	map_free(TAKE_PTR(c->statements));
	rc = sqlite3_close(c->sql);
	assert(rc == SQLITE_OK); /* busy: a statement is not in the map */
	(void)rc;
	c->sql = NULL;
}

int conn_script(struct conn *c, const char *sql, struct error *err)
{
	int rc = sqlite3_exec(c->sql, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : conn_error(c, rc, "database", err);
}

int conn_setup(struct conn *c, struct error *err)
{
	/* auto_vacuum works only before the first table. FULL: a reported commit survives a power
	 * failure. */
	return conn_script(c,
	                   "PRAGMA auto_vacuum = INCREMENTAL;"
	                   "PRAGMA journal_mode = WAL;"
	                   "PRAGMA synchronous = FULL;"
	                   "PRAGMA journal_size_limit = " WAL_KEPT_BYTES ";",
	                   err);
}

static sqlite3_stmt *get_statement(struct conn *c, const char *sql, struct error *err)
{
	sqlite3_stmt *stmt = map_get(c->statements, sql);
	int rc;

	if (stmt)
		return stmt;
	rc = sqlite3_prepare_v3(c->sql, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
	if (rc != SQLITE_OK) {
		(void)conn_error(c, rc, "database", err);
		return NULL;
	}
	(void)!map_put(c->statements, sql, stmt);
	return stmt;
}

/* SQLITE_STATIC: the values outlive the run. */
static int bind_value(sqlite3_stmt *stmt, int index, const struct db_value *v)
{
	switch (v->type) {
	case DB_TYPE_INT:
		return sqlite3_bind_int64(stmt, index, v->number);
	case DB_TYPE_TEXT:
		return sqlite3_bind_text64(stmt, index, v->data, v->len, SQLITE_STATIC,
		                           SQLITE_UTF8);
	case DB_TYPE_BYTES: /* an empty blob is not NULL */
		return sqlite3_bind_blob64(stmt, index, v->data ? v->data : "", v->len,
		                           SQLITE_STATIC);
	case DB_TYPE_NULL:
	case DB_TYPE_COUNT:
	default:
		return sqlite3_bind_null(stmt, index);
	}
}

static int bind_all(sqlite3_stmt *stmt, const struct db_statement *statement)
{
	int rc = SQLITE_OK;

	assert((size_t)sqlite3_bind_parameter_count(stmt) == statement->count);
	for (size_t i = 0; i < statement->count && rc == SQLITE_OK; i++)
		rc = bind_value(stmt, (int)i + 1, &statement->values[i]);
	return rc;
}

/* Return: SQLITE_DONE or the error; SQLITE_TOOBIG for too many bytes. */
static int step_all(sqlite3_stmt *stmt, struct db_rows *rows)
{
	int rc;

	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
		if (rows && rows_add(rows, stmt) < 0)
			return SQLITE_TOOBIG;
	return rc;
}

int conn_run(struct conn *c, const struct db_statement *statement, size_t max_bytes,
             struct db_rows **ret_rows, struct error *err)
{
	sqlite3_stmt *stmt = get_statement(c, statement->sql, err);
	cleanup_db_rows struct db_rows *rows = NULL;
	int rc;

	if (!stmt)
		return -1;
	if (ret_rows)
		rows = rows_new((size_t)sqlite3_column_count(stmt), max_bytes);
	rc = bind_all(stmt, statement);
	if (rc == SQLITE_OK)
		rc = step_all(stmt, rows);
	if (rc == SQLITE_TOOBIG)
		(void)error_set(err, ERR_TOO_LARGE, 0, "database: more than %zu bytes", max_bytes);
	else if (rc != SQLITE_DONE)
		(void)conn_error(c, rc, "database", err);
	(void)sqlite3_reset(stmt); /* repeats the error */
	(void)sqlite3_clear_bindings(stmt);
	if (rc != SQLITE_DONE)
		return -1;
	if (ret_rows)
		*ret_rows = TAKE_PTR(rows);
	return 0;
}

int conn_number(struct conn *c, const char *sql, int64_t *ret_number, struct error *err)
{
	const struct db_statement query = {.sql = sql};
	cleanup_db_rows struct db_rows *rows = NULL;

	if (conn_run(c, &query, 4096, &rows, err) < 0)
		return -1;
	*ret_number = db_rows_count(rows) ? db_rows_int(rows, 0, 0) : 0;
	return 0;
}
