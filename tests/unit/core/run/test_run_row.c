/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>

#include "core/run/run_row.h"
#include "store_fixture.h"

static struct run_record *add(struct rig *rig, bool waits)
{
	const struct run_record_new what = {.request_id = "req-1",
	                                    .key_id = "key-1",
	                                    .tenant = "acme",
	                                    .session_id = "mine",
	                                    .language = "python",
	                                    .code = "x\0y",
	                                    .code_len = 3,
	                                    .timeout_us = 5000000,
	                                    .session_ms = 77,
	                                    .request = xstrdup("{}"),
	                                    .waits = waits};

	return run_records_add(rig->f->executions, &what);
}

/* Another daemon's table of executions, on the same store. */
static struct run_record *load(struct rig *rig, struct run_records *all, const char *tenant,
                               const char *id)
{
	int before = rig->callbacks;
	struct error err = {0};

	run_records_set_store(all, rig->store);
	assert_non_null(run_row_load(all, tenant, id, rig_on_done, rig, &err));
	rig_wait(rig, before + 1);
	assert_false(error_is_set(&rig->last));
	return run_records_find(all, tenant, id);
}

static struct outcome full_outcome(void)
{
	struct outcome o = {
		.status = OUTCOME_FAILED,
		.limit = OUTCOME_LIMIT_MEMORY,
		.exited = true,
		.exit_code = 137,
		.signal = 9,
		.out_truncated = true,
		.err_truncated = true,
		.handler = true,
		.stdout_bytes = 11,
		.stderr_bytes = 12,
		.duration_us = 13,
		.start_us = 14,
		.queue_us = 15,
		.cpu_us = 16,
		.memory_peak_bytes = 17,
		.processes_peak = 18,
		.read_bytes = 19,
		.write_bytes = COUNTER_UNKNOWN,
		.denials = {{"syscall", "mount", "seccomp", 3}},
		.denials_count = 1,
		.layers = 0x55,
		.layers_missing = 0xaa,
		.engine = "fake",
	};
	struct artifact *a = artifacts_add(&o.artifacts, "out/a.txt");

	a->size = 3;
	a->changed_ms = 99;
	a->hashed = true;
	memset(a->sha256, 0xab, sizeof(a->sha256));
	a = artifacts_add(&o.artifacts, "large");
	a->size = 1ULL << 40;
	o.artifacts.truncated = true;
	buf_init(&o.report, 64);
	assert_int_equal(buf_add(&o.report, "{\"a\":\0}", 7), 0);
	return o;
}

static void expect_same_outcome(const struct outcome *a, const struct outcome *b)
{
	assert_int_equal(a->status, b->status);
	assert_int_equal(a->limit, b->limit);
	assert_int_equal(a->exited, b->exited);
	assert_int_equal(a->exit_code, b->exit_code);
	assert_int_equal(a->signal, b->signal);
	assert_int_equal(a->out_truncated, b->out_truncated);
	assert_int_equal(a->err_truncated, b->err_truncated);
	assert_int_equal(a->handler, b->handler);
	assert_int_equal(a->stdout_bytes, b->stdout_bytes);
	assert_int_equal(a->stderr_bytes, b->stderr_bytes);
	assert_int_equal(a->duration_us, b->duration_us);
	assert_int_equal(a->start_us, b->start_us);
	assert_int_equal(a->queue_us, b->queue_us);
	assert_int_equal(a->cpu_us, b->cpu_us);
	assert_int_equal(a->memory_peak_bytes, b->memory_peak_bytes);
	assert_int_equal(a->processes_peak, b->processes_peak);
	assert_int_equal(a->read_bytes, b->read_bytes);
	assert_true(a->write_bytes == b->write_bytes);
	assert_int_equal(a->layers, b->layers);
	assert_int_equal(a->layers_missing, b->layers_missing);
	assert_string_equal(a->engine, b->engine);
	assert_int_equal(a->denials_count, b->denials_count);
	assert_string_equal(a->denials[0].what, b->denials[0].what);
	assert_string_equal(a->denials[0].rule, b->denials[0].rule);
	assert_int_equal(a->denials[0].count, b->denials[0].count);
	assert_int_equal(a->report.len, b->report.len);
	assert_memory_equal(a->report.data, b->report.data, a->report.len);
}

static void expect_same_files(const struct artifacts *a, const struct artifacts *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->truncated, b->truncated);
	for (size_t i = 0; i < a->count; i++) {
		assert_string_equal(a->list[i].path, b->list[i].path);
		assert_int_equal(a->list[i].size, b->list[i].size);
		assert_int_equal(a->list[i].changed_ms, b->list[i].changed_ms);
		assert_int_equal(a->list[i].hashed, b->list[i].hashed);
		if (a->list[i].hashed)
			assert_memory_equal(a->list[i].sha256, b->list[i].sha256,
			                    sizeof(a->list[i].sha256));
	}
}

