/* SPDX-License-Identifier: Apache-2.0 */
#include "link_rig.h"

#include <signal.h>

static void setup_goes_first_then_what_was_handed_over_before(void **state)
{
	struct link_rig *rig = *state;
	const struct exec_file files[] = {
		{.path = "main.py", .data = "print(1)", .len = 8, .mode = 0444, .source = true},
		{.path = "in/data", .data = "", .len = 0, .mode = 0600},
	};
	struct exec_plan plan = sample_plan(7);
	struct msg_setup setup;
	struct msg_put_begin begin;
	struct msg_put_data data;
	struct msg_exec exec;
	struct frame frame;

	plan.files = files;
	plan.files_count = 2;
	plan.cwd = "in";
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), 0);
	rig_open(rig); /* no HELLO was needed for any of this */
	frame = rig_hear(rig, MSG_SETUP);
	assert_int_equal(msg_setup_decode(&frame, &setup), 0);
	assert_int_equal(frame.id, 0);
	assert_int_equal(setup.uid, 1000);
	frame = rig_hear(rig, MSG_PUT_BEGIN);
	assert_int_equal(msg_put_begin_decode(&frame, &begin), 0);
	assert_int_equal(frame.id, 7);
	assert_int_equal(begin.place, WIRE_PLACE_RUN);
	assert_int_equal(begin.mode, 0444);
	assert_memory_equal(begin.path.data, "main.py", begin.path.len);
	frame = rig_hear(rig, MSG_PUT_DATA);
	assert_int_equal(msg_put_data_decode(&frame, &data), 0);
	assert_int_equal(data.data.len, 8);
	assert_memory_equal(data.data.data, "print(1)", 8);
	(void)rig_hear(rig, MSG_PUT_END);
	frame = rig_hear(rig, MSG_PUT_BEGIN);
	assert_int_equal(msg_put_begin_decode(&frame, &begin), 0);
	assert_int_equal(begin.place, WIRE_PLACE_WORKSPACE);
	(void)rig_hear(rig, MSG_PUT_END); /* an empty file has no data */
	frame = rig_hear(rig, MSG_EXEC);
	assert_int_equal(msg_exec_decode(&frame, &exec), 0);
	assert_int_equal(frame.id, 7);
	assert_int_equal(exec.argv.count, 3);
	assert_int_equal(exec.env.count, 1);
	assert_int_equal(exec.cwd.len, 2);
	assert_int_equal(exec.stdout_max, 100);
	assert_int_equal(exec.stderr_max, 10);
	assert_int_equal(exec.report_max, 50);
	assert_int_equal(exec.stdin_open, 0);
	assert_int_equal(exec.drain_ms, LINK_DRAIN_MS);
	rig_hear_nothing(rig);
}

static void a_long_file_goes_in_pieces(void **state)
{
	struct link_rig *rig = *state;
	const size_t len = 3 * FRAME_CHUNK + 1;
	cleanup_free char *text = xmalloc(len);
	struct exec_file file = {.path = "a", .data = text, .len = len, .mode = 0644};
	struct exec_plan plan = sample_plan(1);
	size_t at = 0;

	for (size_t i = 0; i < len; i++)
		text[i] = (char)(i % 251);
	plan.files = &file;
	plan.files_count = 1;
	rig_open(rig);
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), 0);
	(void)rig_hear(rig, MSG_SETUP);
	(void)rig_hear(rig, MSG_PUT_BEGIN);
	while (at < len) {
		struct frame frame = rig_hear(rig, MSG_PUT_DATA);
		struct msg_put_data data;

		assert_int_equal(msg_put_data_decode(&frame, &data), 0);
		assert_true(data.data.len <= FRAME_CHUNK);
		assert_memory_equal(data.data.data, text + at, data.data.len);
		at += data.data.len;
	}
	(void)rig_hear(rig, MSG_PUT_END);
	(void)rig_hear(rig, MSG_EXEC);
}

