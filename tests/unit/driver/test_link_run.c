/* SPDX-License-Identifier: Apache-2.0 */
#include "link_rig.h"

#include <signal.h>

static const char *const sample_args[] = {"-v", NULL};

static const struct exec_file source_file = {
	.path = "run2.py", .data = "x = 1", .len = 5, .mode = 0444, .source = true};

static struct run_plan sample_run(uint32_t id, uint32_t runner)
{
	return (struct run_plan){.id = id,
	                         .runner = runner,
	                         .source = "run2.py",
	                         .args = sample_args,
	                         .files = &source_file,
	                         .files_count = 1,
	                         .stdout_max = 100,
	                         .stderr_max = 10,
	                         .report_max = 50,
	                         .stdin_open = true};
}

/* An agent that sent HELLO and was given runner 1. */
static void hand_over_runner(struct link_rig *rig)
{
	struct exec_plan plan = sample_plan(1);
	struct msg_exec exec;
	struct frame frame;

	plan.keep = true;
	rig_open(rig);
	(void)rig_hear(rig, MSG_SETUP);
	rig_greet(rig);
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), 0);
	frame = rig_hear(rig, MSG_EXEC);
	assert_int_equal(msg_exec_decode(&frame, &exec), 0);
	assert_int_equal(exec.keep, 1);
}

static void hand_over_run(struct link_rig *rig, uint32_t id)
{
	struct run_plan run = sample_run(id, 1);

	assert_int_equal(link_run(rig->link, &run, &rig->err), 0);
	(void)rig_hear(rig, MSG_PUT_BEGIN);
	(void)rig_hear(rig, MSG_PUT_DATA);
	(void)rig_hear(rig, MSG_PUT_END);
}

/* Runner 1 runs 2. */
static void start_run(struct link_rig *rig)
{
	hand_over_runner(rig);
	hand_over_run(rig, 2);
	(void)rig_hear(rig, MSG_RUN);
	SAY(rig, started, 1, .pid = 2);
	SAY(rig, started, 2, .pid = 2);
	recorder_expect(&rig->rec, "started(1) started(2) ");
}

static void expect_breach(struct link_rig *rig)
{
	recorder_expect(&rig->rec, "lost(PROTOCOL) ");
}

static void expect_refused(struct link_rig *rig, const struct run_plan *run, enum error_code code)
{
	assert_int_equal(link_run(rig->link, run, &rig->err), -1);
	assert_int_equal(rig->err.code, code);
	error_clear(&rig->err);
}

static void a_run_is_code_and_the_name_of_its_runner(void **state)
{
	struct link_rig *rig = *state;
	struct msg_run run;
	struct frame frame;

	hand_over_runner(rig);
	hand_over_run(rig, 2); /* without waiting for the runner to start */
	frame = rig_hear(rig, MSG_RUN);
	assert_int_equal(frame.id, 2);
	assert_int_equal(msg_run_decode(&frame, &run), 0);
	assert_int_equal(run.runner, 1);
	assert_int_equal(run.source.len, strlen("run2.py"));
	assert_memory_equal(run.source.data, "run2.py", run.source.len);
	assert_int_equal(run.args.count, 1);
	assert_int_equal(run.stdout_max, 100);
	assert_int_equal(run.stderr_max, 10);
	assert_int_equal(run.report_max, 50);
	assert_int_equal(run.drain_ms, LINK_DRAIN_MS);
	assert_int_equal(run.stdin_open, 1);
	assert_int_equal(link_stdin(rig->link, 2, "in", 2, &rig->err), 0);
	(void)rig_hear(rig, MSG_STDIN);
	assert_int_equal(link_signal(rig->link, 2, SIGINT, &rig->err), 0);
	(void)rig_hear(rig, MSG_SIGNAL);
	rig_hear_nothing(rig);
}

static void a_runner_runs_one_after_the_other(void **state)
{
	struct link_rig *rig = *state;

	start_run(rig);
	SAY(rig, output, 2, .stream = WIRE_STDOUT, .data = wire_str("hi"));
	SAY(rig, report, 2, .data = wire_str("{}"));
	SAY(rig, denial, 1, .kind = WIRE_DENIAL_SYSCALL, .number = 0, .count = 1);
	SAY(rig, done, 2, .status = 3, .stdout_bytes = 2);
	recorder_expect(&rig->rec, "out(2,hi) report(2,{}) denial(1,read,1) done(2,exit 3) ");
	assert_false(rig->rec.facts.runner_lost);
	hand_over_run(rig, 3);
	(void)rig_hear(rig, MSG_RUN);
	SAY(rig, started, 3, .pid = 2);
	SAY(rig, done, 3, .signalled = 1, .status = 11, .runner_lost = 1);
	assert_true(rig->rec.facts.runner_lost);
	SAY(rig, done, 1, .signalled = 1, .status = 11);
	recorder_expect(&rig->rec, "started(3) done(3,signal 11) done(1,signal 11) ");
}

