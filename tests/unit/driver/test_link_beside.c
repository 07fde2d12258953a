/* SPDX-License-Identifier: Apache-2.0 */
#include "link_rig.h"

/* Programs beside the execution, and terminals. */

static void expect_breach(struct link_rig *rig)
{
	recorder_expect(&rig->rec, "lost(PROTOCOL) ");
}

static void give_beside(struct link_rig *rig, uint32_t id, uint16_t rows)
{
	struct exec_plan plan = sample_plan(id);

	plan.beside = true;
	plan.stdin_open = true;
	plan.rows = rows;
	plan.cols = rows;
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), 0);
}

/* 1 is an execution, 2 is beside it, 3 beside it on a terminal. */
static void start_beside(struct link_rig *rig)
{
	struct msg_beside beside;
	struct frame frame;

	rig_start(rig, 1);
	give_beside(rig, 2, 0);
	frame = rig_hear(rig, MSG_BESIDE);
	assert_int_equal(frame.id, 2);
	assert_int_equal(msg_beside_decode(&frame, &beside), 0);
	assert_int_equal(beside.stdout_max, 100);
	assert_int_equal(beside.rows, 0);
	give_beside(rig, 3, 24);
	frame = rig_hear(rig, MSG_BESIDE);
	assert_int_equal(msg_beside_decode(&frame, &beside), 0);
	assert_int_equal(beside.stdout_max, WIRE_TERMINAL_WINDOW);
	assert_int_equal(beside.rows, 24);
	SAY(rig, started, 3, .pid = 4);
	SAY(rig, started, 2, .pid = 3);
	recorder_expect(&rig->rec, "started(3) started(2) ");
}

/* @len bytes of the terminal, in frames. */
static void show(struct link_rig *rig, uint32_t id, size_t len)
{
	static const char zeros[32768];

	for (size_t n; len > 0; len -= n) {
		n = len < sizeof(zeros) ? len : sizeof(zeros);
		SAY(rig, output, id, .stream = WIRE_STDOUT, .data = {zeros, (uint32_t)n});
	}
}

/* Without what it showed, which the recorder would keep. */
static void ignore_output(void *ctx, uint32_t id, enum output_stream stream, const char *data,
                          size_t len)
{
	(void)ctx;
	(void)id;
	(void)stream;
	(void)data;
	(void)len;
}

static void programs_beside_an_execution_end_in_any_order(void **state)
{
	struct link_rig *rig = *state;

	start_beside(rig);
	SAY(rig, output, 3, .stream = WIRE_STDOUT, .data = wire_str("c"));
	SAY(rig, output, 1, .stream = WIRE_STDOUT, .data = wire_str("a"));
	SAY(rig, output, 2, .stream = WIRE_STDERR, .data = wire_str("b"));
	SAY(rig, done, 1, .stdout_bytes = 1);
	SAY(rig, done, 3, .stdout_bytes = 1);
	SAY(rig, denial, 2, .kind = WIRE_DENIAL_SYSCALL, .number = 0, .count = 1);
	SAY(rig, done, 2, .stderr_bytes = 1);
	recorder_expect(&rig->rec, "out(3,c) out(1,a) err(2,b) done(1,exit 0) done(3,exit 0) "
	                           "denial(2,read,1) done(2,exit 0) ");
}

static void a_program_beside_has_the_grant_of_its_plan(void **state)
{
	struct link_rig *rig = *state;

	start_beside(rig);
	rig->box.on_output = ignore_output;
	show(rig, 2, 100);
	recorder_expect(&rig->rec, "");
	show(rig, 2, 1);
	expect_breach(rig);
}

static void a_program_beside_has_no_report(void **state)
{
	struct link_rig *rig = *state;

	start_beside(rig);
	SAY(rig, report, 2, .data = wire_str("{}"));
	expect_breach(rig);
}

static void a_program_beside_loses_no_runner(void **state)
{
	struct link_rig *rig = *state;

	start_beside(rig);
	SAY(rig, done, 2, .runner_lost = 1);
	expect_breach(rig);
}

static void a_terminal_has_no_second_stream(void **state)
{
	struct link_rig *rig = *state;

	start_beside(rig);
	SAY(rig, output, 3, .stream = WIRE_STDERR, .data = wire_str("x"));
	expect_breach(rig);
}

/* The agent sends a window, and what the terminal held at the end. */
static void a_terminal_shows_at_most_two_windows_unasked(void **state)
{
	struct link_rig *rig = *state;

	start_beside(rig);
	rig->box.on_output = ignore_output;
	show(rig, 3, (size_t)2 * WIRE_TERMINAL_WINDOW);
	recorder_expect(&rig->rec, "");
	show(rig, 3, 1);
	expect_breach(rig);
}

