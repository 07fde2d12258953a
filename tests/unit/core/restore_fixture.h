/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: sessions of an earlier daemon, for tests. The test writes the rows that the daemon left in
 * the store by hand, so that they can be anything. What it left in boxes is in the fake driver.
 */

#include "db/db.h"
#include "session_agent.h"

struct rig {
	struct fixture *f;
	struct store *store;
};

static inline int setup_rig(void **state)
{
	struct rig *rig = NEW(struct rig);
	struct fixture *f;
	void *made = NULL;

	if (setup(&made) < 0)
		return -1;
	rig->f = f = made;
	assert_int_equal(store_open(NULL, &rig->store, &f->err), 0);
	run_records_set_store(f->executions, rig->store);
	session_service_free(f->service);
	make_session_service(f, rig->store);
	*state = rig;
	return 0;
}

static inline int teardown_rig(void **state)
{
	struct rig *rig = *state;

	end_fixture(rig->f, rig->store);
	free(rig);
	return 0;
}

static inline void write_rows(struct rig *rig, const struct db_statement *row)
{
	if (db_exec_now(store_db(rig->store), row, 1, &rig->f->err) < 0)
		fail_msg("%s", rig->f->err.msg);
}

#define SPEC                                                                                       \
	"{\"memory\": 134217728, \"workspace\": 16777216, \"tmp\": 16777216, \"shm\": 16777216,"   \
	" \"workspace_inodes\": 1024, \"tmp_inodes\": 1024, \"pids\": 16, \"cpu\": 1000,"          \
	" \"nofile\": 256}"

/* @box NULL: an ephemeral one. */
static inline void past_session(struct rig *rig, const char *id, const char *box, const char *state,
                                const char *language)
{
	const int64_t now = (int64_t)clock_real_ms();

	write_rows(rig,
	           &DB_SQL("INSERT INTO sessions (id, created_ms, updated_ms, active_ms, state,"
	                   " mode, language, box_id, driver, executions, idle_us, lifetime_us,"
	                   " history, env, spec) VALUES (?1, ?2, ?2, ?2, ?3, ?4, ?5, ?6, 'fake',"
	                   " 1, 60000000, 600000000, 'ready ' || ?2 || char(10), ?7, '" SPEC "')",
	                   DB_TEXT(id), DB_INT(now), DB_TEXT(state),
	                   DB_TEXT(box ? "persistent" : "ephemeral"), DB_TEXT(language),
	                   DB_TEXT(box), DB_BYTES("A=b", 4)));
}

static inline void past_execution(struct rig *rig, const char *id, const char *session,
                                  bool started, const char *request)
{
	const int64_t now = (int64_t)clock_real_ms();

	write_rows(rig, &DB_SQL("INSERT INTO executions (id, session_id, session_ms, created_ms,"
	                        " started_ms, status, language, timeout_us, bytes, code, request,"
	                        " begun) VALUES (?1, ?2, ?3, ?3, ?4, ?5, 'python', 5000000, 1,"
	                        " ?6, ?7, ?8)",
	                        DB_TEXT(id), DB_TEXT(session), DB_INT(now),
	                        started ? DB_INT(now) : DB_NULL,
	                        DB_TEXT(started ? "running" : "pending"), DB_BYTES("x = 1", 5),
	                        DB_TEXT(request), DB_INT(started)));
}

static inline void restore(struct rig *rig)
{
	struct fixture *f = rig->f;
	struct session_saved *past = NULL;

	if (session_saved_read(rig->store, &past, &f->err) < 0 ||
	    store_start(rig->store, f->loop, NULL, &f->err) < 0)
		fail_msg("%s", f->err.msg);
	session_service_restore(f->service, past);
	session_saved_free(past);
}

static inline struct session *session(struct rig *rig, const char *id)
{
	struct session *found = session_find(rig->f->service, TENANT_DEFAULT, id);

	assert_non_null(found);
	return found;
}

static inline struct run_record *record(struct rig *rig, const char *id)
{
	struct run_record *found = run_records_find(rig->f->executions, TENANT_DEFAULT, id);

	assert_non_null(found);
	return found;
}
