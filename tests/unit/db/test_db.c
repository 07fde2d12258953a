/* SPDX-License-Identifier: Apache-2.0 */
#include "db_unit.h"

#include <errno.h>
#include <sys/syscall.h>

/* The thread: order, grouped commits, bounds, failures. */

#define INSERT "INSERT INTO t (text, bytes) VALUES (?1, ?2)"

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

static void on_done(void *ctx, const struct error *err)
{
	struct db_unit *u = ctx;

	if (u->callbacks < UNIT_CODES)
		u->codes[u->callbacks] = err ? err->code : ERR_NONE;
	u->callbacks++;
	u->last = err ? *err : (struct error){0};
}

static void on_rows(void *ctx, const struct db_rows *rows, const struct error *err)
{
	struct db_unit *u = ctx;

	on_done(ctx, err);
	if (rows && db_rows_count(rows) > 0)
		(void)snprintf(u->order + strlen(u->order), 32, "%lld ",
		               (long long)db_rows_int(rows, 0, 0));
}

static void wait_for(struct db_unit *u, int callbacks)
{
	while (u->callbacks < callbacks)
		loop_run_once(u->loop, true);
}

static void insert(struct db_unit *u, const char *text)
{
	struct error err = {0};

	if (!db_write(u->db, &DB_SQL(INSERT, DB_TEXT(text), DB_NULL), 1, on_done, u, &err))
		fail_msg("%s", err.msg);
}

static void count(struct db_unit *u)
{
	struct error err = {0};

	assert_non_null(db_read(u->db, &DB_SQL("SELECT count(*) FROM t"), 4096, on_rows, u, &err));
}

/* Through another connection: only committed rows are visible. */
static int64_t committed(struct db_unit *u)
{
	struct db_unit other = {.config = u->config};
	int64_t number;

	unit_open(&other);
	number = unit_number(&other, "SELECT count(*) FROM t");
	db_close(other.db);
	return number;
}

static void a_write_is_committed_before_its_callback(void **state)
{
	struct db_unit *u = *state;

	unit_start(u);
	for (int i = 1; i <= 20; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "%d", i);
		insert(u, name);
		assert_int_equal(u->callbacks, i - 1);
		wait_for(u, i);
		assert_false(error_is_set(&u->last));
		assert_int_equal(committed(u), i);
	}
}

static void a_read_sees_the_writes_before_it(void **state)
{
	struct db_unit *u = *state;

	unit_start(u);
	count(u);
	insert(u, "a");
	insert(u, "b");
	count(u);
	insert(u, "c");
	wait_for(u, 5);
	assert_string_equal(u->order, "0 2 ");
}

struct numbered {
	struct db_unit *u;
	int number;
};

static void in_order(void *ctx, const struct error *err)
{
	struct numbered *n = ctx;

	assert_null(err);
	assert_int_equal(n->u->callbacks, n->number);
	n->u->callbacks++;
}

static void callbacks_come_in_the_order_of_queueing(void **state)
{
	struct db_unit *u = *state;
	static struct numbered all[1500];
	struct error err = {0};

	unit_start(u);
	u->config.queue_max_bytes = 0;
	for (int i = 0; i < 1500; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "%d", i);
		all[i] = (struct numbered){u, i};
		assert_non_null(db_write(u->db, &DB_SQL(INSERT, DB_TEXT(name), DB_NULL), 1,
		                         in_order, &all[i], &err));
	}
	wait_for(u, 1500);
	assert_int_equal(committed(u), 1500);
}

static void values_of_every_kind_come_back(void **state)
{
	struct db_unit *u = *state;
	cleanup_db_rows struct db_rows *rows = NULL;
	struct error err = {0};
	const char *bytes;
	size_t len;

	unit_open(u);
	assert_int_equal(db_exec_now(u->db,
	                             &DB_SQL("INSERT INTO t VALUES (?1, ?2, ?3, ?4)",
	                                     DB_INT(INT64_MIN), DB_TEXT("'); DROP TABLE t; --"),
	                                     DB_BYTES("a\0b", 3), DB_TEXT("")),
	                             1, &err),
	                 0);
	assert_int_equal(db_query_now(u->db,
	                              &DB_SQL("SELECT id, text, bytes, extra, NULL, x'' FROM t"),
	                              4096, &rows, &err),
	                 0);
	assert_int_equal(db_rows_count(rows), 1);
	assert_true(db_rows_int(rows, 0, 0) == INT64_MIN);
	assert_string_equal(db_rows_text(rows, 0, 1), "'); DROP TABLE t; --");
	bytes = db_rows_bytes(rows, 0, 2, &len);
	assert_int_equal(len, 3);
	assert_memory_equal(bytes, "a\0b", 4);
	assert_string_equal(db_rows_text(rows, 0, 3), "");
	assert_null(db_rows_text(rows, 0, 4));
	assert_non_null(db_rows_bytes(rows, 0, 5, &len));
	assert_int_equal(len, 0);
}