static void a_program_that_cannot_be_sent_leaves_nothing_behind(void **state)
{
	struct link_rig *rig = *state;
	cleanup_free char *huge = xmalloc(FRAME_MAX_PAYLOAD + 1);
	const char *const argv[] = {"/bin/sh", huge, NULL};
	struct exec_file file = {.path = "a", .data = "x", .len = 1, .mode = 0644};
	struct exec_plan plan = sample_plan(1);

	memset(huge, 'x', FRAME_MAX_PAYLOAD);
	huge[FRAME_MAX_PAYLOAD] = '\0';
	plan.argv = argv;
	plan.files = &file;
	plan.files_count = 1;
	rig_open(rig);
	(void)rig_hear(rig, MSG_SETUP);
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_TOO_LARGE);
	rig_hear_nothing(rig);
	rig_hand_over(rig, 1); /* the id is still free */
}

static void too_many_arguments_are_refused(void **state)
{
	struct link_rig *rig = *state;
	const char *argv[WIRE_STRS_MAX + 2] = {"/bin/sh"};
	struct exec_plan plan = sample_plan(1);

	for (size_t i = 1; i <= WIRE_STRS_MAX; i++)
		argv[i] = "x";
	plan.argv = argv;
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), -1);
	assert_true(rig->err.code == ERR_TOO_LARGE || rig->err.code == ERR_INVALID);
	assert_int_equal(link_output(rig->link)->len, 0);
	error_clear(&rig->err);
	argv[WIRE_STRS_MAX] = NULL;
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), 0);
}

static void a_path_that_fits_no_frame_is_refused(void **state)
{
	struct link_rig *rig = *state;
	cleanup_free char *path = xmalloc(FRAME_MAX_PAYLOAD + 1);
	struct exec_file file = {.path = path, .data = "x", .len = 1, .mode = 0644};
	struct exec_plan plan = sample_plan(1);

	memset(path, 'x', FRAME_MAX_PAYLOAD);
	path[FRAME_MAX_PAYLOAD] = '\0';
	plan.files = &file;
	plan.files_count = 1;
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_INVALID);
	assert_int_equal(link_output(rig->link)->len, 0);
}

static void a_signal_that_waits_is_not_sent_again(void **state)
{
	struct link_rig *rig = *state;
	struct exec_plan plan = sample_plan(1);
	size_t once;

	assert_int_equal(link_exec(rig->link, &plan, &rig->err), 0);
	assert_int_equal(link_signal(rig->link, 1, SIGINT, &rig->err), 0);
	once = link_output(rig->link)->len;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(link_signal(rig->link, 1, SIGINT, &rig->err), 0);
	assert_int_equal(link_output(rig->link)->len, once);
	assert_int_equal(link_signal(rig->link, 1, SIGKILL, &rig->err), 0);
	assert_true(link_output(rig->link)->len > once);
}

static void the_queue_is_bounded(void **state)
{
	struct link_rig *rig = *state;
	cleanup_free char *text = xcalloc(1, BOX_FILES_MAX);
	struct exec_file file = {.path = "a", .data = text, .len = BOX_FILES_MAX, .mode = 0644};
	struct exec_plan plan = sample_plan(1);
	size_t before;

	plan.files = &file;
	plan.files_count = 1;
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), 0);
	before = link_output(rig->link)->len;
	plan.id = 2;
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_TOO_LARGE);
	assert_int_equal(link_output(rig->link)->len, before);
	rig_open(rig); /* and it is sent completely after SETUP */
	(void)rig_hear(rig, MSG_SETUP);
	(void)rig_hear(rig, MSG_PUT_BEGIN);
}

static void ids_are_unique_and_programs_counted(void **state)
{
	struct link_rig *rig = *state;
	struct exec_plan plan = sample_plan(1);

	for (uint32_t id = 1; id <= BOX_EXECS_MAX; id++) {
		plan.id = id;
		assert_int_equal(link_exec(rig->link, &plan, &rig->err), 0);
	}
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_CONFLICT);
	error_clear(&rig->err);
	plan.id = BOX_EXECS_MAX + 1;
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_BUSY);
}

