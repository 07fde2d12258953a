/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <pthread.h>
#include <sqlite3.h>

#include "base/parse.h"
#include "core/session/session_list.h"
#include "core/session/session_row.h"
#include "core/store/retention.h"
#include "store_fixture.h"

/*
 * Pages of lists; and how each statement of the store finds its rows. The program is linked with
 * its own sqlite3_prepare_v3, which records what is prepared: no statement has to be named here.
 */

#define TEXTS_MAX 256

static struct {
	pthread_mutex_t lock;
	char *texts[TEXTS_MAX];
	size_t count;
	bool noting;
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

int __real_sqlite3_prepare_v3(sqlite3 *db, const char *sql, int len, unsigned flags,
                              sqlite3_stmt **ret_stmt, const char **ret_tail);
int __wrap_sqlite3_prepare_v3(sqlite3 *db, const char *sql, int len, unsigned flags,
                              sqlite3_stmt **ret_stmt, const char **ret_tail);

int __wrap_sqlite3_prepare_v3(sqlite3 *db, const char *sql, int len, unsigned flags,
                              sqlite3_stmt **ret_stmt, const char **ret_tail)
{
	pthread_mutex_lock(&notes.lock);
	if (notes.noting && notes.count < TEXTS_MAX)
		notes.texts[notes.count++] = xstrdup(sql);
	pthread_mutex_unlock(&notes.lock);
	return __real_sqlite3_prepare_v3(db, sql, len, flags, ret_stmt, ret_tail);
}

static void note(bool on)
{
	pthread_mutex_lock(&notes.lock);
	notes.noting = on;
	pthread_mutex_unlock(&notes.lock);
}

/* Pages. */

struct page {
	struct rig *rig;
	size_t count, total;
	char ids[16][64];
};

static void on_page(void *ctx, const struct store_page *page, const struct error *err)
{
	struct page *p = ctx;

	rig_on_done(p->rig, err);
	if (!page)
		return;
	p->count = page->count;
	p->total = page->total;
	for (size_t i = 0; i < page->count && i < ARRAY_SIZE(p->ids); i++) {
		struct session_info session;
		struct run_record_info execution;

		if (page->sessions) {
			session_info(page->sessions[i], &session);
			(void)snprintf(p->ids[i], sizeof(p->ids[i]), "%s", session.id);
		} else {
			run_record_info(page->executions[i], &execution);
			(void)snprintf(p->ids[i], sizeof(p->ids[i]), "%s", execution.id);
		}
	}
}

static struct page sessions(struct rig *rig, const char *status, size_t limit, size_t offset)
{
	const struct store_query query = {
		.tenant = "acme", .status = status, .limit = limit, .offset = offset};
	struct page p = {.rig = rig};
	int before = rig->callbacks;

	assert_non_null(store_list_sessions(rig->f->service, &query, on_page, &p, &rig->f->err));
	rig_wait(rig, before + 1);
	assert_false(error_is_set(&rig->last));
	return p;
}

static struct page executions(struct rig *rig, const char *status, size_t limit, size_t offset)
{
	const struct store_query query = {.tenant = "acme",
	                                  .session_id = "s3",
	                                  .session_ms = 3,
	                                  .status = status,
	                                  .limit = limit,
	                                  .offset = offset};
	struct page p = {.rig = rig};
	int before = rig->callbacks;

	assert_non_null(
		store_list_executions(rig->f->executions, &query, on_page, &p, &rig->f->err));
	rig_wait(rig, before + 1);
	assert_false(error_is_set(&rig->last));
	return p;
}

/* Six sessions, of which the even ones failed and one is deleted; five executions of the third. */
static void fill(struct rig *rig)
{
	rig_sql(rig, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6)"
	             " INSERT INTO sessions (tenant, id, created_ms, updated_ms, active_ms,"
	             " ended_ms, deleted, state, mode, language, driver, executions, idle_us,"
	             " lifetime_us, history, env, spec) SELECT 'acme', 's' || i, i, 1, 1, 9, i = 6,"
	             " CASE i % 2 WHEN 0 THEN 'failed' ELSE 'terminated' END, 'ephemeral',"
	             " 'python', 'fake', 2, 1, 1, '', x'', '{}' FROM n");
	rig_sql(rig, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5)"
	             " INSERT INTO executions (id, tenant, session_id, session_ms, created_ms,"
	             " completed_ms, status, language, timeout_us, bytes) SELECT 'e' || i, 'acme',"
	             " 's3', 3, i, i, CASE i WHEN 4 THEN 'failed' ELSE 'success' END, 'python', 1,"
	             " 1 FROM n");
}

static void sessions_come_in_pages_newest_first(void **state)
{
	struct rig *rig = *state;
	struct page p;

	fill(rig);
	p = sessions(rig, NULL, 2, 1);
	assert_int_equal(p.total, 5);
	assert_int_equal(p.count, 2);
	assert_string_equal(p.ids[0], "s4");
	assert_string_equal(p.ids[1], "s3");
	p = sessions(rig, "failed", 10, 0);
	assert_int_equal(p.total, 2);
	assert_string_equal(p.ids[0], "s4");
	assert_string_equal(p.ids[1], "s2");
	assert_int_equal(sessions(rig, "ready", 10, 0).total, 0);
	assert_int_equal(sessions(rig, NULL, 10, 5).count, 0);
}

