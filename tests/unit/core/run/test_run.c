/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <signal.h>
#include <sys/syscall.h>

#include "run_fixture.h"
#include "wire/layer.h"

static void everything_is_handed_over_at_once(void **state)
{
	struct fixture *f = *state;
	struct run_request_file files[] = {{(char *)"a/b.txt", (char *)"data", 4}};
	char *args[] = {(char *)"-v", NULL};
	char *env[] = {(char *)"MINE=1", NULL};
	const struct fake_exec *received;
	struct heard h = {0};
	struct box *box;

	f->request.files = files;
	f->request.files_count = 1;
	f->request.args = args;
	f->request.env = env;
	f->request.stdin_data = (char *)"in\0put";
	f->request.stdin_len = 6;
	start(f, &h);
	box = box_at(f, 0);
	received = fake_exec_last(box);
	assert_non_null(received);
	assert_int_equal(received->id, EXEC_ID);
	assert_string_equal(received->argv[0], "/bin/sh");
	assert_string_equal(received->argv[3], "-v");
	assert_string_equal(received->env[str_list_count(received->env) - 1], "MINE=1");
	assert_string_equal(received->cwd, "");
	assert_int_equal(received->files_count, 2);
	assert_string_equal(received->files[0].path, "main.x");
	assert_string_equal(received->files[0].data, "print");
	assert_true(received->files[0].source);
	assert_int_equal(received->files[0].mode, 0444);
	assert_string_equal(received->files[1].path, "a/b.txt");
	assert_string_equal(received->files[1].data, "data");
	assert_false(received->files[1].source);
	assert_int_equal(received->stdin_len, 6);
	assert_memory_equal(received->stdin_data, "in\0put", 6);
	assert_false(received->stdin_open); /* its end was sent, too */
	assert_int_equal(received->stdout_max, 9);
	assert_int_equal(received->report_max, 4 * 1024 * 1024);
	assert_int_equal(fake_spec(box)->limits.memory_bytes, f->config->memory_bytes);
	assert_true(strlen(box_id(box)) == 26);
	run_unwatch(h.watch);
	expect_idle(f);
}

static void program_that_ends_is_answered_before_its_box_is_gone(void **state)
{
	const struct exec_facts facts = {.duration_us = 1500, .stdout_bytes = 3, .stderr_bytes = 3};
	const struct box_counters counters = {
		.memory_peak_bytes = 4096, .cpu_us = 777, .pids_peak = 3};
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	fake_hold_gone(f->driver, true);
	start(f, &h);
	box = run(f, 0);
	assert_int_equal(h.starts, 1);
	fake_set_counters(box, &counters);
	fake_set_layers(box, LAYERS_ALL & ~LAYER_BIT(LAYER_LANDLOCK));
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "out", 3);
	fake_output(box, EXEC_ID, OUTPUT_STDERR, "err", 3);
	fake_report(box, EXEC_ID, "{\"result\":1}");
	fake_denial(box, EXEC_ID, SYS_mount, 4);
	fake_done(box, EXEC_ID, &facts);
	assert_int_equal(h.ends, 1);
	assert_int_equal(h.outcome.status, OUTCOME_SUCCESS);
	assert_int_equal(h.outcome.limit, OUTCOME_LIMIT_NONE);
	assert_string_equal(h.out, "out");
	assert_string_equal(h.err, "err");
	assert_string_equal(h.report, "{\"result\":1}");
	assert_string_equal(h.streamed, "0out1err");
	assert_string_equal(h.id, h.outcome.execution_id);
	assert_int_equal(strlen(h.id), strlen("exec_20261115_ab12cd34"));
	assert_true(str_has_prefix(h.id, "exec_2"));
	assert_int_equal(h.outcome.duration_us, 1500);
	assert_int_equal(h.outcome.cpu_us, 777);
	assert_int_equal(h.outcome.memory_peak_bytes, 4096);
	assert_int_equal(h.outcome.processes_peak, 3);
	assert_int_equal(h.outcome.layers_missing, LAYER_BIT(LAYER_LANDLOCK));
	assert_string_equal(h.outcome.engine, "fake");
	assert_int_equal(h.outcome.denials_count, 1);
	assert_string_equal(h.outcome.denials[0].what, "mount");
	/* The response comes first. */
	assert_false(fake_is_destroyed(box));
	loop_run_once(f->loop, false);
	assert_true(fake_is_destroyed(box));
	assert_int_equal(stats(f).running, 0);
	assert_int_equal(stats(f).boxes, 1);
	fake_gone(box);
	expect_idle(f);
	assert_int_equal(h.ends, 1);
}