static size_t hear_stdin(struct link_rig *rig, size_t want)
{
	size_t got = 0;

	while (got < want) {
		struct frame frame = rig_hear(rig, MSG_STDIN);
		struct msg_stdin_data data;

		assert_int_equal(msg_stdin_data_decode(&frame, &data), 0);
		assert_true(data.data.len > 0);
		got += data.data.len;
	}
	return got;
}

static void stdin_keeps_to_the_window(void **state)
{
	struct link_rig *rig = *state;
	const size_t len = WIRE_STDIN_WINDOW + 1000;
	cleanup_free char *bytes = xcalloc(1, len);

	rig_start(rig, 1);
	assert_int_equal(link_stdin(rig->link, 1, bytes, len, &rig->err), 0);
	assert_int_equal(link_stdin_end(rig->link, 1, &rig->err), 0);
	assert_int_equal(hear_stdin(rig, WIRE_STDIN_WINDOW), WIRE_STDIN_WINDOW);
	rig_hear_nothing(rig);
	SAY(rig, stdin_room, 1, .bytes = 600);
	assert_int_equal(hear_stdin(rig, 600), 600);
	rig_hear_nothing(rig); /* the end waits for the last byte */
	SAY(rig, stdin_room, 1, .bytes = 600);
	assert_int_equal(hear_stdin(rig, 400), 400);
	(void)rig_hear(rig, MSG_STDIN_END);
	rig_hear_nothing(rig);
}

static void stdin_that_fits_goes_at_once_with_its_end(void **state)
{
	struct link_rig *rig = *state;

	rig_hand_over(rig, 1); /* not even started */
	assert_int_equal(link_stdin(rig->link, 1, "abc", 3, &rig->err), 0);
	assert_int_equal(link_stdin(rig->link, 1, "", 0, &rig->err), 0);
	assert_int_equal(link_stdin_end(rig->link, 1, &rig->err), 0);
	assert_int_equal(hear_stdin(rig, 3), 3);
	(void)rig_hear(rig, MSG_STDIN_END);
	assert_int_equal(link_stdin(rig->link, 1, "d", 1, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_CONFLICT);
	error_clear(&rig->err);
	assert_int_equal(link_stdin_end(rig->link, 1, &rig->err), -1);
	rig_hear_nothing(rig);
}

static void stdin_that_waits_is_bounded(void **state)
{
	struct link_rig *rig = *state;
	cleanup_free char *bytes = xcalloc(1, BOX_STDIN_MAX);

	rig_start(rig, 1);
	assert_int_equal(link_stdin(rig->link, 1, bytes, BOX_STDIN_MAX, &rig->err), 0);
	assert_int_equal(link_stdin(rig->link, 1, bytes, WIRE_STDIN_WINDOW + 1, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_TOO_LARGE);
}

static void a_program_without_stdin_gets_none(void **state)
{
	struct link_rig *rig = *state;
	struct exec_plan plan = sample_plan(1);

	assert_int_equal(link_exec(rig->link, &plan, &rig->err), 0);
	assert_int_equal(link_stdin(rig->link, 1, "x", 1, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_CONFLICT);
}

static void commands_for_an_ended_execution_are_dropped(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, done, 1, .status = 0);
	assert_int_equal(link_stdin(rig->link, 1, "x", 1, &rig->err), 0);
	assert_int_equal(link_stdin_end(rig->link, 1, &rig->err), 0);
	assert_int_equal(link_signal(rig->link, 1, SIGINT, &rig->err), 0);
	rig_hear_nothing(rig);
}

static void signals_are_passed_on(void **state)
{
	struct link_rig *rig = *state;
	struct msg_signal msg;
	struct frame frame;

	rig_start(rig, 1);
	assert_int_equal(link_signal(rig->link, 1, SIGTERM, &rig->err), 0);
	frame = rig_hear(rig, MSG_SIGNAL);
	assert_int_equal(msg_signal_decode(&frame, &msg), 0);
	assert_int_equal(frame.id, 1);
	assert_int_equal(msg.signo, SIGTERM);
}

static void the_end_of_the_stream_is_the_end_of_the_agent(void **state)
{
	struct link_rig *rig = *state;
	struct exec_plan plan = sample_plan(2);

	rig_start(rig, 1);
	/* Half a frame is no violation: a killed agent stops anywhere. */
	rig_say_bytes(rig, "\x20\0\0\0\x01", 5);
	recorder_expect(&rig->rec, "");
	rig->agent = fd_close(rig->agent);
	rig_run(rig);
	recorder_expect(&rig->rec, "lost(AGENT_LOST) ");
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_AGENT_LOST);
	error_clear(&rig->err);
	assert_int_equal(link_signal(rig->link, 1, SIGTERM, &rig->err), -1);
	error_clear(&rig->err);
	assert_int_equal(link_stdin(rig->link, 1, "x", 1, &rig->err), -1);
}

static void writing_to_a_dead_agent_is_reported_after_its_last_messages(void **state)
{
	struct link_rig *rig = *state;
	struct exec_plan plan = sample_plan(2);
	cleanup_buf struct buf b = BUF_INIT(1000);
	struct msg_done done = {.status = 5};

	rig_start(rig, 1);
	assert_int_equal(msg_done_encode(&b, 1, &done), 0);
	assert_int_equal(fd_write_all(rig->agent, b.data, b.len), 0);
	rig->agent = fd_close(rig->agent);
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), 0);
	recorder_expect(&rig->rec, "");
	rig_run(rig);
	recorder_expect(&rig->rec, "done(1,exit 5) lost(AGENT_LOST) ");
}