static void executions_come_in_pages_newest_first(void **state)
{
	struct rig *rig = *state;
	struct page p;

	fill(rig);
	p = executions(rig, NULL, 3, 1);
	assert_int_equal(p.total, 5);
	assert_int_equal(p.count, 3);
	assert_string_equal(p.ids[0], "e4");
	assert_string_equal(p.ids[2], "e2");
	p = executions(rig, "failed", 3, 0);
	assert_int_equal(p.total, 1);
	assert_string_equal(p.ids[0], "e4");
}

/* Enough for several blocks: three of four sessions exist, in two states. */
static void fill_much(struct rig *rig)
{
	rig_sql(rig,
	        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000)"
	        " INSERT INTO sessions (tenant, id, created_ms, updated_ms, active_ms, ended_ms,"
	        " deleted, state, mode, language, driver, executions, idle_us, lifetime_us,"
	        " history, env, spec) SELECT CASE i % 5 WHEN 0 THEN 'other' ELSE 'acme' END, 's' ||"
	        " i, i, 1, 1, 9, i % 4 = 0, CASE i % 3 WHEN 0 THEN 'failed' ELSE 'ready' END,"
	        " 'ephemeral', 'python', 'fake', 2, 1, 1, '', x'', '{}' FROM n");
	rig_sql(rig, "UPDATE sessions SET state = 'terminated' WHERE state = 'ready'");
	rig_sql(rig, "UPDATE sessions SET deleted = 1 WHERE no BETWEEN 3000 AND 4500");
	rig_sql(rig, "DELETE FROM sessions WHERE no BETWEEN 5000 AND 5100");
	rig_sql(rig,
	        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000)"
	        " INSERT INTO executions (id, tenant, session_id, session_ms, created_ms,"
	        " status, language, timeout_us, bytes) SELECT 'e' || i, 'acme', CASE i % 3 WHEN 0"
	        " THEN 's4' ELSE 's3' END, 3, i, CASE i % 2 WHEN 0 THEN 'failed' ELSE 'pending'"
	        " END, 'python', 1, 1 FROM n");
	rig_sql(rig, "UPDATE executions SET status = 'success', completed_ms = 1 WHERE no % 8 = 1");
	rig_sql(rig, "DELETE FROM executions WHERE no BETWEEN 900 AND 2100");
}

/* The row of the list there, computed without blocks. */
static void expect_row(struct rig *rig, const struct page *p, const char *from, size_t offset)
{
	cleanup_free char *number = xasprintf("SELECT count(*) %s", from);
	uint64_t first = 0;
	cleanup_free char *row = xasprintf("SELECT CAST(substr(id, 2) AS INTEGER) %s ORDER BY no"
	                                   " DESC LIMIT 1 OFFSET %zu",
	                                   from, offset);
	int64_t there = rig_number(rig, row);

	assert_int_equal(p->total, rig_number(rig, number));
	assert_int_equal(p->count > 0, there >= 0);
	if (there >= 0) {
		assert_int_equal(parse_u64(p->ids[0] + 1, &first), 0);
		assert_int_equal(first, there);
	}
}

static void far_pages_are_where_they_would_be_by_walking(void **state)
{
	static const size_t offsets[] = {0,    1,    2000, 2048, 2049, 2050, 2500,
	                                 3000, 3071, 3333, 3700, 4000, 9000};
	struct rig *rig = *state;

	fill_much(rig);
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		struct page p = sessions(rig, NULL, 3, offsets[i]);

		expect_row(rig, &p, "FROM sessions WHERE deleted = 0 AND tenant = 'acme'",
		           offsets[i]);
		p = sessions(rig, "terminated", 3, offsets[i]);
		expect_row(rig, &p,
		           "FROM sessions WHERE deleted = 0 AND tenant = 'acme' AND state ="
		           " 'terminated'",
		           offsets[i]);
		p = executions(rig, NULL, 3, offsets[i]);
		expect_row(rig, &p, "FROM executions WHERE tenant = 'acme' AND session_id = 's3'",
		           offsets[i]);
		p = executions(rig, "failed", 3, offsets[i]);
		expect_row(rig, &p,
		           "FROM executions WHERE tenant = 'acme' AND session_id = 's3' AND status"
		           " = 'failed'",
		           offsets[i]);
	}
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM session_counts WHERE count <= 0"),
	                 0);
	rig_sql(rig, "DELETE FROM sessions");
	rig_sql(rig, "DELETE FROM executions");
	assert_int_equal(rig_number(rig, "SELECT (SELECT count(*) FROM session_counts) + (SELECT"
	                                 " count(*) FROM execution_counts)"),
	                 0);
}

/* Plans. */

