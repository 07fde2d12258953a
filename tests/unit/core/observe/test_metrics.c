/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/observe/metrics.h"
#include "core/run/outcome.h"
#include "core/run/run_report.h"

static int set_up(void **state)
{
	*state = metrics_new();
	return 0;
}

static int tear_down(void **state)
{
	metrics_free(*state);
	return 0;
}

static char *print(const struct metrics *m)
{
	struct buf b = BUF_INIT(METRICS_TEXT_MAX);
	size_t len;

	assert_int_equal(metrics_print(m, &b), 0);
	return buf_take(&b, &len);
}

static void assert_has_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	while (at && ((at != text && at[-1] != '\n') || at[strlen(line)] != '\n'))
		at = strstr(at + 1, line);
	if (!at)
		fail_msg("no line '%s' in\n%s", line, text);
}

static void every_metric_has_help_and_type_once_and_before_its_samples(void **state)
{
	struct metrics *m = *state;
	cleanup_free char *text = NULL;

	metrics_count_for(m, METRIC_EXECUTIONS, METRIC_LABELS("python", "success"), 1);
	text = print(m);
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_info *info = metric_info((enum metric)i);
		char head[128];
		const char *at;

		(void)snprintf(head, sizeof(head), "# HELP %s ", info->name);
		at = strstr(text, head);
		assert_non_null(at);
		assert_null(strstr(at + 1, head));
		(void)snprintf(head, sizeof(head), "# TYPE %s ", info->name);
		at = strstr(at, head);
		assert_non_null(at);
		assert_null(strstr(at + 1, head));
		/* Help and names need no escaping. */
		assert_null(strpbrk(info->help, "\\\n"));
	}
	assert_true(strstr(text, "# TYPE sandbox_executions_total counter\n") <
	            strstr(text, "\nsandbox_executions_total{"));
	assert_has_line(text, "sandbox_executions_total{language=\"python\",status=\"success\"} 1");
}

static void names_are_well_formed_and_differ(void **state)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz_";

	(void)state;
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_info *info = metric_info((enum metric)i);

		assert_int_equal(strspn(info->name, chars), strlen(info->name));
		assert_int_equal(strspn(info->labels, "abcdefghijklmnopqrstuvwxyz_,"),
		                 strlen(info->labels));
		for (int j = 0; j < i; j++)
			assert_false(str_equal(info->name, metric_info((enum metric)j)->name));
	}
}

static void label_values_are_escaped(void **state)
{
	struct metrics *m = *state;
	cleanup_free char *text = NULL;

	metrics_count_for(m, METRIC_LIMITS, METRIC_LABELS("a\"b\\c\nd"), 2);
	text = print(m);
	assert_has_line(text, "sandbox_limits_total{limit=\"a\\\"b\\\\c\\nd\"} 2");
}

static void histograms_are_cumulative_and_end_at_infinity(void **state)
{
	struct metrics *m = *state;
	cleanup_free char *text = NULL;

	metrics_observe(m, METRIC_EXEC_QUEUE, 0.0005); /* an upper end belongs to its bucket */
	metrics_observe(m, METRIC_EXEC_QUEUE, 0.0007);
	metrics_observe(m, METRIC_EXEC_QUEUE, 2);
	metrics_observe(m, METRIC_EXEC_QUEUE, 4000);
	text = print(m);
	assert_has_line(text, "sandbox_execution_queue_seconds_bucket{le=\"0.0005\"} 1");
	assert_has_line(text, "sandbox_execution_queue_seconds_bucket{le=\"0.001\"} 2");
	assert_has_line(text, "sandbox_execution_queue_seconds_bucket{le=\"1\"} 2");
	assert_has_line(text, "sandbox_execution_queue_seconds_bucket{le=\"2.5\"} 3");
	assert_has_line(text, "sandbox_execution_queue_seconds_bucket{le=\"3600\"} 3");
	assert_has_line(text, "sandbox_execution_queue_seconds_bucket{le=\"+Inf\"} 4");
	assert_has_line(text, "sandbox_execution_queue_seconds_sum 4002.0012");
	assert_has_line(text, "sandbox_execution_queue_seconds_count 4");
}

static void buckets_of_a_histogram_with_labels_have_both(void **state)
{
	struct metrics *m = *state;
	cleanup_free char *text = NULL;

	metrics_observe_for(m, METRIC_EXEC_RUN, METRIC_LABELS("python"), 0.02);
	text = print(m);
	assert_has_line(
		text,
		"sandbox_execution_duration_seconds_bucket{language=\"python\",le=\"0.025\"} 1");
	assert_has_line(text, "sandbox_execution_duration_seconds_count{language=\"python\"} 1");
}

