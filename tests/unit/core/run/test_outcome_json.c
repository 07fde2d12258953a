/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "core/run/outcome.h"
#include <errno.h>
#include <signal.h>
#include <string.h>

static void all_values_but_bytes_round_trip(void **state)
{
	struct outcome in = {
		.status = OUTCOME_TIMEOUT,
		.limit = OUTCOME_LIMIT_TIME,
		.exited = true,
		.exit_code = 137,
		.signal = 9,
		.out_truncated = true,
		.handler = true,
		.stdout_bytes = 1ull << 40,
		.stderr_bytes = 2,
		.duration_us = 3,
		.start_us = 4,
		.queue_us = 5,
		.cpu_us = 6,
		.memory_peak_bytes = COUNTER_UNKNOWN,
		.processes_peak = 7,
		.read_bytes = 8,
		.write_bytes = 9,
		.layers = UINT32_MAX,
		.layers_missing = 1,
		.engine = "native",
		.isolation = "best-effort",
	};
	cleanup_free char *text = NULL;
	struct outcome out;
	bool reset = false;

	(void)state;
	outcome_add_syscall(&in, "mount", 3);
	text = outcome_to_json(&in, true);
	assert_int_equal(outcome_from_json(text, &out, &reset), 0);
	assert_true(reset);
	assert_string_equal(out.engine, in.engine);
	assert_string_equal(out.isolation, in.isolation);
	assert_int_equal(out.denials_count, 1);
	assert_string_equal(out.denials[0].kind, "syscall");
	assert_string_equal(out.denials[0].what, "mount");
	assert_string_equal(out.denials[0].rule, "seccomp");
	assert_int_equal(out.denials[0].count, 3);
	assert_int_equal(out.status, OUTCOME_TIMEOUT);
	assert_int_equal(out.limit, OUTCOME_LIMIT_TIME);
	assert_int_equal(out.exit_code, 137);
	assert_true(out.exited && out.out_truncated && out.handler && !out.err_truncated);
	assert_true(out.stdout_bytes == 1ull << 40 && out.write_bytes == 9);
	assert_true(out.memory_peak_bytes == COUNTER_UNKNOWN);
	assert_true(out.layers == UINT32_MAX && out.layers_missing == 1);
	assert_int_equal(out.signal + out.duration_us + out.start_us + out.queue_us + out.cpu_us +
	                         out.processes_peak + out.read_bytes + out.stderr_bytes,
	                 9 + 3 + 4 + 5 + 6 + 7 + 8 + 2);
}

static void every_status_and_limit_has_a_name(void **state)
{
	(void)state;
	for (int i = 0; i < OUTCOME_STATUS_COUNT * OUTCOME_LIMIT_COUNT; i++) {
		const struct outcome in = {.status =
		                                   (enum outcome_status)(i % OUTCOME_STATUS_COUNT),
		                           .limit = (enum outcome_limit)(i / OUTCOME_STATUS_COUNT)};
		cleanup_free char *text = outcome_to_json(&in, false);
		struct outcome out;
		bool reset = true;

		assert_int_equal(outcome_from_json(text, &out, &reset), 0);
		assert_int_equal(out.status, in.status);
		assert_int_equal(out.limit, in.limit);
		assert_false(reset);
	}
}

static void every_denial_comes_back(void **state)
{
	const struct outcome_evidence hit_all = {
		.timed_out = true,
		.host_memory = true,
		.ended = true,
		.signalled = true,
		.status = SIGXCPU,
		.out_truncated = true,
		.disk_full = true,
		.counters = {.oom_kills = 1, .pids_denied = 2},
	};
	const struct box_denial refused = {
		.reason = 3, .port = 80, .count = 2, .host = "a\xff.test", .detail = "ru\nle"};
	struct outcome in = {.engine = "native"}, out;
	cleanup_free char *text = NULL;
	struct denial *row;
	bool reset;

	(void)state;
	outcome_add_syscall(&in, "mount", 3);
	row = outcome_add_network(&in, &refused, true);
	assert_non_null(row);
	assert_string_equal(row->what, "a?.test:80"); /* what is not text never gets further */
	assert_string_equal(row->detail, "ru?le");
	row->remedy = xstrdup("{\"text\":\"t\"}");
	outcome_judge(&hit_all, &in);
	assert_int_equal(in.denials_count, 2 + OUTCOME_LIMIT_COUNT - 1);
	text = outcome_to_json(&in, false);
	assert_int_equal(outcome_from_json(text, &out, &reset), 0);
	assert_int_equal(out.denials_count, in.denials_count);
	for (unsigned i = 0; i < in.denials_count; i++) {
		assert_string_equal(out.denials[i].kind, in.denials[i].kind);
		assert_string_equal(out.denials[i].what, in.denials[i].what);
		assert_string_equal(out.denials[i].rule, in.denials[i].rule);
		assert_int_equal(out.denials[i].count, in.denials[i].count);
		assert_int_equal(out.denials[i].error, in.denials[i].error);
		assert_int_equal(!out.denials[i].detail, !in.denials[i].detail);
		assert_int_equal(out.denials[i].shared, i == 1);
		assert_true(out.denials[i].rule[0]);
	}
	assert_string_equal(out.denials[1].remedy, "{\"text\":\"t\"}");
	outcome_done(&in);
	outcome_done(&out);
}

/* Others may write the file: it must not crash its reader. */
static void foreign_records_are_refused_or_harmless(void **state)
{
	static const char *const bad[] = {
		"", "{", "[]", "null", "{}", "{\"status\":\"gone\"}", "{\"status\":5}"};
	static const char odd[] =
		"{\"status\":\"success\",\"limit\":[],\"driver\":{},\"exited\":\"x\",\"denials\":"
		"[5,{\"what\":7},{\"what\":\"a name that is far too long to be that of a call\"}]}";
	struct outcome out;
	bool reset;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(outcome_from_json(bad[i], &out, &reset), -EINVAL);
	assert_int_equal(outcome_from_json(odd, &out, &reset), 0);
	assert_int_equal(out.status, OUTCOME_SUCCESS);
	assert_int_equal(out.denials_count, 0);
	assert_string_equal(out.engine, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_values_but_bytes_round_trip),
		cmocka_unit_test(every_status_and_limit_has_a_name),
		cmocka_unit_test(every_denial_comes_back),
		cmocka_unit_test(foreign_records_are_refused_or_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