static void uncounted_usage_comes_from_the_agent(void **state)
{
	struct fixture *f = *state;
	struct box_counters unknown;
	struct heard h = {0};
	struct exec_facts facts = {.status = 2,
	                           .cpu_user_us = 10,
	                           .cpu_system_us = 5,
	                           .max_rss_kib = 100,
	                           .read_bytes = 1,
	                           .write_bytes = 2};
	struct box *box;

	memset(&unknown, 0xff, sizeof(unknown));
	start(f, &h);
	box = run(f, 0);
	fake_set_counters(box, &unknown);
	fake_done(box, EXEC_ID, &facts);
	assert_int_equal(h.outcome.status, OUTCOME_FAILED);
	assert_int_equal(h.outcome.exit_code, 2);
	assert_int_equal(h.outcome.cpu_us, 15);
	assert_int_equal(h.outcome.memory_peak_bytes, 100 * 1024);
	assert_true(h.outcome.processes_peak == COUNTER_UNKNOWN);
	assert_int_equal(h.outcome.read_bytes, 1);
	assert_int_equal(h.outcome.write_bytes, 2);
	expect_idle(f);
}

static void output_is_capped_here_as_well(void **state)
{
	struct fixture *f = *state;
	struct exec_facts facts = {.stdout_bytes = 5000, .stderr_bytes = 8};
	struct heard h = {0};
	struct box *box;

	start(f, &h);
	box = run(f, 0);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "12345", 5);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "6789", 4);
	fake_output(box, EXEC_ID, OUTPUT_STDERR, "12345678", 8);
	fake_done(box, EXEC_ID, &facts);
	assert_string_equal(h.out, "12345678");
	assert_string_equal(h.streamed, "012345067811234567"
	                                "8");
	assert_true(h.outcome.out_truncated);
	assert_false(h.outcome.err_truncated);
	assert_int_equal(h.outcome.limit, OUTCOME_LIMIT_OUTPUT);
	assert_int_equal(h.outcome.status, OUTCOME_SUCCESS);
	assert_int_equal(h.outcome.stdout_bytes, 5000);
	expect_idle(f);
}

static void deadline_keeps_the_output_so_far(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	f->request.timeout_us = 20000;
	start(f, &h);
	box = run(f, 0);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "so far", 6);
	wait_for(f, &h.ends);
	assert_int_equal(h.outcome.status, OUTCOME_TIMEOUT);
	assert_int_equal(h.outcome.limit, OUTCOME_LIMIT_TIME);
	assert_false(h.outcome.exited);
	assert_string_equal(h.out, "so far");
	assert_false(h.outcome.out_truncated);
	assert_int_equal(h.outcome.stdout_bytes, 6);
	assert_true(h.outcome.duration_us >= 20000 && h.outcome.duration_us < 2000000);
	expect_idle(f);
}

static void clock_starts_with_the_program(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};

	f->request.timeout_us = 500000; /* on a busy machine the rest takes a while */
	start(f, &h);
	loop_pass(f->loop, 600000);
	assert_int_equal(h.ends + h.errors, 0);
	done(run(f, 0), 0);
	assert_int_equal(h.outcome.status, OUTCOME_SUCCESS);
	assert_true(h.outcome.start_us >= 500000);
	expect_idle(f);
}