static void series_beyond_the_bound_are_counted_together(void **state)
{
	struct metrics *m = *state;
	cleanup_free char *text = NULL;
	char name[16];

	for (int i = 0; i < 2 * METRICS_SERIES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "r%d", i);
		metrics_count_for(m, METRIC_REJECTED, METRIC_LABELS(name), 1);
	}
	/* An existing series is still counted by its name. */
	metrics_count_for(m, METRIC_REJECTED, METRIC_LABELS("r0"), 1);
	text = print(m);
	assert_has_line(text, "sandbox_rejected_total{reason=\"r0\"} 2");
	assert_has_line(text, "sandbox_rejected_total{reason=\"other\"} 512");
	assert_true(metrics_total(m, METRIC_REJECTED) == 2 * METRICS_SERIES_MAX + 1);
	/* Others are not affected. */
	metrics_count_for(m, METRIC_LIMITS, METRIC_LABELS("time"), 1);
	assert_true(metrics_value(m, METRIC_LIMITS, METRIC_LABELS("time")) == 1);
}

static void totals_are_of_all_series_or_of_those_with_a_label(void **state)
{
	struct metrics *m = *state;

	metrics_count_for(m, METRIC_EXECUTIONS, METRIC_LABELS("python", "success"), 3);
	metrics_count_for(m, METRIC_EXECUTIONS, METRIC_LABELS("shell", "success"), 4);
	metrics_count_for(m, METRIC_EXECUTIONS, METRIC_LABELS("shell", "timeout"), 5);
	assert_true(metrics_total(m, METRIC_EXECUTIONS) == 12);
	assert_true(metrics_total_with(m, METRIC_EXECUTIONS, 1, "success") == 7);
	assert_true(metrics_total_with(m, METRIC_EXECUTIONS, 0, "shell") == 9);
	assert_true(metrics_total_with(m, METRIC_EXECUTIONS, 0, "success") == 0);
}

static void on_look(void *ctx, struct metrics *m)
{
	metrics_set(m, METRIC_BOXES, ++*(int *)ctx);
}

static void sources_are_read_at_each_scrape(void **state)
{
	struct metrics *m = *state;
	int looks = 0;

	metrics_add_source(m, on_look, &looks);
	metrics_collect(m);
	metrics_collect(m);
	assert_int_equal(looks, 2);
	assert_true(metrics_value(m, METRIC_BOXES, NULL) == 2);
}

static void the_process_is_measured(void **state)
{
	struct metrics *m = *state;

	metrics_process(NULL, m);
	assert_true(metrics_value(m, METRIC_RSS, NULL) > 100000);
	assert_true(metrics_value(m, METRIC_VIRTUAL, NULL) > metrics_value(m, METRIC_RSS, NULL));
	assert_true(metrics_value(m, METRIC_FDS, NULL) >= 3);
	assert_true(metrics_value(m, METRIC_MAX_FDS, NULL) >= metrics_value(m, METRIC_FDS, NULL));
}

static void an_execution_is_counted_with_all_that_is_known_of_it(void **state)
{
	struct metrics *m = *state;
	struct outcome o = {.status = OUTCOME_TIMEOUT,
	                    .limit = OUTCOME_LIMIT_TIME,
	                    .queue_us = 1000,
	                    .start_us = 2000,
	                    .duration_us = 500000,
	                    .cpu_us = COUNTER_UNKNOWN,
	                    .stdout_bytes = 7};

	run_report_metrics(m, "python", &o);
	run_report_metrics(m, "python", NULL);
	assert_true(metrics_value(m, METRIC_EXECUTIONS, METRIC_LABELS("python", "timeout")) == 1);
	assert_true(metrics_value(m, METRIC_EXECUTIONS, METRIC_LABELS("python", "error")) == 1);
	assert_true(metrics_value(m, METRIC_LIMITS, METRIC_LABELS("time")) == 1);
	assert_true(metrics_value(m, METRIC_EXEC_OUTPUT, METRIC_LABELS("stdout")) == 7);
	assert_true(metrics_value(m, METRIC_EXEC_CPU, NULL) == 0);
	assert_true(metrics_total(m, METRIC_EXEC_TOTAL) == 1);
	assert_true(fabs(metrics_sum(m, METRIC_EXEC_TOTAL) - 0.503) < 1e-9);
}

static void without_metrics_nothing_is_counted(void **state)
{
	(void)state;
	metrics_count(NULL, METRIC_AUTH_FAILURES, 1);
	metrics_set(NULL, METRIC_BOXES, 1);
	metrics_observe(NULL, METRIC_EXEC_QUEUE, 1);
	metrics_add_source(NULL, on_look, NULL);
	metrics_collect(NULL);
	assert_true(metrics_total(NULL, METRIC_AUTH_FAILURES) == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_metric_has_help_and_type_once_and_before_its_samples),
		TEST(names_are_well_formed_and_differ),
		TEST(label_values_are_escaped),
		TEST(histograms_are_cumulative_and_end_at_infinity),
		TEST(buckets_of_a_histogram_with_labels_have_both),
		TEST(series_beyond_the_bound_are_counted_together),
		TEST(totals_are_of_all_series_or_of_those_with_a_label),
		TEST(sources_are_read_at_each_scrape),
		TEST(the_process_is_measured),
		TEST(an_execution_is_counted_with_all_that_is_known_of_it),
		TEST(without_metrics_nothing_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
