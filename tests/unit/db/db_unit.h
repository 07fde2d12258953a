/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a database in a directory of its own, for the tests of lib/db. */

#include "unit.h"

#include "base/alloc.h"
#include "base/str.h"
#include "db/db.h"
#include "io/loop.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define UNIT_CODES       64
#define UNIT_APPLICATION 0x4d424f58u

static const struct db_migration unit_migrations[] = {
	{1, "first",
         "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, bytes BLOB);"},
	{2, "second", "ALTER TABLE t ADD COLUMN extra TEXT NOT NULL DEFAULT 'was not there';"},
	{3, "third", "CREATE TABLE u (t INTEGER NOT NULL REFERENCES t (id));"},
};

struct db_unit {
	char dir[64], path[96];
	struct db_config config;
	struct loop *loop;
	struct db *db;
	int callbacks;
	char order[4096];                  /* the letter of each callback's context */
	enum error_code codes[UNIT_CODES]; /* of the first callbacks */
	struct error last;                 /* of the last callback; clear: success */
	struct db_job *other;              /* a job that a callback forgets */
};

static inline void unit_made(struct db_unit *u)
{
	(void)snprintf(u->dir, sizeof(u->dir), "/tmp/millibox-db-XXXXXX");
	assert_non_null(mkdtemp(u->dir));
	(void)snprintf(u->path, sizeof(u->path), "%s/unit.db", u->dir);
	u->config = (struct db_config){.path = u->path,
	                               .application_id = UNIT_APPLICATION,
	                               .migrations = unit_migrations,
	                               .migrations_count = ARRAY_SIZE(unit_migrations),
	                               .queue_max_bytes = 1u << 20};
	u->loop = loop_new();
}

static inline void unit_open(struct db_unit *u)
{
	struct error err = {0};

	if (db_open(&u->config, &u->db, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline void unit_start(struct db_unit *u)
{
	struct error err = {0};

	unit_open(u);
	assert_int_equal(db_start(u->db, u->loop, NULL, &err), 0);
}

static inline void unit_gone(struct db_unit *u)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", "-clean"};
	char name[128];

	db_close(TAKE_PTR(u->db));
	loop_free(u->loop);
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		(void)snprintf(name, sizeof(name), "%s%s", u->path, suffixes[i]);
		(void)unlink(name);
	}
	assert_int_equal(rmdir(u->dir), 0);
}

static inline int64_t unit_number(struct db_unit *u, const char *sql)
{
	const struct db_statement query = {.sql = sql};
	cleanup_db_rows struct db_rows *rows = NULL;
	struct error err = {0};

	if (db_query_now(u->db, &query, 4096, &rows, &err) < 0)
		fail_msg("%s", err.msg);
	return db_rows_int(rows, 0, 0);
}
