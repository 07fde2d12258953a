/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "core/run/outcome.h"

static bool has(const struct outcome *out, const char *what)
{
	for (unsigned i = 0; i < out->denials_count; i++)
		if (strcmp(out->denials[i].what, what) == 0)
			return true;
	return false;
}

/* A copy, or an empty one. */
static struct denial find(const struct outcome *out, const char *what)
{
	for (unsigned i = 0; i < out->denials_count; i++)
		if (strcmp(out->denials[i].what, what) == 0)
			return out->denials[i];
	return (struct denial){.kind = "", .rule = ""};
}

static void names_are_those_of_the_api(void **state)
{
	static const char *const statuses[] = {"success", "failed", "timeout", "crashed",
	                                       "cancelled"};
	static const char *const limits[] = {NULL,        "time",   "cpu",  "memory",
	                                     "processes", "output", "disk", "host_memory"};

	(void)state;
	for (int i = 0; i < OUTCOME_STATUS_COUNT; i++)
		assert_string_equal(outcome_status_name((enum outcome_status)i), statuses[i]);
	assert_null(outcome_limit_name(OUTCOME_LIMIT_NONE));
	for (int i = 1; i < OUTCOME_LIMIT_COUNT; i++)
		assert_string_equal(outcome_limit_name((enum outcome_limit)i), limits[i]);
}

