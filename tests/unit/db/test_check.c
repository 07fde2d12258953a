/* SPDX-License-Identifier: Apache-2.0 */
#include "db_unit.h"

#include <errno.h>
#include <sys/mount.h>

/* Which files can be opened, and that a rejected one stays unchanged. */

static int setup(void **state)
{
	static struct db_unit u;

	u = (struct db_unit){0};
	unit_made(&u);
	*state = &u;
	return 0;
}

static int teardown(void **state)
{
	unit_gone(*state);
	return 0;
}

/* Everything in the directory, by name, with all bytes. */
struct picture {
	size_t count;
	struct {
		char name[64];
		char *bytes;
		size_t len;
	} files[8];
};

static void read_file(const char *path, char **ret_bytes, size_t *ret_len)
{
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	*ret_bytes = xcalloc(1, 1u << 20);
	*ret_len = fread(*ret_bytes, 1, 1u << 20, f);
	(void)fclose(f);
}

static void take_picture(const struct db_unit *u, struct picture *p)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", "-clean"};
	char name[128];

	*p = (struct picture){0};
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		(void)snprintf(name, sizeof(name), "%s%s", u->path, suffixes[i]);
		if (access(name, F_OK) < 0)
			continue;
		(void)snprintf(p->files[p->count].name, 64, "%s", suffixes[i]);
		read_file(name, &p->files[p->count].bytes, &p->files[p->count].len);
		p->count++;
	}
}

static void assert_same_picture(struct picture *a, struct picture *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_string_equal(a->files[i].name, b->files[i].name);
		assert_int_equal(a->files[i].len, b->files[i].len);
		assert_memory_equal(a->files[i].bytes, b->files[i].bytes, a->files[i].len);
		free(a->files[i].bytes);
		free(b->files[i].bytes);
	}
}

static void assert_refused(struct db_unit *u, const char *words)
{
	struct picture before, after;
	struct error err = {0};
	struct db *db = NULL;

	take_picture(u, &before);
	assert_int_equal(db_open(&u->config, &db, &err), -1);
	assert_null(db);
	assert_int_equal(err.code, ERR_CONFIG);
	if (!strstr(err.msg, words) || !strstr(err.msg, "nothing was changed"))
		fail_msg("'%s' does not say '%s'", err.msg, words);
	take_picture(u, &after);
	assert_same_picture(&before, &after);
}

/* A process that writes and is then killed: its writes are in the -wal. */
static void write_and_die(struct db_unit *u, const char *sql)
{
	const struct db_statement step = {.sql = sql};
	struct error err = {0};
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		unit_open(u);
		if (db_exec_now(u->db, &step, 1, &err) < 0)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void put_bytes(const struct db_unit *u, const char *suffix, off_t at, const char *bytes)
{
	char name[128];
	int fd;

	(void)snprintf(name, sizeof(name), "%s%s", u->path, suffix);
	fd = open(name, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, strlen(bytes), at), strlen(bytes));
	(void)close(fd);
}