static void expect_same_piece(const struct run_piece *a, const struct run_piece *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->len, b->len);
	if (a->len > 0)
		assert_int_equal(a->at, b->at);
}

static void every_field_comes_back(void **state)
{
	struct rig *rig = *state;
	struct run_records *other = run_records_new(rig->f->loop, 10, 1 << 20);
	struct run_record *e = add(rig, false), *past;
	struct outcome outcome = full_outcome();

	run_record_started(e);
	run_record_add_output(e, OUTPUT_STDOUT, "out\0put", 7);
	run_record_add_output(e, OUTPUT_STDERR, "err", 3);
	run_record_ended(e, &outcome, true);
	rig_flush(rig);
	past = load(rig, other, "acme", e->id);
	assert_non_null(past);
	assert_string_equal(past->session_id, e->session_id);
	assert_int_equal(past->session_ms, 77);
	assert_string_equal(past->request_id, "req-1");
	assert_string_equal(past->key_id, "key-1");
	assert_string_equal(past->language, "python");
	assert_int_equal(past->code_len, 3);
	assert_memory_equal(past->code, "x\0y", 3);
	assert_int_equal(past->timeout_us, 5000000);
	assert_int_equal(past->created_ms, e->created_ms);
	assert_int_equal(past->started_ms, e->started_ms);
	assert_int_equal(past->completed_ms, e->completed_ms);
	assert_true(past->session_reset);
	assert_int_equal(past->state, RUN_RECORD_ENDED);
	expect_same_outcome(&past->outcome, &e->outcome);
	expect_same_files(&past->outcome.artifacts, &e->outcome.artifacts);
	assert_int_equal(past->outcome.out.len, 7);
	assert_memory_equal(past->outcome.out.data, "out\0put", 7);
	assert_int_equal(past->outcome.err.len, 3);
	assert_int_equal(past->pieces_count, e->pieces_count);
	for (size_t i = 0; i < e->pieces_count; i++)
		expect_same_piece(&past->pieces[i], &e->pieces[i]);
	/* Another tenant does not find it. */
	assert_null(load(rig, other, "other", e->id));
	run_records_free(other);
}

static void a_failure_is_restored(void **state)
{
	struct rig *rig = *state;
	struct run_records *other = run_records_new(rig->f->loop, 10, 1 << 20);
	struct run_record *e = add(rig, false), *past;
	struct error err = {0};

	(void)error_set(&err, ERR_UNAVAILABLE, ENOSPC, "no box for it");
	run_record_failed(e, &err);
	rig_flush(rig);
	past = load(rig, other, "acme", e->id);
	assert_non_null(past);
	assert_false(past->has_outcome);
	assert_int_equal(past->failure.code, ERR_UNAVAILABLE);
	assert_int_equal(past->failure.sys, ENOSPC);
	assert_non_null(strstr(past->failure.msg, "no box for it"));
	run_records_free(other);
}

static void on_begun(void *ctx, struct run_record *e, const struct error *err)
{
	(void)e;
	rig_on_done(ctx, err);
}

static void a_start_is_on_disk_before_it_happens(void **state)
{
	struct rig *rig = *state;
	struct run_record *e = add(rig, true);
	struct error err = {0};

	rig_flush(rig);
	assert_int_equal(rig_number(rig, "SELECT begun FROM executions"), 0);
	assert_int_equal(run_record_begin(e, on_begun, rig, &err), 1);
	assert_int_equal(rig->callbacks, 0); /* from the loop */
	rig_wait(rig, 1);
	assert_false(error_is_set(&rig->last));
	assert_int_equal(rig_number(rig, "SELECT begun FROM executions"), 1);
	assert_int_equal(run_record_begin(e, on_begun, rig, &err), 0);
	/* One that was not acknowledged is written as started, and waits for nothing. */
	assert_int_equal(run_record_begin(add(rig, false), on_begun, rig, &err), 0);
}

static void a_run_whose_start_cannot_be_recorded_does_not_start(void **state)
{
	struct rig *rig = *state;
	struct run_record *e = add(rig, true);
	struct error err = {0};
	int before;

	rig_break(rig, true);
	before = rig->callbacks;
	assert_int_equal(run_record_begin(e, on_begun, rig, &err), 1);
	rig_wait(rig, before + 1);
	assert_int_equal(rig->last.code, ERR_STORAGE);
	rig_break(rig, false);
}

static void files_go_with_their_execution(void **state)
{
	struct rig *rig = *state;
	struct run_record *e = add(rig, false);
	struct outcome outcome = full_outcome();

	run_record_ended(e, &outcome, false);
	rig_flush(rig);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM files"), 2);
	/* Written again it is the same. */
	run_row_changed(e);
	rig_flush(rig);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM files"), 2);
	rig_sql(rig, "DELETE FROM executions");
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM files"), 0);
}