static void endings_are_distinguished(void **state)
{
	static const struct {
		struct outcome_evidence evidence;
		enum outcome_status status;
		enum outcome_limit limit;
		bool exited;
		int exit_code, signal;
	} rows[] = {
		{{.ended = true}, OUTCOME_SUCCESS, OUTCOME_LIMIT_NONE, true, 0, 0},
		{{.ended = true, .status = 3}, OUTCOME_FAILED, OUTCOME_LIMIT_NONE, true, 3, 0},
		{{.ended = true, .signalled = true, .status = SIGSEGV},
	         OUTCOME_FAILED,
	         OUTCOME_LIMIT_NONE,
	         true,
	         139,
	         SIGSEGV},
		{{.ended = true, .signalled = true, .status = SIGXFSZ},
	         OUTCOME_FAILED,
	         OUTCOME_LIMIT_DISK,
	         true,
	         128 + SIGXFSZ,
	         SIGXFSZ},
		{{.ended = true, .signalled = true, .status = SIGXCPU},
	         OUTCOME_FAILED,
	         OUTCOME_LIMIT_CPU,
	         true,
	         128 + SIGXCPU,
	         SIGXCPU},
		/* An exit code that looks like a signal is not one. */
		{{.ended = true, .status = SIGXFSZ},
	         OUTCOME_FAILED,
	         OUTCOME_LIMIT_NONE,
	         true,
	         SIGXFSZ,
	         0},
		{{.ended = true, .status = 137}, OUTCOME_FAILED, OUTCOME_LIMIT_NONE, true, 137, 0},
		{{.ended = true, .signalled = true, .status = SIGKILL, .counters.oom_kills = 1},
	         OUTCOME_FAILED,
	         OUTCOME_LIMIT_MEMORY,
	         true,
	         137,
	         SIGKILL},
		{{.ended = true, .status = 1, .counters.pids_denied = 9},
	         OUTCOME_FAILED,
	         OUTCOME_LIMIT_PROCESSES,
	         true,
	         1,
	         0},
		{{.ended = true, .status = 1, .disk_full = true},
	         OUTCOME_FAILED,
	         OUTCOME_LIMIT_DISK,
	         true,
	         1,
	         0},
		{{.ended = true, .out_truncated = true},
	         OUTCOME_SUCCESS,
	         OUTCOME_LIMIT_OUTPUT,
	         true,
	         0,
	         0},
		{{.ended = true, .status = 1, .err_truncated = true},
	         OUTCOME_FAILED,
	         OUTCOME_LIMIT_OUTPUT,
	         true,
	         1,
	         0},
		{{.timed_out = true}, OUTCOME_TIMEOUT, OUTCOME_LIMIT_TIME, false, 0, 0},
		{{.lost = true}, OUTCOME_CRASHED, OUTCOME_LIMIT_NONE, false, 0, 0},
		{{.lost = true, .counters.oom_kills = 2},
	         OUTCOME_FAILED,
	         OUTCOME_LIMIT_MEMORY,
	         true,
	         137,
	         SIGKILL},
		{{.cancelled = true}, OUTCOME_CANCELLED, OUTCOME_LIMIT_NONE, false, 0, 0},
		{{.ended = false}, OUTCOME_CRASHED, OUTCOME_LIMIT_NONE, false, 0, 0},
		/* A successful program was not ended by a limit. */
		{{.ended = true, .counters = {.oom_kills = 1, .pids_denied = 1}, .disk_full = true},
	         OUTCOME_SUCCESS,
	         OUTCOME_LIMIT_NONE,
	         true,
	         0,
	         0},
		/* Uncounted events did not happen. */
		{{.ended = true,
	          .status = 1,
	          .counters = {.oom_kills = COUNTER_UNKNOWN, .pids_denied = COUNTER_UNKNOWN}},
	         OUTCOME_FAILED,
	         OUTCOME_LIMIT_NONE,
	         true,
	         1,
	         0},
		{{.lost = true, .counters.oom_kills = COUNTER_UNKNOWN},
	         OUTCOME_CRASHED,
	         OUTCOME_LIMIT_NONE,
	         false,
	         0,
	         0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct outcome out = {.exit_code = -7, .signal = -7};

		outcome_judge(&rows[i].evidence, &out);
		if (out.status != rows[i].status || out.limit != rows[i].limit ||
		    out.exited != rows[i].exited || out.exit_code != rows[i].exit_code ||
		    out.signal != rows[i].signal)
			fail_msg("row %zu: status %d limit %d exited %d code %d signal %d", i,
			         out.status, out.limit, out.exited, out.exit_code, out.signal);
	}
}

/* The rule once more, as prose, to be compared with the tables. */
static enum outcome_status expected_status(const struct outcome_evidence *e)
{
	if (e->cancelled)
		return OUTCOME_CANCELLED;
	if (e->timed_out)
		return OUTCOME_TIMEOUT;
	if (e->lost)
		return e->counters.oom_kills ? OUTCOME_FAILED : OUTCOME_CRASHED;
	if (!e->ended)
		return OUTCOME_CRASHED;
	return e->signalled || e->status ? OUTCOME_FAILED : OUTCOME_SUCCESS;
}

static enum outcome_limit expected_limit(const struct outcome_evidence *e,
                                         enum outcome_status status)
{
	if (status == OUTCOME_CANCELLED)
		return OUTCOME_LIMIT_NONE;
	if (status == OUTCOME_TIMEOUT)
		return OUTCOME_LIMIT_TIME;
	if (status != OUTCOME_SUCCESS && e->counters.oom_kills)
		return OUTCOME_LIMIT_MEMORY;
	if (status != OUTCOME_SUCCESS && e->counters.pids_denied)
		return OUTCOME_LIMIT_PROCESSES;
	if (status != OUTCOME_SUCCESS && e->disk_full)
		return OUTCOME_LIMIT_DISK;
	return e->out_truncated || e->err_truncated ? OUTCOME_LIMIT_OUTPUT : OUTCOME_LIMIT_NONE;
}

static unsigned expected_denials(const struct outcome_evidence *e)
{
	return (unsigned)e->timed_out + (e->counters.oom_kills > 0) +
	       (e->counters.pids_denied > 0) + (unsigned)e->disk_full +
	       (unsigned)(e->out_truncated || e->err_truncated);
}

static void every_combination_is_judged_by_the_rule(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 1u << 11; bits++) {
		const struct outcome_evidence e = {
			.cancelled = bits & 1,
			.timed_out = bits & 2,
			.lost = bits & 4,
			.ended = bits & 8,
			.signalled = bits & 16,
			.status = bits & 32 ? 9 : 0,
			.out_truncated = bits & 64,
			.err_truncated = bits & 128,
			.disk_full = bits & 256,
			.counters = {.oom_kills = bits & 512 ? 3 : 0,
		                     .pids_denied = bits & 1024 ? 5 : 0},
		};
		struct outcome out = {0};
		enum outcome_status status = expected_status(&e);

		outcome_judge(&e, &out);
		if (out.status != status || out.limit != expected_limit(&e, status) ||
		    out.denials_count != expected_denials(&e))
			fail_msg("evidence %#x", bits);
		assert_int_equal(out.out_truncated, e.out_truncated);
		assert_int_equal(out.err_truncated, e.err_truncated);
		/* A named limit is always among the denials. */
		assert_true(out.limit == OUTCOME_LIMIT_NONE ||
		            has(&out, outcome_limit_name(out.limit)));
	}
}