static void a_new_file_gets_the_whole_schema_and_mode_0600(void **state)
{
	struct db_unit *u = *state;
	struct stat st;

	(void)umask(0);
	unit_open(u);
	(void)umask(022);
	assert_int_equal(unit_number(u, "PRAGMA user_version"), 3);
	assert_int_equal(unit_number(u, "PRAGMA application_id"), UNIT_APPLICATION);
	assert_int_equal(stat(u->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	(void)snprintf(u->order, sizeof(u->order), "%s-wal", u->path);
	assert_int_equal(stat(u->order, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void the_connection_is_durable_and_distrustful(void **state)
{
	struct db_unit *u = *state;
	struct error err = {0};

	unit_open(u);
	assert_int_equal(unit_number(u, "PRAGMA synchronous"), 2);
	assert_int_equal(unit_number(u, "PRAGMA foreign_keys"), 1);
	assert_int_equal(unit_number(u, "PRAGMA trusted_schema"), 0);
	assert_int_equal(unit_number(u, "PRAGMA cell_size_check"), 1);
	assert_int_equal(unit_number(u, "PRAGMA auto_vacuum"), 2);
	assert_int_equal(db_exec_now(u->db, &DB_SQL("INSERT INTO u VALUES (7)"), 1, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	error_clear(&err);
	assert_int_equal(
		db_exec_now(u->db, &DB_SQL("ATTACH '/tmp/millibox-db-other' AS o"), 1, &err), -1);
	assert_int_equal(access("/tmp/millibox-db-other", F_OK), -1);
}

static void every_older_version_is_brought_up(void **state)
{
	struct db_unit *u = *state;
	struct error err = {0};

	for (size_t from = 1; from <= ARRAY_SIZE(unit_migrations); from++) {
		u->config.migrations_count = from;
		unit_open(u);
		assert_int_equal(
			db_exec_now(u->db,
		                    &DB_SQL("INSERT INTO t (text, bytes) VALUES ('kept', ?1)",
		                            DB_BYTES("\0x", 2)),
		                    1, &err),
			0);
		db_close(TAKE_PTR(u->db));
		u->config.migrations_count = ARRAY_SIZE(unit_migrations);
		unit_open(u);
		assert_int_equal(unit_number(u, "PRAGMA user_version"), 3);
		assert_int_equal(unit_number(u, "SELECT count(*) FROM t WHERE text = 'kept'"
		                                " AND extra = 'was not there'"),
		                 1);
		db_close(TAKE_PTR(u->db));
		assert_int_equal(unlink(u->path), 0);
	}
}

static void a_failing_migration_leaves_the_version_before_it(void **state)
{
	static const struct db_migration broken[] = {
		{1, "first", "CREATE TABLE t (id INTEGER PRIMARY KEY);"},
		{2, "broken", "CREATE TABLE v (x); INSERT INTO nowhere VALUES (1);"},
	};
	struct db_unit *u = *state;
	struct error err = {0};

	u->config.migrations = broken;
	u->config.migrations_count = 2;
	assert_int_equal(db_open(&u->config, &u->db, &err), -1);
	assert_non_null(strstr(err.msg, "broken"));
	u->config.migrations_count = 1;
	unit_open(u);
	assert_int_equal(unit_number(u, "PRAGMA user_version"), 1);
	assert_int_equal(unit_number(u, "SELECT count(*) FROM sqlite_schema WHERE name = 'v'"), 0);
}

static void a_newer_file_is_refused_untouched(void **state)
{
	struct db_unit *u = *state;

	unit_open(u);
	db_close(TAKE_PTR(u->db));
	u->config.migrations_count = 2;
	assert_refused(u, "newer version (schema 3, this one knows 2)");
}

/* The main file still says 2: only the log knows that the schema is 3. */
static void a_newer_version_in_the_log_alone_is_seen(void **state)
{
	struct db_unit *u = *state;

	u->config.migrations_count = 2;
	unit_open(u);
	db_close(TAKE_PTR(u->db));
	u->config.migrations_count = 3;
	write_and_die(u, "INSERT INTO t (text) VALUES ('x')");
	u->config.migrations_count = 2;
	(void)snprintf(u->order, sizeof(u->order), "%s-wal", u->path);
	assert_int_equal(access(u->order, F_OK), 0);
	assert_refused(u, "newer version");
	/* Without the -shm, which does not survive a crash of the machine. */
	(void)snprintf(u->order, sizeof(u->order), "%s-shm", u->path);
	assert_int_equal(unlink(u->order), 0);
	assert_refused(u, "newer version");
}

static void another_programs_file_is_refused_untouched(void **state)
{
	struct db_unit *u = *state;

	unit_open(u);
	db_close(TAKE_PTR(u->db));
	u->config.application_id++;
	assert_refused(u, "another program");
}

static void a_file_that_is_not_a_database_is_refused_untouched(void **state)
{
	struct db_unit *u = *state;

	put_bytes(u, "", 0, "Dear diary, today I was mistaken for a database of at least a page.");
	put_bytes(u, "-wal", 0, "so was I");
	assert_refused(u, "is not a database");
}

static void a_damaged_file_is_refused_untouched(void **state)
{
	struct db_unit *u = *state;

	unit_open(u);
	db_close(TAKE_PTR(u->db));
	/* Into the cells of a page that is not the first. */
	put_bytes(u, "", 2 * 4096 + 1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
	assert_refused(u, "is damaged");
}

static void a_damaged_file_with_a_log_is_refused_untouched(void **state)
{
	struct db_unit *u = *state;

	unit_open(u);
	db_close(TAKE_PTR(u->db));
	write_and_die(u, "INSERT INTO t (text) VALUES ('x')");
	put_bytes(u, "", 4 * 4096 + 1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
	assert_refused(u, "is damaged");
}

static void a_cut_off_file_is_refused_untouched(void **state)
{
	struct db_unit *u = *state;

	unit_open(u);
	db_close(TAKE_PTR(u->db));
	assert_int_equal(truncate(u->path, 3 * 4096), 0);
	assert_refused(u, "is damaged");
}

/* After a clean close. */
static void damage_is_seen_though_its_time_was_set_back(void **state)
{
	struct db_unit *u = *state;
	struct timespec times[2];
	struct stat before;

	unit_open(u);
	db_close(TAKE_PTR(u->db));
	assert_int_equal(stat(u->path, &before), 0);
	put_bytes(u, "", 2 * 4096 + 1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
	times[0] = before.st_atim;
	times[1] = before.st_mtim;
	assert_int_equal(utimensat(AT_FDCWD, u->path, times, 0), 0);
	/* Its change time cannot be set back, so it is still detected. */
	assert_refused(u, "is damaged");
}

static int64_t size_of_note(const struct db_unit *u)
{
	char name[128];
	struct stat st;

	(void)snprintf(name, sizeof(name), "%s-clean", u->path);
	return stat(name, &st) < 0 ? -1 : st.st_size;
}

static void a_clean_marker_exists_only_between_close_and_open(void **state)
{
	struct db_unit *u = *state;

	assert_int_equal(size_of_note(u), -1);
	unit_open(u);
	assert_int_equal(size_of_note(u), 0);
	db_close(TAKE_PTR(u->db));
	assert_true(size_of_note(u) > 0);
	write_and_die(u, "INSERT INTO t (text) VALUES ('x')");
	assert_int_equal(size_of_note(u), 0);
	unit_start(u);
	db_close(TAKE_PTR(u->db));
	assert_true(size_of_note(u) > 0);
}

/* Only the marker decides: with one that matches, pages are not checked. */
static void the_marker_decides_whether_to_check(void **state)
{
	struct db_unit *u = *state;
	char name[128], note[128];
	struct stat st;

	unit_open(u);
	db_close(TAKE_PTR(u->db));
	put_bytes(u, "", 2 * 4096 + 1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
	assert_int_equal(stat(u->path, &st), 0);
	(void)snprintf(note, sizeof(note), "%jd %jd %jd.%09ld %jd.%09ld\n", (intmax_t)st.st_ino,
	               (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
	               (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	(void)snprintf(name, sizeof(name), "%s-clean", u->path);
	assert_int_equal(truncate(name, 0), 0);
	assert_refused(u, "is damaged");
	put_bytes(u, "-clean", 0, note);
	unit_open(u);
}

static void committed_rows_survive_a_crash(void **state)
{
	struct db_unit *u = *state;

	write_and_die(u, "INSERT INTO t (text) VALUES ('committed')");
	unit_open(u);
	assert_int_equal(unit_number(u, "SELECT count(*) FROM t"), 1);
}

static void a_file_with_a_reader_can_be_opened(void **state)
{
	struct db_unit *u = *state;
	struct db *reader;

	unit_open(u);
	reader = TAKE_PTR(u->db);
	unit_open(u);
	assert_int_equal(unit_number(u, "SELECT count(*) FROM t"), 0);
	db_close(reader);
}

static void a_link_in_its_place_is_refused(void **state)
{
	struct db_unit *u = *state;
	struct error err = {0};

	assert_int_equal(symlink("/tmp/millibox-db-elsewhere", u->path), 0);
	assert_int_equal(db_open(&u->config, &u->db, &err), -1);
	assert_int_equal(err.sys, ELOOP);
	assert_int_equal(access("/tmp/millibox-db-elsewhere", F_OK), -1);
}

static void a_directory_that_cannot_be_written_is_refused(void **state)
{
	struct db_unit *u = *state;
	struct error err = {0};

	if (geteuid() == 0) {
		/* Root ignores modes; in /proc no file can be created. */
		u->config.path = "/proc/unit.db";
	} else {
		assert_int_equal(chmod(u->dir, 0500), 0);
	}
	assert_int_equal(db_open(&u->config, &u->db, &err), -1);
	assert_int_equal(err.code, ERR_CONFIG);
	assert_int_equal(chmod(u->dir, 0700), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_new_file_gets_the_whole_schema_and_mode_0600),
		TEST(the_connection_is_durable_and_distrustful),
		TEST(every_older_version_is_brought_up),
		TEST(a_failing_migration_leaves_the_version_before_it),
		TEST(a_newer_file_is_refused_untouched),
		TEST(a_newer_version_in_the_log_alone_is_seen),
		TEST(another_programs_file_is_refused_untouched),
		TEST(a_file_that_is_not_a_database_is_refused_untouched),
		TEST(a_damaged_file_is_refused_untouched),
		TEST(a_damaged_file_with_a_log_is_refused_untouched),
		TEST(a_cut_off_file_is_refused_untouched),
		TEST(damage_is_seen_though_its_time_was_set_back),
		TEST(a_clean_marker_exists_only_between_close_and_open),
		TEST(the_marker_decides_whether_to_check),
		TEST(committed_rows_survive_a_crash),
		TEST(a_file_with_a_reader_can_be_opened),
		TEST(a_link_in_its_place_is_refused),
		TEST(a_directory_that_cannot_be_written_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