/* The latest runs of a session, after they left memory. */
static void the_latest_of_a_session_is_found(void **state)
{
	struct rig *rig = *state;
	struct run_records *other = run_records_new(rig->f->loop, 10, 1 << 20);
	struct outcome outcome = {.engine = "fake"};
	struct run_record *e;
	struct error err = {0};

	rig_sql(rig,
	        "INSERT INTO sessions (tenant, id, created_ms, updated_ms, active_ms, state,"
	        " mode, language, driver, executions, idle_us, lifetime_us, history, env, spec)"
	        " VALUES ('acme', 'mine', 77, 1, 1, 'ready', 'ephemeral', 'python', 'fake', 2,"
	        " 1, 1, '', x'', '{}')");
	run_record_ended(add(rig, false), &outcome, false);
	e = add(rig, false);
	run_record_ended(e, &outcome, false);
	run_records_set_store(other, rig->store);
	assert_non_null(run_row_load_latest(other, "acme", "mine", rig_on_done, rig, &err));
	rig_wait(rig, 2);
	assert_non_null(run_records_find(other, "acme", e->id));
	assert_int_equal(run_records_count_of(other, "acme", "mine"), 1);
	run_records_free(other);
}

/* A record of another tenant, in its own table, with the same id. */
static struct run_record *twin_of(struct rig *rig, struct run_records *all,
                                  const struct run_record *e)
{
	struct run_record *twin = run_record_new_blank(all);

	run_records_set_store(all, rig->store);
	assert_int_equal(str_copy(twin->id, sizeof(twin->id), e->id), 0);
	assert_int_equal(str_copy(twin->tenant, sizeof(twin->tenant), "other"), 0);
	twin->session_id = xstrdup("theirs");
	twin->request_id = xstrdup("");
	twin->language = xstrdup("python");
	twin->code = xstrdup("secret");
	twin->code_len = 6;
	twin->created_ms = e->created_ms + 1;
	run_records_enter(all, twin);
	return twin;
}

static void expect_untouched(struct rig *rig)
{
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM executions WHERE tenant = 'acme'"
	                                 " AND out = CAST('mine' AS BLOB) AND paused_ms = 0"),
	                 1);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM executions"), 1);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM files"), 0);
}

static void an_id_in_use_leaves_its_owner_unchanged(void **state)
{
	struct rig *rig = *state;
	struct run_records *other = run_records_new(rig->f->loop, 10, 1 << 20);
	struct outcome mine = {.engine = "fake"}, theirs = full_outcome();
	struct run_record *e = add(rig, false), *twin;

	run_record_add_output(e, OUTPUT_STDOUT, "mine", 4);
	run_record_ended(e, &mine, false);
	rig_flush(rig);
	twin = twin_of(rig, other, e);
	run_record_started(twin);
	run_record_paused(twin, 5);
	rig_flush(rig);
	assert_false(twin->stored);
	run_record_add_output(twin, OUTPUT_STDOUT, "theirs", 6);
	run_record_ended(twin, &theirs, false);
	rig_flush(rig);
	assert_false(twin->stored);
	expect_untouched(rig);
	/* Neither gets the other's where both are known. */
	assert_null(load(rig, other, "acme", e->id));
	assert_ptr_equal(run_records_find(other, "other", e->id), twin);
	/* Control: it does change its own row. */
	rig_sql(rig, "UPDATE executions SET out = NULL");
	run_row_changed(e);
	rig_flush(rig);
	expect_untouched(rig);
	run_records_free(other);
}

static void starting_with_an_id_in_use_is_refused(void **state)
{
	struct rig *rig = *state;
	struct run_records *other = run_records_new(rig->f->loop, 10, 1 << 20);
	struct outcome mine = {.engine = "fake"};
	struct run_record *e = add(rig, false), *twin;
	struct error err = {0};

	run_record_add_output(e, OUTPUT_STDOUT, "mine", 4);
	run_record_ended(e, &mine, false);
	rig_flush(rig);
	twin = twin_of(rig, other, e);
	assert_int_equal(run_record_begin(twin, on_begun, rig, &err), 1);
	rig_wait(rig, 1);
	assert_int_equal(rig->last.code, ERR_UNAVAILABLE);
	assert_false(store_is_failing(rig->store)); /* it is not the disk */
	expect_untouched(rig);
	run_records_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(every_field_comes_back),
		RIG_TEST(a_failure_is_restored),
		RIG_TEST(a_start_is_on_disk_before_it_happens),
		RIG_TEST(a_run_whose_start_cannot_be_recorded_does_not_start),
		RIG_TEST(files_go_with_their_execution),
		RIG_TEST(the_latest_of_a_session_is_found),
		RIG_TEST(an_id_in_use_leaves_its_owner_unchanged),
		RIG_TEST(starting_with_an_id_in_use_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