/* A busy host: denials and traffic of the run would be missing. One that hangs is not awaited. */
static void the_end_waits_for_the_report_of_the_network(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};

	for (int hangs = 0; hangs < 2; hangs++) {
		uint64_t begin = clock_us();

		fake_hold_report(f->driver, true);
		start(f, &h);
		done(run(f, 0), 0);
		settle(f);
		assert_int_equal(h.ends, 0);
		fake_hold_report(f->driver, hangs);
		while (h.ends == 0)
			loop_run_once(f->loop, true);
		assert_int_equal(h.outcome.status, OUTCOME_SUCCESS);
		assert_true(!hangs || clock_us() - begin >= 400 * USEC_PER_MS); /* a lower bound */
		settle(f);
	}
}

static void a_run_that_waits_for_its_report_may_lose_its_box(void **state)
{
	const struct error err = {.code = ERR_AGENT_LOST, .msg = "gone"};
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	fake_hold_report(f->driver, true);
	start(f, &h);
	box = run(f, 0);
	done(box, 0);
	fake_lost(box, &err);
	settle(f);
	assert_int_equal(h.ends, 1);
	assert_int_equal(h.outcome.status, OUTCOME_SUCCESS);
}

static void lost_box_is_an_error_before_the_start_and_a_crash_after(void **state)
{
	const struct error gone = {.code = ERR_AGENT_LOST, .msg = "the agent is gone"};
	const struct box_counters oom = {.oom_kills = 1};
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	start(f, &h);
	fake_lost(box_at(f, 0), &gone);
	assert_int_equal(h.errors, 1);
	assert_int_equal(h.error.code, ERR_AGENT_LOST);
	expect_idle(f);

	start(f, &h);
	box = run(f, 0);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "x", 1);
	fake_lost(box, &gone);
	assert_int_equal(h.ends, 1);
	assert_int_equal(h.outcome.status, OUTCOME_CRASHED);
	assert_string_equal(h.out, "x");
	expect_idle(f);

	start(f, &h);
	box = run(f, 0);
	fake_set_counters(box, &oom);
	fake_lost(box, &gone);
	assert_int_equal(h.outcome.status, OUTCOME_FAILED);
	assert_int_equal(h.outcome.limit, OUTCOME_LIMIT_MEMORY);
	expect_idle(f);
	assert_int_equal(h.ends + h.errors, 1);
}

static void program_that_cannot_start_is_an_error(void **state)
{
	const struct error no = {.code = ERR_BOX_FAILED, .msg = "no such program"};
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	start(f, &h);
	box = box_at(f, 0);
	(void)fake_exec_last(box);
	fake_ready(box);
	fake_exec_failed(box, EXEC_ID, &no);
	assert_int_equal(h.errors, 1);
	assert_int_equal(h.error.code, ERR_BOX_FAILED);
	assert_int_equal(h.ends + h.starts, 0);
	expect_idle(f);
}

static void a_refused_box_is_reported_from_the_loop(void **state)
{
	const struct error no = {.code = ERR_UNAVAILABLE, .msg = "no more boxes"};
	struct fixture *f = *state;
	struct heard h = {0};

	fake_refuse_next(f->driver, &no);
	start(f, &h);
	settle(f);
	assert_int_equal(h.errors, 1);
	assert_int_equal(h.error.code, ERR_UNAVAILABLE);
	expect_idle(f);

	fake_refuse_next(f->driver, &no);
	start(f, &h);
	run_unwatch(h.watch); /* before it was reported */
	settle(f);
	assert_int_equal(h.errors, 0);
	expect_idle(f);
}

static void bad_request_begins_nothing(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};

	f->request.language = (char *)"cobol";
	assert_int_equal(try_start(f, &h), -1);
	assert_string_equal(f->err.field, "language");
	assert_null(h.exec);
	expect_idle(f);
	assert_int_equal(h.errors + h.ends, 0);
}