static void a_runner_may_end_at_any_time(void **state)
{
	struct link_rig *rig = *state;
	struct run_plan run = sample_run(3, 1);

	start_run(rig);
	SAY(rig, done, 2, .status = 0);
	SAY(rig, done, 1, .status = 0);
	recorder_expect(&rig->rec, "done(2,exit 0) done(1,exit 0) ");
	expect_refused(rig, &run, ERR_CONFLICT);
}

static void a_run_that_crosses_the_end_of_its_runner_fails(void **state)
{
	struct link_rig *rig = *state;

	start_run(rig);
	SAY(rig, done, 2, .status = 0);
	hand_over_run(rig, 3);
	SAY(rig, done, 1, .status = 0);
	SAY(rig, failed, 3, .code = ERR_CONFLICT, .text = wire_str("no runner"));
	recorder_expect(&rig->rec, "done(2,exit 0) done(1,exit 0) failed(3,CONFLICT) ");
}

static void runs_need_a_runner(void **state)
{
	struct link_rig *rig = *state;
	struct run_plan run = sample_run(2, 1);

	rig_start(rig, 1); /* a program that is not resident */
	expect_refused(rig, &run, ERR_CONFLICT);
	run.runner = 7;
	expect_refused(rig, &run, ERR_CONFLICT);
	rig_hear_nothing(rig);
	link_close(rig->link);
	expect_refused(rig, &run, ERR_AGENT_LOST);
}

static void runs_have_ids_of_their_own(void **state)
{
	struct link_rig *rig = *state;
	struct run_plan run = sample_run(1, 1);

	start_run(rig);
	expect_refused(rig, &run, ERR_CONFLICT);
	run.id = 2;
	expect_refused(rig, &run, ERR_CONFLICT);
	rig_hear_nothing(rig);
}

static void runners_and_runs_are_counted_together(void **state)
{
	struct link_rig *rig = *state;
	struct run_plan run = sample_run(BOX_EXECS_MAX + 1, 1);

	hand_over_runner(rig);
	for (uint32_t id = 2; id <= BOX_EXECS_MAX; id++) {
		run.id = id;
		assert_int_equal(link_run(rig->link, &run, &rig->err), 0);
	}
	run.id = BOX_EXECS_MAX + 1;
	expect_refused(rig, &run, ERR_BUSY);
}

static void a_runner_has_no_output_of_its_own(void **state)
{
	struct link_rig *rig = *state;

	start_run(rig);
	SAY(rig, output, 1, .stream = WIRE_STDOUT, .data = wire_str("x"));
	expect_breach(rig);
}

static void a_runner_has_nothing_to_report_itself(void **state)
{
	struct link_rig *rig = *state;

	start_run(rig);
	SAY(rig, report, 1, .data = wire_str("x"));
	expect_breach(rig);
}

