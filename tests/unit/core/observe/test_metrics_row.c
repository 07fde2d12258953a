/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "core/observe/metrics.h"
#include "core/observe/metrics_row.h"
#include "store_fixture.h"

static struct metrics *later(struct rig *rig)
{
	struct metrics *m = metrics_new();
	struct store *store = NULL;

	rig_flush(rig);
	assert_int_equal(store_open(rig->dir, &store, &rig->f->err), 0);
	if (metrics_row_load(store, m, &rig->f->err) < 0)
		fail_msg("%s", rig->f->err.msg);
	store_close(store);
	return m;
}

static void expect_same_text(struct metrics *a, struct metrics *b)
{
	cleanup_buf struct buf one = BUF_INIT(METRICS_TEXT_MAX), two = BUF_INIT(METRICS_TEXT_MAX);

	assert_int_equal(metrics_print(a, &one), 0);
	assert_int_equal(metrics_print(b, &two), 0);
	assert_string_equal(one.data, two.data);
}

static struct metrics *count_some(void)
{
	struct metrics *m = metrics_new();

	metrics_count_for(m, METRIC_EXECUTIONS, METRIC_LABELS("python", "success"), 3);
	metrics_count_for(m, METRIC_EXECUTIONS, METRIC_LABELS("shell", "failed"), 1);
	metrics_count(m, METRIC_EXEC_CPU, 1.25);
	metrics_count(m, METRIC_HTTP_BYTES, 1e13);
	metrics_observe(m, METRIC_EXEC_QUEUE, 0.00390625); /* a whole number of billionths */
	metrics_observe(m, METRIC_EXEC_QUEUE, 4000);
	metrics_observe_for(m, METRIC_EXEC_RUN, METRIC_LABELS("python"), 0.5);
	return m;
}

static void all_totals_come_back(void **state)
{
	struct rig *rig = *state;
	struct metrics *m = count_some(), *past;

	metrics_row_free(metrics_row_new(rig->store, m, rig->f->loop));
	past = later(rig);
	expect_same_text(m, past);
	/* They continue. */
	metrics_count_for(past, METRIC_EXECUTIONS, METRIC_LABELS("python", "success"), 1);
	assert_true(metrics_total(past, METRIC_EXECUTIONS) == 5);
	metrics_free(past);
	metrics_free(m);
}

/* A sum of fractions that no double represents: the value read is never less. */
static void nothing_is_lost_in_between(void **state)
{
	struct rig *rig = *state;
	double sum = 0.051770000000000004; /* 0.05177, rounded up */
	struct metrics *m = metrics_new(), *past;

	metrics_count(m, METRIC_EXEC_CPU, sum);
	metrics_count(m, METRIC_HTTP_BYTES, 1e19); /* more than a row can hold: none */
	metrics_row_free(metrics_row_new(rig->store, m, rig->f->loop));
	past = later(rig);
	assert_true(metrics_value(past, METRIC_EXEC_CPU, NULL) >= sum);
	assert_true(metrics_value(past, METRIC_HTTP_BYTES, NULL) == 0);
	metrics_free(past);
	metrics_free(m);
}

/* Before the next turn of the loop, which may read a request first. */
static void reported_totals_are_written(void **state)
{
	struct rig *rig = *state;
	struct metrics *m = count_some(), *past;
	struct metrics_row *sm = metrics_row_new(rig->store, m, rig->f->loop);

	metrics_collect(m);
	assert_true(db_waiting(store_db(rig->store)) > 0);
	past = later(rig);
	expect_same_text(m, past);
	metrics_free(past);
	metrics_row_free(sm);
	metrics_free(m);
}

static void gauges_and_what_the_kernel_counts_begin_anew(void **state)
{
	struct rig *rig = *state;
	struct metrics *m = metrics_new(), *past;

	metrics_set(m, METRIC_CPU, 77);
	metrics_set(m, METRIC_RUNNING, 7);
	metrics_row_free(metrics_row_new(rig->store, m, rig->f->loop));
	past = later(rig);
	assert_true(metrics_value(past, METRIC_CPU, NULL) == 0);
	assert_true(metrics_value(past, METRIC_RUNNING, NULL) == 0);
	metrics_free(past);
	metrics_free(m);
}

/* Of another version, or malformed: ignored one by one. */
static void unknown_rows_are_kept(void **state)
{
	struct rig *rig = *state;
	struct metrics *past;

	rig_sql(rig,
	        "INSERT INTO metrics VALUES"
	        " ('no_such_metric', '', 1, 0, 0, ''),"
	        " ('sandbox_executions_total', 'one label', 1, 0, 0, ''),"
	        " ('sandbox_executions_total', 'much' || char(31) || 'b', 9223372036854775807, 0, "
	        "0, ''),"
	        " ('sandbox_executions_total', 'a' || char(31) || 'b', -1, 0, 0, ''),"
	        " ('sandbox_execution_queue_seconds', '', 1, 0, 1, '1 2 3'),"
	        " ('sandbox_execution_queue_seconds', 'x', 1, 0, 1, 'no number'),"
	        " ('sandbox_executions_total', 'python' || char(31) || 'success', 4, 0, 0, '')");
	past = later(rig);
	assert_true(metrics_total(past, METRIC_EXECUTIONS) == 4);
	assert_true(metrics_total(past, METRIC_EXEC_QUEUE) == 0);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM metrics"), 7);
	metrics_free(past);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(all_totals_come_back),
		RIG_TEST(nothing_is_lost_in_between),
		RIG_TEST(reported_totals_are_written),
		RIG_TEST(gauges_and_what_the_kernel_counts_begin_anew),
		RIG_TEST(unknown_rows_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