static void cancel_from_a_callback_is_safe(void **state)
{
	struct fixture *f = *state;
	struct heard h = {.cancel_on_output = true};
	struct box *box;

	start(f, &h);
	box = run(f, 0);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "x", 1);
	assert_true(fake_is_destroyed(box));
	expect_idle(f);
	assert_int_equal(h.ends + h.errors, 0);
}

static void cancel_at_the_start_is_safe(void **state)
{
	struct fixture *f = *state;
	struct heard h = {.cancel_on_start = true};

	start(f, &h);
	assert_true(fake_is_destroyed(run(f, 0)));
	expect_idle(f);
	assert_int_equal(h.starts, 1);
	assert_int_equal(h.ends + h.errors, 0);
}

static void cancel_by_the_record_is_answered(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};

	start(f, &h);
	(void)run(f, 0);
	assert_int_equal(run_record_cancel(h.exec->record, &f->err), 0);
	assert_int_equal(h.ends, 0); /* not inside the call */
	assert_int_equal(run_record_cancel(h.exec->record, &f->err), -1);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	settle(f);
	assert_int_equal(h.ends, 1);
	assert_int_equal(h.outcome.status, OUTCOME_CANCELLED);
	expect_idle(f);
}

static void a_cancelled_watch_receives_nothing_more(void **state)
{
	struct fixture *f = *state;
	struct heard h[3] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(h); i++)
		start(f, &h[i]);
	(void)run(f, 0);
	run_watch_cancel(h[2].watch); /* waiting */
	run_watch_cancel(h[1].watch); /* building */
	run_watch_cancel(h[0].watch); /* running */
	expect_idle(f);
	for (size_t i = 0; i < ARRAY_SIZE(h); i++)
		assert_int_equal(h[i].ends + h[i].errors, 0);
}

static void abort_waits_for_answer_and_box_in_any_order(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	fake_hold_gone(f->driver, true);
	start(f, &h);
	box = run(f, 0);
	run_abort(h.exec);
	fake_gone(box); /* before the response */
	assert_int_equal(h.ends, 0);
	settle(f);
	assert_int_equal(h.ends, 1);
	expect_idle(f);
}

static void report_may_be_as_large_as_allowed_and_no_larger(void **state)
{
	static char piece[64 * 1024 + 1];
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	memset(piece, 'j', sizeof(piece) - 1);
	start(f, &h);
	box = run(f, 0);
	for (int i = 0; i < 64; i++)
		fake_report(box, EXEC_ID, piece);
	done(box, 0);
	assert_int_equal(h.outcome.status, OUTCOME_SUCCESS);
	assert_int_equal(h.outcome.report.len, 4 * 1024 * 1024);
	expect_idle(f);

	start(f, &h);
	box = run(f, 0);
	for (int i = 0; i < 64; i++)
		fake_report(box, EXEC_ID, piece);
	fake_report(box, EXEC_ID, "j"); /* a healthy agent cuts it off before */
	assert_int_equal(h.outcome.status, OUTCOME_CRASHED);
	expect_idle(f);
}

static void request_can_be_freed(void **state)
{
	struct run_request r = {0};

	(void)state;
	run_request_done(&r);
	r.language = xstrdup("x");
	r.code = xstrdup("x");
	r.stdin_data = xstrdup("x");
	r.args = xcalloc(2, sizeof(char *));
	r.args[0] = xstrdup("x");
	r.files = xcalloc(1, sizeof(*r.files));
	r.files[0].name = xstrdup("x");
	r.files[0].data = xstrdup("x");
	r.files_count = 1;
	run_request_done(&r);
	assert_null(r.files);
	assert_int_equal(r.files_count, 0);
}

static void a_box_that_is_never_ready_times_out(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};

	run_service_free(f->service);
	f->service = run_service_new(&(struct run_service_config){.config = f->config,
	                                                          .driver = f->driver,
	                                                          .runners = f->runners,
	                                                          .loop = f->loop,
	                                                          .build_timeout_us = 5000});
	start(f, &h);
	wait_for(f, &h.errors);
	assert_int_equal(h.error.code, ERR_BOX_FAILED);
	assert_non_null(strstr(h.error.msg, "within 5 ms"));
	assert_int_equal(h.ends, 0);
	expect_idle(f);
}

