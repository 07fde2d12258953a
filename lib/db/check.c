/* SPDX-License-Identifier: Apache-2.0 */
#include "db/internal.h"

#include "base/alloc.h"
#include "base/str.h"
#include <unistd.h>

/*
 * Theory of operation. A rejected file must stay byte for byte as it is, for repair. An ordinary
 * connection would change it: recovery creates a -shm, and the last close checkpoints the -wal. So
 * the check opens the file exclusively, which keeps the index of the -wal in memory and leaves the
 * -wal alone. Owner and version are checked each time; pages only if the file was not closed
 * cleanly or has changed since (clean_marker.c).
 */

#define ADVICE                                                                                     \
	"; nothing was changed. Restore a backup, or move the file away to start with an empty "   \
	"one"
#define CHECK_BYTES 65536

static int reject_file(const char *path, const char *why, struct error *err)
{
	return error_set(err, ERR_CONFIG, 0, "%.90s %s" ADVICE, path, why);
}

static int check_integrity(struct conn *c, const char *path, struct error *err)
{
	const struct db_statement query = {.sql = "PRAGMA quick_check(1)"};
	cleanup_db_rows struct db_rows *rows = NULL;
	const char *verdict;

	if (conn_run(c, &query, CHECK_BYTES, &rows, err) < 0)
		return -1;
	verdict = db_rows_count(rows) ? db_rows_text(rows, 0, 0) : NULL;
	if (!verdict || !str_equal(verdict, "ok"))
		return reject_file(path, "is damaged", err);
	return 0;
}

static int check_owner(const struct db_config *config, int64_t id, int64_t version, int64_t tables,
                       struct error *err)
{
	/* The machine stopped right after creating the file. */
	if (id == 0 && version == 0 && tables == 0)
		return 0;
	if (id != (int64_t)config->application_id)
		return reject_file(config->path, "belongs to another program", err);
	if (version > (int64_t)config->migrations_count)
		return error_set(err, ERR_CONFIG, 0,
		                 "%.90s was written by a newer version (schema %lld, this one "
		                 "knows %zu); nothing was changed. Start that version, or restore "
		                 "an older backup",
		                 config->path, (long long)version, config->migrations_count);
	return 0;
}

static int check_open_file(struct conn *c, const struct db_config *config, bool exclusive,
                           int64_t *ret_version, struct error *err)
{
	bool clean = clean_marker_matches(config->path);
	int64_t id, version, tables;

	if (conn_open(c, config->path, exclusive, err) < 0)
		return -1;
	(void)sqlite3_db_config(c->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (exclusive && conn_script(c, "PRAGMA locking_mode = EXCLUSIVE", err) < 0)
		return -1;
	if (conn_number(c, "PRAGMA application_id", &id, err) < 0 ||
	    conn_number(c, "PRAGMA user_version", &version, err) < 0 ||
	    conn_number(c, "SELECT count(*) FROM sqlite_schema", &tables, err) < 0 ||
	    check_owner(config, id, version, tables, err) < 0 ||
	    (!clean && check_integrity(c, config->path, err) < 0))
		return -1;
	*ret_version = version;
	return 0;
}

/* The check may have created an empty log. */
static void remove_log(const char *path)
{
	cleanup_free char *log = xasprintf("%s-wal", path);

	(void)unlink(log);
}

static int check_exclusively(const struct db_config *config, bool exclusive, int64_t *ret_version,
                             bool *ret_busy, struct error *err)
{
	bool had_log = conn_has_wal(config->path);
	struct conn c = {0};
	int r = check_open_file(&c, config, exclusive, ret_version, err);
	int rc = c.sql ? sqlite3_errcode(c.sql) & 0xff : SQLITE_OK;

	*ret_busy = r < 0 && rc == SQLITE_BUSY;
	if (r < 0 && (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB)) {
		error_clear(err);
		(void)reject_file(config->path,
		                  rc == SQLITE_NOTADB ? "is not a database" : "is damaged", err);
	}
	conn_close(&c);
	if (exclusive && !had_log && !*ret_busy)
		remove_log(config->path);
	return r;
}

int check_file(const struct db_config *config, int64_t *ret_version, struct error *err)
{
	bool busy;
	int r = check_exclusively(config, true, ret_version, &busy, err);

	if (!busy)
		return r;
	/* Another process, perhaps a backup, keeps the -shm. */
	error_clear(err);
	return check_exclusively(config, false, ret_version, &busy, err);
}

static int apply_migration(struct conn *c, const struct db_config *config,
                           const struct db_migration *m, struct error *err)
{
	struct error ignored = {0};
	char version[96];

	/* A PRAGMA takes no bound value; these are our own numbers. */
	(void)!str_format(version, sizeof(version),
	                  "PRAGMA application_id = %u; PRAGMA user_version = %u",
	                  config->application_id, m->version);
	if (conn_script(c, "BEGIN IMMEDIATE", err) == 0 && conn_script(c, m->sql, err) == 0 &&
	    conn_script(c, version, err) == 0 && conn_script(c, "COMMIT", err) == 0)
		return 0;
	(void)!conn_script(c, "ROLLBACK", &ignored); /* SQLite may have rolled back already */
	return error_wrap(err, "schema %u (%s)", m->version, m->name);
}

int migrate(struct conn *c, const struct db_config *config, int64_t version, struct error *err)
{
	for (size_t i = (size_t)version; i < config->migrations_count; i++) {
		assert(config->migrations[i].version == i + 1);
		if (apply_migration(c, config, &config->migrations[i], err) < 0)
			return -1;
	}
	return 0;
}