static void what_was_consumed_may_follow_and_no_more(void **state)
{
	struct link_rig *rig = *state;
	struct msg_output_grant grant;
	struct frame frame;

	start_beside(rig);
	rig->box.on_output = ignore_output;
	show(rig, 3, (size_t)2 * WIRE_TERMINAL_WINDOW);
	link_take_output(rig->link, 3, 1000);
	frame = rig_hear(rig, MSG_OUTPUT_GRANT);
	assert_int_equal(frame.id, 3);
	assert_int_equal(msg_output_grant_decode(&frame, &grant), 0);
	assert_int_equal(grant.bytes, 1000);
	show(rig, 3, 1000);
	recorder_expect(&rig->rec, "");
	show(rig, 3, 1);
	expect_breach(rig);
}

static void output_is_granted_to_terminals_only(void **state)
{
	struct link_rig *rig = *state;

	start_beside(rig);
	for (uint32_t id = 1; id <= 2; id++)
		link_take_output(rig->link, id, 1000);
	link_take_output(rig->link, 7, 1000);
	link_take_output(rig->link, 3, 0);
	SAY(rig, done, 3, .status = 0);
	link_take_output(rig->link, 3, 1000);
	rig_hear_nothing(rig);
	buf_reset(&rig->rec.text);
	rig->box.on_output = ignore_output;
	show(rig, 1, 101);
	expect_breach(rig);
}

static void only_terminals_have_a_size(void **state)
{
	struct link_rig *rig = *state;
	struct msg_resize size;
	struct frame frame;

	start_beside(rig);
	assert_int_equal(link_resize(rig->link, 3, 50, 132, &rig->err), 0);
	frame = rig_hear(rig, MSG_RESIZE);
	assert_int_equal(msg_resize_decode(&frame, &size), 0);
	assert_int_equal(size.rows, 50);
	assert_int_equal(size.cols, 132);
	assert_int_equal(link_resize(rig->link, 2, 50, 132, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_CONFLICT);
	error_clear(&rig->err);
	assert_int_equal(link_resize(rig->link, 7, 50, 132, &rig->err), 0); /* has ended */
	rig_hear_nothing(rig);
}

/* The link is not open: nothing is read. */
static void sizes_do_not_fill_the_queue(void **state)
{
	struct link_rig *rig = *state;
	int r = 0;

	give_beside(rig, 3, 24);
	while (r == 0)
		r = link_resize(rig->link, 3, 50, 132, &rig->err);
	assert_int_equal(rig->err.code, ERR_BUSY);
	assert_true(link_output(rig->link)->len <= LINK_RESIZE_MAX + FRAME_MAX_LEN);
	error_clear(&rig->err);
	assert_int_equal(link_signal(rig->link, 3, SIGKILL, &rig->err), 0);
}

static void nothing_comes_after_the_end_of_a_terminal(void **state)
{
	struct link_rig *rig = *state;

	start_beside(rig);
	SAY(rig, done, 3, .status = 0);
	buf_reset(&rig->rec.text);
	show(rig, 3, 1);
	expect_breach(rig);
}

static void an_end_counts_at_least_what_was_shown(void **state)
{
	struct link_rig *rig = *state;

	start_beside(rig);
	SAY(rig, output, 3, .stream = WIRE_STDOUT, .data = wire_str("xyz"));
	buf_reset(&rig->rec.text);
	SAY(rig, done, 3, .stdout_bytes = 2);
	expect_breach(rig);
}

static void output_of_an_unknown_program(void **state)
{
	struct link_rig *rig = *state;

	start_beside(rig);
	show(rig, 4, 1);
	expect_breach(rig);
}

static void output_of_a_terminal_before_its_start(void **state)
{
	struct link_rig *rig = *state;

	start_beside(rig);
	give_beside(rig, 4, 24);
	(void)rig_hear(rig, MSG_BESIDE);
	show(rig, 4, 1);
	expect_breach(rig);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(programs_beside_an_execution_end_in_any_order),
		TEST(a_program_beside_has_the_grant_of_its_plan),
		TEST(a_program_beside_has_no_report),
		TEST(a_program_beside_loses_no_runner),
		TEST(a_terminal_has_no_second_stream),
		TEST(a_terminal_shows_at_most_two_windows_unasked),
		TEST(what_was_consumed_may_follow_and_no_more),
		TEST(output_is_granted_to_terminals_only),
		TEST(only_terminals_have_a_size),
		TEST(sizes_do_not_fill_the_queue),
		TEST(nothing_comes_after_the_end_of_a_terminal),
		TEST(an_end_counts_at_least_what_was_shown),
		TEST(output_of_an_unknown_program),
		TEST(output_of_a_terminal_before_its_start),
	};

	return cmocka_run_group_tests_name("driver/link_beside", tests, NULL, NULL);
}