static void hits_are_listed_with_their_counts(void **state)
{
	const struct outcome_evidence e = {
		.ended = true,
		.timed_out = true,
		.disk_full = true,
		.out_truncated = true,
		.err_truncated = true,
		.counters = {.oom_kills = 2, .pids_denied = 70},
	};
	static const struct {
		const char *what, *rule;
		uint64_t count;
	} rows[] = {
		{"time", "deadline", 1}, {"memory", "memory", 2}, {"processes", "pids", 70},
		{"disk", "tmpfs", 1},    {"output", "output", 2},
	};
	struct outcome out = {0};

	(void)state;
	outcome_judge(&e, &out);
	assert_int_equal(out.denials_count, ARRAY_SIZE(rows));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct denial d = find(&out, rows[i].what);

		assert_string_equal(d.kind, "limit");
		assert_string_equal(d.rule, rows[i].rule);
		assert_int_equal(d.count, rows[i].count);
	}
}

static void refused_calls_are_counted_once_each(void **state)
{
	struct outcome out = {0};

	(void)state;
	outcome_add_syscall(&out, "mount", 1);
	outcome_add_syscall(&out, "ptrace", 2);
	outcome_add_syscall(&out, "mount", 40);
	outcome_add_syscall(&out, "a name that is longer than any system call has", 1);
	assert_int_equal(out.denials_count, 2);
	assert_int_equal(find(&out, "mount").count, 40);
	assert_string_equal(find(&out, "mount").kind, "syscall");
	assert_string_equal(find(&out, "mount").rule, "seccomp");
}

/* Names go into logs and signed receipts, which take no others. */
static void names_of_refused_tools_are_printable(void **state)
{
	const struct box_tool_denial denial = {
		.server = "git", .tool = "a\n\x1b[0m\xff", .rule = "mcp.tools", .count = 1};
	struct outcome out = {0};

	(void)state;
	assert_non_null(outcome_add_tool(&out, &denial, false));
	assert_string_equal(out.denials[0].what, "git/a??[0m?");
}

static void flood_of_refused_calls_hides_no_limit(void **state)
{
	const struct outcome_evidence e = {.timed_out = true,
	                                   .disk_full = true,
	                                   .out_truncated = true,
	                                   .counters = {.oom_kills = 1, .pids_denied = 1}};
	struct outcome out = {0};
	char name[16];

	(void)state;
	for (int i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		outcome_add_syscall(&out, name, 1);
	}
	assert_true(out.denials_count > 20);
	outcome_judge(&e, &out);
	assert_true(out.denials_count <= DENIALS_MAX);
	assert_true(has(&out, "time"));
	assert_true(has(&out, "memory"));
	assert_true(has(&out, "processes"));
	assert_true(has(&out, "disk"));
	assert_true(has(&out, "output"));
}

static void buffers_are_freed(void **state)
{
	struct outcome out = {.out = BUF_INIT(10), .err = BUF_INIT(10), .report = BUF_INIT(10)};

	(void)state;
	assert_int_equal(buf_add_str(&out.out, "a"), 0);
	assert_int_equal(buf_add_str(&out.err, "a"), 0);
	assert_int_equal(buf_add_str(&out.report, "a"), 0);
	outcome_done(&out);
	assert_null(out.out.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_of_the_api),
		cmocka_unit_test(endings_are_distinguished),
		cmocka_unit_test(every_combination_is_judged_by_the_rule),
		cmocka_unit_test(hits_are_listed_with_their_counts),
		cmocka_unit_test(refused_calls_are_counted_once_each),
		cmocka_unit_test(names_of_refused_tools_are_printable),
		cmocka_unit_test(flood_of_refused_calls_hides_no_limit),
		cmocka_unit_test(buffers_are_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