static void drain_reads_the_last_messages_of_a_dead_agent(void **state)
{
	struct link_rig *rig = *state;
	cleanup_buf struct buf b = BUF_INIT(1000);
	struct msg_done done = {.status = 5};

	rig_start(rig, 1);
	assert_int_equal(msg_done_encode(&b, 1, &done), 0);
	assert_int_equal(fd_write_all(rig->agent, b.data, b.len), 0);
	link_drain(rig->link); /* its end is still open: another process may hold it */
	recorder_expect(&rig->rec, "done(1,exit 5) lost(AGENT_LOST) ");
	link_drain(rig->link);
	rig_run(rig);
	recorder_expect(&rig->rec, "");
}

static void nothing_follows_a_close(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	link_close(rig->link);
	link_close(rig->link);
	rig->agent = fd_close(rig->agent);
	rig_run(rig);
	link_drain(rig->link);
	recorder_expect(&rig->rec, "");
}

static void a_callback_may_close_the_link(void **state)
{
	struct link_rig *rig = *state;
	cleanup_buf struct buf b = BUF_INIT(1000);
	struct msg_hello hello = {.version = WIRE_VERSION};

	rig_open(rig);
	rig->close_on_hello = true;
	/* The bytes after it are ignored, violation or not. */
	assert_int_equal(msg_hello_encode(&b, 0, &hello), 0);
	assert_int_equal(msg_hello_encode(&b, 0, &hello), 0);
	rig_say_bytes(rig, b.data, b.len);
	recorder_expect(&rig->rec, "hello ");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(setup_goes_first_then_what_was_handed_over_before),
		TEST(a_long_file_goes_in_pieces),
		TEST(a_program_that_cannot_be_sent_leaves_nothing_behind),
		TEST(too_many_arguments_are_refused),
		TEST(a_path_that_fits_no_frame_is_refused),
		TEST(a_signal_that_waits_is_not_sent_again),
		TEST(the_queue_is_bounded),
		TEST(ids_are_unique_and_programs_counted),
		TEST(stdin_keeps_to_the_window),
		TEST(stdin_that_fits_goes_at_once_with_its_end),
		TEST(stdin_that_waits_is_bounded),
		TEST(a_program_without_stdin_gets_none),
		TEST(commands_for_an_ended_execution_are_dropped),
		TEST(signals_are_passed_on),
		TEST(the_end_of_the_stream_is_the_end_of_the_agent),
		TEST(writing_to_a_dead_agent_is_reported_after_its_last_messages),
		TEST(drain_reads_the_last_messages_of_a_dead_agent),
		TEST(nothing_follows_a_close),
		TEST(a_callback_may_close_the_link),
	};

	return cmocka_run_group_tests_name("driver/link", tests, NULL, NULL);
}