static void rows_are_bounded(void **state)
{
	struct db_unit *u = *state;
	char big[8192] = {0};
	struct error err = {0};

	unit_start(u);
	assert_non_null(db_write(u->db, &DB_SQL(INSERT, DB_TEXT("a"), DB_BYTES(big, sizeof(big))),
	                         1, on_done, u, &err));
	assert_non_null(db_read(u->db, &DB_SQL("SELECT bytes FROM t"), 4096, on_rows, u, &err));
	wait_for(u, 2);
	assert_int_equal(u->last.code, ERR_TOO_LARGE);
	assert_non_null(db_read(u->db, &DB_SQL("SELECT 5, bytes FROM t"), 9000, on_rows, u, &err));
	wait_for(u, 3);
	assert_string_equal(u->order, "5 ");
}

static void the_queue_is_bounded(void **state)
{
	struct db_unit *u = *state;
	cleanup_free char *big = xcalloc(1, 300u << 10);
	struct error err = {0};
	int taken = 0;

	unit_start(u);
	while (taken < 100) {
		struct db_value values[] = {DB_NULL, DB_BYTES(big, 300u << 10)};
		char name[16];

		(void)snprintf(name, sizeof(name), "%d", taken);
		values[0] = DB_TEXT(name);
		if (!db_write(u->db, &(struct db_statement){INSERT, values, 2}, 1, on_done, u,
		              &err))
			break;
		taken++;
	}
	/* No callback ran meanwhile: a MiB holds three of these. */
	assert_int_equal(taken, 3);
	assert_int_equal(err.code, ERR_BUSY);
	assert_false(db_has_room(u->db, 300u << 10));
	wait_for(u, taken);
	assert_true(db_has_room(u->db, 300u << 10));
	assert_int_equal(committed(u), taken);
	/* A job larger than the whole queue is accepted when it is alone. */
	assert_true(db_has_room(u->db, 3u << 20));
}

static void one_that_breaks_a_constraint_fails_alone(void **state)
{
	struct db_unit *u = *state;

	unit_start(u);
	insert(u, "a");
	insert(u, "a");
	wait_for(u, 2);
	assert_int_equal(u->last.code, ERR_CONFLICT);
	insert(u, "b");
	wait_for(u, 3);
	assert_false(error_is_set(&u->last));
	assert_false(error_is_set(db_last_write_error(u->db)));
	assert_int_equal(committed(u), 2);
}

static void several_statements_happen_wholly_or_not_at_all(void **state)
{
	struct db_unit *u = *state;
	const struct db_statement bad[] = {
		DB_SQL(INSERT, DB_TEXT("x"), DB_NULL),
		DB_SQL(INSERT, DB_TEXT("a"), DB_NULL),
	};
	const struct db_statement good[] = {
		DB_SQL(INSERT, DB_TEXT("y"), DB_NULL),
		DB_SQL("UPDATE t SET extra = ?1 WHERE text = 'y'", DB_TEXT("changed")),
	};
	struct error err = {0};

	unit_start(u);
	insert(u, "a");
	assert_non_null(db_write(u->db, bad, 2, on_done, u, &err));
	wait_for(u, 2);
	assert_int_equal(u->last.code, ERR_CONFLICT);
	assert_non_null(db_write(u->db, good, 2, on_done, u, &err));
	wait_for(u, 3);
	assert_false(error_is_set(&u->last));
	assert_int_equal(committed(u), 2);
}

static void a_wrong_statement_is_an_error_of_ours(void **state)
{
	struct db_unit *u = *state;
	struct error err = {0};

	unit_start(u);
	assert_non_null(
		db_write(u->db, &DB_SQL("INSERT INTO nowhere VALUES (1)"), 1, on_done, u, &err));
	wait_for(u, 1);
	assert_int_equal(u->last.code, ERR_SYSTEM);
}

static void forget_other(void *ctx, const struct error *err)
{
	struct db_unit *u = ctx;

	on_done(ctx, err);
	db_forget(u->other);
}