static void a_runner_takes_no_stdin(void **state)
{
	struct link_rig *rig = *state;

	start_run(rig);
	assert_int_equal(link_stdin(rig->link, 1, "x", 1, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_CONFLICT);
}

static void a_run_outlives_no_runner(void **state)
{
	struct link_rig *rig = *state;

	start_run(rig);
	SAY(rig, done, 1, .status = 0);
	expect_breach(rig);
}

static void a_run_does_not_start_without_its_runner(void **state)
{
	struct link_rig *rig = *state;

	hand_over_runner(rig);
	hand_over_run(rig, 2);
	SAY(rig, started, 1, .pid = 2);
	SAY(rig, done, 1, .status = 0);
	recorder_expect(&rig->rec, "started(1) done(1,exit 0) ");
	SAY(rig, started, 2, .pid = 2);
	expect_breach(rig);
}

static void more_output_than_a_run_was_granted(void **state)
{
	struct link_rig *rig = *state;

	start_run(rig);
	SAY(rig, output, 2, .stream = WIRE_STDERR, .data = wire_str("01234567890"));
	expect_breach(rig);
}

static void a_runner_cannot_lose_itself(void **state)
{
	struct link_rig *rig = *state;

	start_run(rig);
	SAY(rig, done, 2, .status = 0);
	buf_reset(&rig->rec.text);
	SAY(rig, done, 1, .status = 0, .runner_lost = 1);
	expect_breach(rig);
}

static void a_second_end_of_a_run(void **state)
{
	struct link_rig *rig = *state;

	start_run(rig);
	SAY(rig, done, 2, .status = 0);
	buf_reset(&rig->rec.text);
	SAY(rig, done, 2, .status = 0);
	expect_breach(rig);
}

/* 1 was prepared, and has its code. */
static void give_prepared(struct link_rig *rig)
{
	static const char *const words[] = {"/bin/runner", NULL};
	const struct prepare_plan plan = {.id = 1, .argv = words, .env = words, .report = true};
	struct run_plan run = sample_run(1, 1);

	rig_open(rig);
	(void)rig_hear(rig, MSG_SETUP);
	rig_greet(rig);
	assert_int_equal(link_prepare(rig->link, &plan, &rig->err), 0);
	SAY(rig, ready, 1, .unused = 0);
	assert_int_equal(link_run(rig->link, &run, &rig->err), 0);
	SAY(rig, started, 1, .pid = 2);
	buf_reset(&rig->rec.text);
}

static void a_prepared_program_may_leave_its_code_unread(void **state)
{
	struct link_rig *rig = *state;

	give_prepared(rig);
	SAY(rig, done, 1, .signalled = 1, .status = 9, .runner_lost = 2);
	recorder_expect(&rig->rec, "done(1,signal 9) ");
	assert_true(rig->rec.facts.untaken);
	assert_false(rig->rec.facts.runner_lost);
}

static void a_prepared_program_that_read_its_code_ends_as_a_program(void **state)
{
	struct link_rig *rig = *state;

	give_prepared(rig);
	SAY(rig, done, 1, .signalled = 1, .status = 9);
	assert_false(rig->rec.facts.untaken);
}

static void a_run_may_end_unread(void **state)
{
	struct link_rig *rig = *state;

	start_run(rig);
	SAY(rig, done, 2, .signalled = 1, .status = 9, .runner_lost = 2);
	assert_true(rig->rec.facts.untaken && rig->rec.facts.runner_lost);
}

static void a_prepared_program_has_no_runner_to_lose(void **state)
{
	struct link_rig *rig = *state;

	give_prepared(rig);
	SAY(rig, done, 1, .signalled = 1, .status = 9, .runner_lost = 1);
	expect_breach(rig);
}

static void code_that_has_written_counts_as_started(void **state)
{
	struct link_rig *rig = *state;

	give_prepared(rig);
	SAY(rig, output, 1, .stream = WIRE_STDOUT, .data = wire_str("x"));
	buf_reset(&rig->rec.text);
	SAY(rig, done, 1, .status = 0, .stdout_bytes = 1, .runner_lost = 2);
	expect_breach(rig);
}

static void code_that_has_reported_counts_as_started(void **state)
{
	struct link_rig *rig = *state;

	give_prepared(rig);
	SAY(rig, report, 1, .data = wire_str("{}"));
	buf_reset(&rig->rec.text);
	SAY(rig, done, 1, .status = 0, .runner_lost = 2);
	expect_breach(rig);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_run_is_code_and_the_name_of_its_runner),
		TEST(a_runner_runs_one_after_the_other),
		TEST(a_runner_may_end_at_any_time),
		TEST(a_run_that_crosses_the_end_of_its_runner_fails),
		TEST(runs_need_a_runner),
		TEST(runs_have_ids_of_their_own),
		TEST(runners_and_runs_are_counted_together),
		TEST(a_runner_has_no_output_of_its_own),
		TEST(a_runner_has_nothing_to_report_itself),
		TEST(a_runner_takes_no_stdin),
		TEST(a_run_outlives_no_runner),
		TEST(a_run_does_not_start_without_its_runner),
		TEST(more_output_than_a_run_was_granted),
		TEST(a_runner_cannot_lose_itself),
		TEST(a_second_end_of_a_run),
		TEST(a_prepared_program_may_leave_its_code_unread),
		TEST(a_prepared_program_that_read_its_code_ends_as_a_program),
		TEST(a_run_may_end_unread),
		TEST(a_prepared_program_has_no_runner_to_lose),
		TEST(code_that_has_written_counts_as_started),
		TEST(code_that_has_reported_counts_as_started),
	};

	return cmocka_run_group_tests_name("driver/link_run", tests, NULL, NULL);
}