/* The highest number behind a question mark. */
static size_t parameters(const char *sql)
{
	size_t most = 0;

	for (const char *c = strchr(sql, '?'); c; c = strchr(c + 1, '?')) {
		size_t number = 0;

		for (const char *digit = c + 1; *digit >= '0' && *digit <= '9'; digit++)
			number = number * 10 + (size_t)(*digit - '0');
		most = number > most ? number : most;
	}
	assert_true(most < 32);
	return most;
}

/* Return: whether the plan of @sql scans a table or an index, or sorts what an index could
 * order. */
static bool walks(struct rig *rig, const char *sql, char ret_detail[200])
{
	cleanup_free char *text = xasprintf("EXPLAIN QUERY PLAN %s", sql);
	const struct db_value none[32] = {0};
	const struct db_statement query = {text, none, parameters(sql)};
	cleanup_db_rows struct db_rows *rows = NULL;
	bool is_list = strstr(sql, "OFFSET") || strstr(sql, "LIMIT 1");
	struct error err = {0};

	if (db_readonly_query(rig->path, &query, 1u << 20, &rows, &err) < 0)
		fail_msg("%s: %s", sql, err.msg);
	for (size_t i = 0; i < db_rows_count(rows); i++) {
		const char *detail = db_rows_text(rows, i, 3);

		(void)snprintf(ret_detail, 200, "%s", detail);
		/* A row of constants; rows that a part of the statement has found; a row per
		 * tenant, or deleted ones: only retention reads those. */
		if (str_has_prefix(detail, "SCAN CONSTANT ROW") ||
		    str_has_prefix(detail, "SCAN (subquery") ||
		    str_has_prefix(detail, "SCAN usage") ||
		    str_has_prefix(detail, "SCAN d") || /* departed */
		    strstr(detail, "INDEX sessions_deleted"))
			continue;
		if (str_has_prefix(detail, "SCAN"))
			return true;
		if (is_list && strstr(detail, "TEMP B-TREE") && !strstr(sql, "usage"))
			return true;
	}
	return false;
}

static bool is_query(const char *sql)
{
	static const char *const verbs[] = {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"};

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (str_has_prefix(sql, verbs[i]))
			return true;
	return false;
}

/* All requests, each at least once, and retention. */
static void use_everything(struct rig *rig)
{
	struct fixture *f = rig->f;
	struct outcome outcome = {.engine = "fake"};
	struct retention_config config;
	struct retention *cleaner;
	struct session *session;
	struct run_record *e;
	struct error err = {0};
	int before;

	f->request = (struct session_request){.mode = SESSION_EPHEMERAL, .tenant = "acme"};
	session = create(f);
	assert_non_null(session);
	if (!session) /* the compiler does not know that */
		return;
	(void)artifacts_add(&outcome.artifacts, "a");
	e = run_records_add(f->executions,
	                    &(struct run_record_new){.tenant = "acme",
	                                             .session_id = session->id,
	                                             .session_ms = session->created_ms,
	                                             .language = "python",
	                                             .code = ""});
	run_record_ended(e, &outcome, false);
	rig_flush(rig);
	before = rig->callbacks;
	assert_non_null(run_row_load(f->executions, "acme", "e1", rig_on_done, rig, &err));
	assert_non_null(run_row_load_latest(f->executions, "acme", "s3", rig_on_done, rig, &err));
	assert_non_null(session_row_load(f->service, "acme", "s3", rig_on_done, rig, &err));
	assert_int_equal(session_delete_kept(session, rig_on_done, rig, &err), 0);
	rig_wait(rig, before + 4);
	(void)sessions(rig, NULL, 2, 0);
	(void)sessions(rig, "failed", 2, 0);
	(void)executions(rig, NULL, 2, 0);
	(void)executions(rig, "failed", 2, 0);
	(void)sessions(rig, NULL, 2, 5000);
	(void)sessions(rig, "failed", 2, 5000);
	(void)executions(rig, NULL, 2, 5000);
	(void)executions(rig, "failed", 2, 5000);
	f->config->retention_count = 1;
	f->config->retention_bytes = 1;
	config = rig_retention(rig);
	cleaner = retention_new(&config);
	pass(f, 800 * USEC_PER_MS);
	retention_free(cleaner);
}

static void no_statement_walks_through_what_was(void **state)
{
	struct rig *rig = *state;
	size_t queries = 0;
	char detail[200];

	fill(rig);
	note(true);
	use_everything(rig);
	note(false);
	for (size_t i = 0; i < notes.count; i++) {
		if (!is_query(notes.texts[i]))
			continue;
		queries++;
		if (walks(rig, notes.texts[i], detail))
			fail_msg("%s\n%s", notes.texts[i], detail);
		free(notes.texts[i]);
	}
	assert_true(queries > 14);
	/* Control: a scan is detected. */
	assert_true(walks(rig, "SELECT count(*) FROM executions WHERE language = 'x'", detail));
	assert_true(walks(rig, "SELECT id FROM sessions WHERE tenant = 'x' ORDER BY reason LIMIT 1",
	                  detail));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(sessions_come_in_pages_newest_first),
		RIG_TEST(executions_come_in_pages_newest_first),
		RIG_TEST(far_pages_are_where_they_would_be_by_walking),
		RIG_TEST(no_statement_walks_through_what_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
