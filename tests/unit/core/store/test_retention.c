/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "core/store/retention.h"
#include "store_fixture.h"

/* Ended executions of @tenant, @bytes each, that ended at 1, 2, 3 … seconds from @first on. */
static void fill(struct rig *rig, const char *tenant, int count, int bytes, int64_t first)
{
	const struct db_statement step = DB_SQL(
		"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)"
		" INSERT INTO executions (id, tenant, session_id, session_ms, created_ms,"
		" completed_ms, status, language, timeout_us, bytes) SELECT ?1 || i, ?1, 's', 1,"
		" 1, ?4 + i, 'success', 'python', 1, ?3 FROM n",
		DB_TEXT(tenant), DB_INT(count), DB_INT(bytes), DB_INT(first));
	int before = rig->callbacks;

	assert_non_null(db_write(rig->store->db, &step, 1, rig_on_done, rig, &rig->f->err));
	rig_wait(rig, before + 1);
	assert_false(error_is_set(&rig->last));
}

/* The triggers' sums match the rows. */
static void expect_usage(struct rig *rig)
{
	assert_int_equal(
		rig_number(rig, "SELECT count(*) FROM (SELECT tenant, executions, bytes FROM usage"
	                        " EXCEPT SELECT tenant, count(*), sum(bytes) FROM executions"
	                        " WHERE completed_ms IS NOT NULL GROUP BY tenant)"),
		0);
	assert_int_equal(rig_number(rig, "SELECT (SELECT count(*) FROM usage) - (SELECT"
	                                 " count(DISTINCT tenant) FROM executions WHERE"
	                                 " completed_ms IS NOT NULL)"),
	                 0);
}

static struct retention *clean(struct rig *rig)
{
	const struct retention_config config = rig_retention(rig);

	return retention_new(&config);
}

static void wait_for(struct rig *rig, const char *sql, int64_t number)
{
	uint64_t end = clock_us() + 20 * USEC_PER_SEC;

	while (rig_number(rig, sql) != number) {
		assert_true(clock_us() < end);
		pass(rig->f, 5 * USEC_PER_MS);
	}
}

static int64_t kept(struct rig *rig, const char *tenant)
{
	char sql[128];

	(void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM executions WHERE tenant = '%s'",
	               tenant);
	return rig_number(rig, sql);
}

static void one_that_floods_loses_its_own_oldest(void **state)
{
	struct rig *rig = *state;
	int64_t now = (int64_t)clock_real_ms();
	struct retention *c;

	rig->f->config->retention_count = 100;
	fill(rig, "small", 20, 1, now - 1000000); /* older than all others */
	fill(rig, "flood", 500, 1, now);
	fill(rig, "half", 40, 1, now);
	expect_usage(rig);
	c = clean(rig);
	wait_for(rig, "SELECT count(*) FROM executions", 100);
	assert_int_equal(kept(rig, "small"), 20);
	assert_int_equal(kept(rig, "half"), 40);
	assert_int_equal(kept(rig, "flood"), 40);
	/* Of those, the newest. */
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM executions WHERE id = 'flood500'"),
	                 1);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM executions WHERE id = 'flood460'"),
	                 0);
	expect_usage(rig);
	retention_free(c);
}

static void one_that_is_large_loses_its_own_oldest(void **state)
{
	struct rig *rig = *state;
	int64_t now = (int64_t)clock_real_ms();
	struct retention *c;

	rig->f->config->retention_bytes = 100000;
	fill(rig, "small", 100, 10, now - 1000000);
	fill(rig, "large", 30, 10000, now);
	c = clean(rig);
	wait_for(rig, "SELECT sum(bytes) <= 100000 FROM executions", 1);
	assert_int_equal(kept(rig, "small"), 100);
	assert_int_equal(kept(rig, "large"), 9);
	expect_usage(rig);
	retention_free(c);
}

static void old_rows_are_removed_and_live_ones_stay(void **state)
{
	struct rig *rig = *state;
	int64_t now = (int64_t)clock_real_ms();
	struct retention *c;

	rig->f->config->retention_executions_us = 60 * USEC_PER_SEC;
	fill(rig, "old", 200, 1, now - 1000000);
	fill(rig, "new", 3, 1, now);
	rig_sql(rig, "INSERT INTO executions (id, tenant, session_id, session_ms, created_ms,"
	             " status, language, timeout_us, bytes) VALUES ('lives', 'old', 's', 1, 1,"
	             " 'running', 'python', 1, 1)");
	c = clean(rig);
	wait_for(rig, "SELECT count(*) FROM executions", 4);
	assert_int_equal(kept(rig, "new"), 3);
	assert_int_equal(kept(rig, "old"), 1);
	expect_usage(rig);
	retention_free(c);
}

static void on_departed(void *ctx, const char *name)
{
	(void)snprintf(ctx, 32, "%s", name);
}

static void a_deleted_tenants_rows_are_removed(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	char departed[32] = "";
	struct retention_config config = rig_retention(rig);
	struct retention *c;

	fill(rig, "gone", 300, 10, (int64_t)clock_real_ms());
	fill(rig, "other", 5, 10, (int64_t)clock_real_ms());
	rig_sql(rig, "INSERT INTO departed (name) VALUES ('gone')");
	config.forget_run = NULL;
	config.forget_session = NULL;
	config.forget_tenant = on_departed;
	config.ctx = departed;
	c = retention_new(&config);
	retention_hurry(c);
	wait_for(rig, "SELECT count(*) FROM departed", 0);
	pass(f, 50 * USEC_PER_MS);
	retention_free(c);
	assert_string_equal(departed, "gone");
	assert_int_equal(kept(rig, "gone"), 0);
	assert_int_equal(kept(rig, "other"), 5);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM execution_counts WHERE tenant ="
	                                 " 'gone'"),
	                 0);
}

static void every_end_is_counted_once(void **state)
{
	struct rig *rig = *state;

	rig_sql(rig, "INSERT INTO executions (id, session_id, session_ms, created_ms, status,"
	             " language, timeout_us, bytes) VALUES ('e', 's', 1, 1, 'running', 'p', 1, 5)");
	expect_usage(rig);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM usage"), 0);
	rig_sql(rig, "UPDATE executions SET completed_ms = 7, bytes = 9");
	expect_usage(rig);
	assert_int_equal(rig_number(rig, "SELECT bytes FROM usage"), 9);
	rig_sql(rig, "UPDATE executions SET completed_ms = 7, bytes = 11");
	expect_usage(rig);
	rig_sql(rig, "DELETE FROM executions");
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM usage"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(one_that_floods_loses_its_own_oldest),
		RIG_TEST(one_that_is_large_loses_its_own_oldest),
		RIG_TEST(old_rows_are_removed_and_live_ones_stay),
		RIG_TEST(a_deleted_tenants_rows_are_removed),
		RIG_TEST(every_end_is_counted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
