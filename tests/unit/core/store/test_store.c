/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "core/config/embedded.h"
#include "store_fixture.h"

/* The file as a whole: every earlier version, newer ones, and other files. */

#define APPLICATION_ID 0x4d626f78u
#define VERSIONS_MAX   64

static size_t list_all(struct db_migration ret_all[VERSIONS_MAX])
{
	size_t count = 0;

	for (const struct embedded_file *f = embedded_migrations; f->name; f++, count++)
		ret_all[count] = (struct db_migration){(unsigned)count + 1, f->name, f->data};
	return count;
}

/* A database of version @count, with a row in every table that it had. */
static void make_version(const char *path, size_t count)
{
	static const char *const rows[] = {
		"INSERT INTO sessions (tenant, id, created_ms, updated_ms, active_ms, ended_ms,"
		" state, mode, language, driver, executions, idle_us, lifetime_us, history, env,"
		" spec) VALUES ('default', 'mine', 5, 6, 7, 8, 'terminated', 'persistent',"
		" 'python', 'fake', 1, 1, 1, 'ready 5' || char(10), x'', '{}')",
		"INSERT INTO executions (id, session_id, session_ms, created_ms, started_ms,"
		" completed_ms, status, language, timeout_us, bytes, outcome, out) VALUES"
		" ('exec_1', 'mine', 5, 5, 6, 7, 'success', 'python', 1, 4,"
		" '{\"status\":\"success\",\"artifacts\":[{\"path\":\"a.txt\",\"size\":3,"
		"\"changed_ms\":9,\"sha256\":null}]}', 'text')",
		"INSERT INTO executions (id, session_id, session_ms, created_ms, status, language,"
		" timeout_us, bytes, code, request) VALUES ('exec_2', 'mine', 5, 5, 'pending',"
		" 'python', 1, 1, 'x', '{}')",
	};
	struct db_migration all[VERSIONS_MAX];
	const struct db_config config = {.path = path,
	                                 .application_id = APPLICATION_ID,
	                                 .migrations = all,
	                                 .migrations_count = count,
	                                 .queue_max_bytes = 1u << 20};
	struct error err = {0};
	struct db *db = NULL;

	(void)list_all(all);
	assert_int_equal(db_open(&config, &db, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct db_statement step = {.sql = rows[i]};

		if (db_exec_now(db, &step, 1, &err) < 0)
			fail_msg("version %zu: %s", count, err.msg);
	}
	db_close(db);
}

static void expect_rows(struct rig *rig, size_t version)
{
	struct db_migration all[VERSIONS_MAX];
	const struct {
		const char *sql;
		int64_t number;
	} facts[] = {
		{"PRAGMA user_version", (int64_t)list_all(all)},
		{"SELECT count(*) FROM sessions WHERE id = 'mine' AND dependencies IS NULL", 1},
		{"SELECT count(*) FROM executions", 2},
		/* Whether an unfinished one had started is unknown. */
		{"SELECT begun FROM executions WHERE id = 'exec_2'", 1},
		{"SELECT executions * 100 + bytes FROM usage WHERE tenant = 'default'", 104},
		{"SELECT count(*) FROM metrics", 0},
		{"SELECT count(*) FROM audit", 0},
		{"SELECT count(*) FROM tenants WHERE name = 'default'", 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
		if (rig_number(rig, facts[i].sql) != facts[i].number)
			fail_msg("from version %zu: %s", version, facts[i].sql);
}

static void every_older_version_is_brought_up(void **state)
{
	struct db_migration all[VERSIONS_MAX];
	struct rig *rig = *state;
	struct error err = {0};

	for (size_t version = 1; version <= list_all(all); version++) {
		struct store *store = NULL;

		make_version(rig->path, version);
		if (store_open(rig->dir, &store, &err) < 0)
			fail_msg("from version %zu: %s", version, err.msg);
		store_close(store);
		expect_rows(rig, version);
		/* Files were members of the outcome once; now they are rows. */
		if (version < 8)
			assert_int_equal(rig_number(rig, "SELECT size FROM files WHERE path ="
			                                 " 'a.txt'"),
			                 3);
		assert_int_equal(unlink(rig->path), 0);
	}
}

static void expect_no_open(struct rig *rig, const char *words)
{
	struct stat before, after;
	struct store *store = NULL;
	struct error err = {0};

	assert_int_equal(stat(rig->path, &before), 0);
	assert_int_equal(store_open(rig->dir, &store, &err), -1);
	assert_null(store);
	assert_int_equal(err.code, ERR_CONFIG);
	if (!strstr(err.msg, words) || !strstr(err.msg, "nothing was changed"))
		fail_msg("'%s' does not say '%s'", err.msg, words);
	assert_int_equal(stat(rig->path, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
}

static void a_newer_version_is_refused(void **state)
{
	struct db_migration all[VERSIONS_MAX];
	struct rig *rig = *state;
	size_t count = list_all(all);
	const struct db_config config = {.path = rig->path,
	                                 .application_id = APPLICATION_ID,
	                                 .migrations = all,
	                                 .migrations_count = count + 1,
	                                 .queue_max_bytes = 1u << 20};
	struct error err = {0};
	struct db *db = NULL;

	all[count] = (struct db_migration){(unsigned)count + 1, "later", "CREATE TABLE later (x)"};
	assert_int_equal(db_open(&config, &db, &err), 0);
	db_close(db);
	expect_no_open(rig, "newer version");
}

static void a_damaged_one_is_refused(void **state)
{
	struct rig *rig = *state;
	char noise[4096];
	int fd;

	make_version(rig->path, 1);
	memset(noise, 0xff, sizeof(noise));
	fd = open(rig->path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, noise, sizeof(noise), 3 * 4096), sizeof(noise));
	(void)close(fd);
	expect_no_open(rig, "is damaged");
}

static int setup_place(void **state)
{
	struct rig *rig = NEW(struct rig);

	(void)snprintf(rig->dir, sizeof(rig->dir), "/tmp/millibox-store-XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	(void)snprintf(rig->path, sizeof(rig->path), "%s/" STORE_FILE, rig->dir);
	*state = rig;
	return 0;
}

static int teardown_place(void **state)
{
	struct rig *rig = *state;

	rig_remove(rig->dir);
	free(rig);
	return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_place, teardown_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_older_version_is_brought_up),
		TEST(a_newer_version_is_refused),
		TEST(a_damaged_one_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
