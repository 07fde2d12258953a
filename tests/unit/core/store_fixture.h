/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: sessions and executions on a fake driver (session_fixture.h) with a real store in its own
 * directory. Another service on the same store shows what a later daemon would find.
 */

#include <dirent.h>

#include "core/run/run_record_internal.h"
#include "core/session/session_internal.h"
#include "core/store/retention.h"
#include "core/store/store_internal.h"
#include "session_agent.h"

struct rig {
	struct fixture *f;
	struct store *store;
	char dir[64], path[96];
	int callbacks;
	struct error last;
};

static inline void rig_on_done(void *ctx, const struct error *err)
{
	struct rig *rig = ctx;

	rig->callbacks++;
	rig->last = err ? *err : (struct error){0};
}

static inline void rig_serve(struct rig *rig)
{
	run_records_set_store(rig->f->executions, rig->store);
	make_session_service(rig->f, rig->store);
}

static inline int rig_setup(void **state)
{
	struct rig *rig = NEW(struct rig);
	void *made = NULL;

	if (setup(&made) < 0)
		return -1;
	rig->f = made;
	(void)snprintf(rig->dir, sizeof(rig->dir), "/tmp/millibox-store-XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	(void)snprintf(rig->path, sizeof(rig->path), "%s/" STORE_FILE, rig->dir);
	if (store_open(rig->dir, &rig->store, &rig->f->err) < 0 ||
	    store_start(rig->store, rig->f->loop, NULL, &rig->f->err) < 0)
		fail_msg("%s", rig->f->err.msg);
	session_service_free(rig->f->service);
	rig_serve(rig);
	*state = rig;
	return 0;
}

static inline void rig_remove(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	char name[400];

	while (d && (entry = readdir(d))) {
		(void)snprintf(name, sizeof(name), "%s/%s", dir, entry->d_name);
		(void)unlink(name);
	}
	if (d)
		(void)closedir(d);
	(void)rmdir(dir);
}

static inline int rig_teardown(void **state)
{
	struct rig *rig = *state;

	end_fixture(rig->f, rig->store);
	rig_remove(rig->dir);
	free(rig);
	return 0;
}

/* Wait for @count callbacks in all. */
static inline void rig_wait(struct rig *rig, int count)
{
	uint64_t end = clock_us() + 10 * USEC_PER_SEC;

	while (rig->callbacks < count) {
		assert_true(clock_us() < end);
		loop_run_once(rig->f->loop, false);
	}
}

/* All changes are written. */
static inline void rig_flush(struct rig *rig)
{
	uint64_t end = clock_us() + 10 * USEC_PER_SEC;

	store_flush(rig->store);
	while (db_waiting(rig->store->db) > 0) {
		assert_true(clock_us() < end);
		loop_run_once(rig->f->loop, false);
	}
}

static inline void rig_sql(struct rig *rig, const char *sql)
{
	const struct db_statement step = {.sql = sql};
	int before = rig->callbacks;

	if (!db_write(rig->store->db, &step, 1, rig_on_done, rig, &rig->f->err))
		fail_msg("%s", rig->f->err.msg);
	rig_wait(rig, before + 1);
	if (error_is_set(&rig->last))
		fail_msg("%s", rig->last.msg);
}

static inline void rig_rows(void *ctx, const struct db_rows *rows, const struct error *err)
{
	(void)rows;
	rig_on_done(ctx, err);
}

/* Writes fail, as on a broken disk; or succeed again. */
static inline void rig_break(struct rig *rig, bool broken)
{
	const struct db_statement pragma = {.sql = broken ? "PRAGMA query_only = 1"
	                                                  : "PRAGMA query_only = 0"};
	int before;

	if (broken)
		rig_flush(rig);
	before = rig->callbacks;
	/* Not in a transaction, which could not begin. */
	assert_non_null(db_read(rig->store->db, &pragma, 4096, rig_rows, rig, &rig->f->err));
	rig_wait(rig, before + 1);
}

/* A number that another connection reads from the file. */
static inline int64_t rig_number(struct rig *rig, const char *sql)
{
	const struct db_statement query = {.sql = sql};
	cleanup_db_rows struct db_rows *rows = NULL;
	struct error err = {0};

	if (db_readonly_query(rig->path, &query, 65536, &rows, &err) < 0)
		fail_msg("%s", err.msg);
	return db_rows_count(rows) ? db_rows_int(rows, 0, 0) : -1;
}

#define RIG_TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

static inline void rig_forget_run(void *ctx, const char *tenant, const char *id)
{
	struct rig *rig = ctx;

	run_records_expire(rig->f->executions, tenant, id);
}

static inline void rig_forget_session(void *ctx, const char *tenant, const char *id,
                                      uint64_t created_ms)
{
	struct rig *rig = ctx;

	session_expire(rig->f->service, tenant, id, created_ms);
}

/* The daemon's retention, for the store of @rig. */
static inline struct retention_config rig_retention(struct rig *rig)
{
	return (struct retention_config){
		.config = rig->f->config,
		.store = rig->store,
		.loop = rig->f->loop,
		.forget_run = rig_forget_run,
		.forget_session = rig_forget_session,
		.ctx = rig,
	};
}