static void a_forgotten_job_happens_in_silence(void **state)
{
	struct db_unit *u = *state;
	struct error err = {0};

	unit_start(u);
	assert_non_null(
		db_write(u->db, &DB_SQL(INSERT, DB_TEXT("a"), DB_NULL), 1, forget_other, u, &err));
	u->other = db_write(u->db, &DB_SQL(INSERT, DB_TEXT("b"), DB_NULL), 1, on_done, u, &err);
	insert(u, "c");
	wait_for(u, 2);
	loop_run_once(u->loop, false);
	assert_int_equal(u->callbacks, 2);
	assert_int_equal(committed(u), 3);
}

static void a_change_returns_rows(void **state)
{
	struct db_unit *u = *state;
	struct error err = {0};

	unit_start(u);
	insert(u, "a");
	insert(u, "b");
	assert_non_null(db_change(
		u->db, &DB_SQL("DELETE FROM t WHERE text = ?1 RETURNING id * 10", DB_TEXT("b")),
		4096, on_rows, u, &err));
	count(u);
	wait_for(u, 4);
	assert_string_equal(u->order, "20 1 ");
	assert_int_equal(committed(u), 1);
}

static void closing_does_what_is_queued(void **state)
{
	struct db_unit *u = *state;

	unit_start(u);
	for (int i = 0; i < 500; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "%d", i);
		insert(u, name);
	}
	db_close(TAKE_PTR(u->db));
	assert_int_equal(u->callbacks, 0);
	assert_int_equal(committed(u), 500);
}

static int refuse_thread(struct error *err)
{
	return error_set(err, ERR_SYSTEM, EPERM, "not today");
}

static void a_thread_that_cannot_be_prepared_is_an_error(void **state)
{
	struct db_unit *u = *state;
	struct error err = {0};

	unit_open(u);
	assert_int_equal(db_start(u->db, u->loop, refuse_thread, &err), -1);
	assert_non_null(strstr(err.msg, "not today"));
}

/* A file that must not grow simulates a full disk. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_refuses_the_large_and_takes_the_small(void **state)
{
	struct db_unit *u = *state;
	cleanup_free char *big = xcalloc(1, 400u << 10);
	struct error err = {0};

	unit_start(u);
	limit_files(256u << 10);
	assert_non_null(db_write(u->db, &DB_SQL(INSERT, DB_TEXT("big"), DB_BYTES(big, 400u << 10)),
	                         1, on_done, u, &err));
	insert(u, "small");
	wait_for(u, 2);
	assert_int_equal(u->codes[0], ERR_STORAGE);
	assert_int_equal(u->codes[1], ERR_NONE);
	assert_int_equal(committed(u), 1);
	assert_non_null(db_write(u->db, &DB_SQL(INSERT, DB_TEXT("big"), DB_BYTES(big, 400u << 10)),
	                         1, on_done, u, &err));
	wait_for(u, 3);
	assert_int_equal(db_last_write_error(u->db)->code, ERR_STORAGE);
	limit_files(RLIM_INFINITY);
	assert_non_null(db_write(u->db, &DB_SQL(INSERT, DB_TEXT("big"), DB_BYTES(big, 400u << 10)),
	                         1, on_done, u, &err));
	wait_for(u, 4);
	assert_false(error_is_set(&u->last));
	assert_false(error_is_set(db_last_write_error(u->db)));
	assert_int_equal(committed(u), 2);
}

static void one_in_memory_leaves_no_file(void **state)
{
	struct db_unit *u = *state;
	struct error err = {0};
	struct db_unit other = {.config = u->config};

	other.config.path = NULL;
	unit_open(&other);
	assert_int_equal(db_exec_now(other.db, &DB_SQL(INSERT, DB_TEXT("a"), DB_NULL), 1, &err), 0);
	assert_int_equal(unit_number(&other, "SELECT count(*) FROM t"), 1);
	db_close(other.db);
	unit_open(&other);
	assert_int_equal(unit_number(&other, "SELECT count(*) FROM t"), 0);
	db_close(other.db);
	assert_int_equal(committed(u), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_in_memory_leaves_no_file),
		TEST(a_write_is_committed_before_its_callback),
		TEST(a_read_sees_the_writes_before_it),
		TEST(callbacks_come_in_the_order_of_queueing),
		TEST(values_of_every_kind_come_back),
		TEST(rows_are_bounded),
		TEST(the_queue_is_bounded),
		TEST(one_that_breaks_a_constraint_fails_alone),
		TEST(several_statements_happen_wholly_or_not_at_all),
		TEST(a_wrong_statement_is_an_error_of_ours),
		TEST(a_forgotten_job_happens_in_silence),
		TEST(a_change_returns_rows),
		TEST(closing_does_what_is_queued),
		TEST(a_thread_that_cannot_be_prepared_is_an_error),
		TEST(a_full_disk_refuses_the_large_and_takes_the_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