static void plans_the_wire_rejects_are_reported(void **state)
{
	struct fixture *f = *state;
	size_t size = BOX_FILES_MAX + 1;
	cleanup_free char *large = calloc(1, size);
	struct run_request_file files[] = {{(char *)"large", large, size}};
	struct heard h = {0};

	assert_non_null(large);
	f->request.files = files;
	f->request.files_count = 1;
	start(f, &h);
	wait_for(f, &h.errors);
	assert_int_equal(h.error.code, ERR_TOO_LARGE);
	expect_idle(f);

	f->request.files_count = 0;
	f->request.stdin_data = large;
	f->request.stdin_len = BOX_STDIN_MAX + 1;
	start(f, &h);
	wait_for(f, &h.errors);
	assert_int_equal(h.error.code, ERR_TOO_LARGE);
	expect_idle(f);
}

static void stdin_may_stay_open(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	f->request.stdin_data = (char *)"a";
	f->request.stdin_len = 1;
	f->request.stdin_open = true;
	start(f, &h);
	box = run(f, 0);
	assert_true(fake_exec_last(box)->stdin_open);
	assert_int_equal(run_stdin(h.exec, "bc", 2, false, &f->err), 0);
	assert_string_equal(fake_exec_last(box)->stdin_data, "abc");
	assert_int_equal(run_stdin(h.exec, NULL, 0, true, &f->err), 0);
	assert_false(fake_exec_last(box)->stdin_open);
	assert_int_equal(run_stdin(h.exec, "d", 1, false, &f->err), -1);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	done(box, 0);
	expect_idle(f);
}

static void signals_and_input_need_a_program(void **state)
{
	struct fixture *f = *state;
	struct heard h[3] = {0};

	for (size_t i = 0; i < 3; i++)
		start(f, &h[i]);
	assert_int_equal(run_signal(h[0].exec, SIGINT, &f->err), -1); /* has not started */
	error_clear(&f->err);
	assert_int_equal(run_stdin(h[2].exec, "x", 1, true, &f->err), -1); /* waits */
	assert_int_equal(f->err.code, ERR_CONFLICT);
	error_clear(&f->err);
	(void)run(f, 0);
	assert_int_equal(run_signal(h[0].exec, SIGINT, &f->err), 0);
	assert_int_equal(fake_exec_last(box_at(f, 0))->signo, SIGINT);
	for (size_t i = 3; i-- > 0;)
		run_unwatch(h[i].watch);
	expect_idle(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(everything_is_handed_over_at_once),
		TEST(program_that_ends_is_answered_before_its_box_is_gone),
		TEST(uncounted_usage_comes_from_the_agent),
		TEST(output_is_capped_here_as_well),
		TEST(deadline_keeps_the_output_so_far),
		TEST(clock_starts_with_the_program),
		TEST(the_end_waits_for_the_report_of_the_network),
		TEST(a_run_that_waits_for_its_report_may_lose_its_box),
		TEST(lost_box_is_an_error_before_the_start_and_a_crash_after),
		TEST(program_that_cannot_start_is_an_error),
		TEST(a_refused_box_is_reported_from_the_loop),
		TEST(bad_request_begins_nothing),
		TEST(cancel_from_a_callback_is_safe),
		TEST(cancel_at_the_start_is_safe),
		TEST(cancel_by_the_record_is_answered),
		TEST(a_cancelled_watch_receives_nothing_more),
		TEST(abort_waits_for_answer_and_box_in_any_order),
		TEST(report_may_be_as_large_as_allowed_and_no_larger),
		TEST(request_can_be_freed),
		TEST(a_box_that_is_never_ready_times_out),
		TEST(plans_the_wire_rejects_are_reported),
		TEST(stdin_may_stay_open),
		TEST(signals_and_input_need_a_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
