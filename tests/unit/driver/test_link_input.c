/* SPDX-License-Identifier: Apache-2.0 */
#include "link_rig.h"

#include "base/log.h"
#include <sys/syscall.h>

/* A violation has one effect: the box is lost, once, and the socket is closed. */
static void expect_breach(struct link_rig *rig)
{
	recorder_expect(&rig->rec, "lost(PROTOCOL) ");
	assert_int_equal(send(rig->agent, "x", 1, MSG_NOSIGNAL), -1);
	rig_run(rig);
	recorder_expect(&rig->rec, "");
}

static void say_raw(struct link_rig *rig, uint16_t type, uint32_t id, const char *payload,
                    uint32_t len)
{
	struct frame frame = {.type = type, .id = id, .len = len};
	uint8_t header[FRAME_HEADER_LEN];
	char bytes[200];

	assert_true(len <= sizeof(bytes) - sizeof(header));
	frame_put_header(&frame, header);
	memcpy(bytes, header, sizeof(header));
	memcpy(bytes + sizeof(header), payload, len);
	rig_say_bytes(rig, bytes, sizeof(header) + len);
}

/* A healthy agent. */

static void a_whole_run_is_reported(void **state)
{
	struct link_rig *rig = *state;

	rig_hand_over(rig, 9);
	assert_int_equal(rig->hello.layers, LINK_AGENT_LAYERS);
	assert_int_equal(rig->hello.landlock_abi, 3);
	SAY(rig, started, 9, .pid = 2);
	SAY(rig, output, 9, .stream = WIRE_STDOUT, .data = wire_str("hi"));
	SAY(rig, output, 9, .stream = WIRE_STDERR, .data = wire_str("oh"));
	SAY(rig, denial, 9, .kind = WIRE_DENIAL_SYSCALL, .number = SYS_mount, .count = 3);
	SAY(rig, denial, 9, .kind = WIRE_DENIAL_SYSCALL, .number = 99999, .count = 1);
	SAY(rig, denial, 9, .kind = WIRE_DENIAL_SYSCALL, .number = UINT32_MAX, .count = 1);
	SAY(rig, report, 9, .data = wire_str("{}"));
	SAY(rig, log, 0, .level = LOG_LEVEL_DEBUG, .text = wire_str("hm"));
	SAY(rig, done, 9, .signalled = 1, .status = 9, .duration_us = 1, .cpu_user_us = 2,
	    .cpu_system_us = 3, .max_rss_kib = 4, .read_bytes = 5, .write_bytes = 6,
	    .stdout_bytes = 70, .stderr_bytes = 8, .disk_full = 1);
	recorder_expect(&rig->rec, "started(9) out(9,hi) err(9,oh) denial(9,mount,3) "
	                           "denial(9,99999,1) denial(9,4294967295,1) report(9,{}) "
	                           "done(9,signal 9) ");
	assert_int_equal(rig->rec.facts.duration_us, 1);
	assert_int_equal(rig->rec.facts.cpu_user_us, 2);
	assert_int_equal(rig->rec.facts.cpu_system_us, 3);
	assert_int_equal(rig->rec.facts.max_rss_kib, 4);
	assert_int_equal(rig->rec.facts.read_bytes, 5);
	assert_int_equal(rig->rec.facts.write_bytes, 6);
	assert_int_equal(rig->rec.facts.stdout_bytes, 70);
	assert_int_equal(rig->rec.facts.stderr_bytes, 8);
	assert_true(rig->rec.facts.disk_full);
	rig_hand_over(rig, 10); /* and the box continues */
}

static void frames_may_come_in_any_pieces(void **state)
{
	struct link_rig *rig = *state;
	cleanup_buf struct buf b = BUF_INIT(1000);
	struct msg_started started = {.pid = 2};
	struct msg_output output = {.stream = WIRE_STDOUT, .data = wire_str("abc")};

	rig_hand_over(rig, 1);
	assert_int_equal(msg_started_encode(&b, 1, &started), 0);
	assert_int_equal(msg_output_encode(&b, 1, &output), 0);
	for (size_t i = 0; i < b.len; i++)
		rig_say_bytes(rig, b.data + i, 1);
	rig_say_bytes(rig, b.data + b.len - 20, 20); /* the same OUTPUT again */
	recorder_expect(&rig->rec, "started(1) out(1,abc) out(1,abc) ");
}

static void output_may_reach_exactly_what_was_granted(void **state)
{
	struct link_rig *rig = *state;
	char text[100];

	memset(text, 'x', sizeof(text));
	rig_start(rig, 1);
	SAY(rig, output, 1, .stream = WIRE_STDOUT, .data = {text, 60});
	SAY(rig, output, 1, .stream = WIRE_STDOUT, .data = {text, 40});
	SAY(rig, output, 1, .stream = WIRE_STDERR, .data = {text, 10});
	SAY(rig, report, 1, .data = {text, 50});
	assert_null(strstr(rig->rec.text.data, "lost"));
}

static void a_program_that_cannot_start_is_reported(void **state)
{
	struct link_rig *rig = *state;

	rig_hand_over(rig, 1);
	SAY(rig, failed, 1, .code = ERR_NOT_FOUND, .sys = ENOENT,
	    .text = wire_str("no\x1b[31m such\nfile"));
	recorder_expect(&rig->rec, "failed(1,NOT_FOUND) ");
	assert_int_equal(rig->rec.err.sys, ENOENT);
	assert_string_equal(rig->rec.err.msg, "agent: no?[31m such?file");
	rig_hand_over(rig, 1);
}

static void unknown_codes_of_the_agent_become_ours(void **state)
{
	struct link_rig *rig = *state;
	static const uint32_t codes[] = {ERR_NONE, ERR_COUNT, UINT32_MAX};

	for (uint32_t i = 0; i < ARRAY_SIZE(codes); i++) {
		rig_hand_over(rig, i + 1);
		SAY(rig, failed, i + 1, .code = codes[i], .sys = -5, .text = wire_str("x"));
		assert_int_equal(rig->rec.err.code, ERR_BOX_FAILED);
		assert_int_equal(rig->rec.err.sys, 0);
	}
}

static void an_agent_may_give_the_box_up(void **state)
{
	struct link_rig *rig = *state;

	rig_hand_over(rig, 1);
	SAY(rig, failed, 0, .code = ERR_UNAVAILABLE, .text = wire_str("no landlock"));
	recorder_expect(&rig->rec, "lost(UNAVAILABLE) ");
}

static void an_agent_that_cannot_start_may_say_why(void **state)
{
	struct link_rig *rig = *state;

	rig_open(rig);
	SAY(rig, log, 0, .level = LOG_LEVEL_ERR, .text = wire_str("no /workspace"));
	recorder_expect(&rig->rec, "");
	rig_greet(rig);
}

/* A search for a request in the log finds its agent's messages, too. */
static void agent_messages_are_logged_with_their_request(void **state)
{
	struct link_rig *rig = *state;
	char text[512] = "";
	int out = dup(STDERR_FILENO), file = fd_memfd("log", 0);

	assert_true(out >= 0 && file >= 0);
	log_setup("test", LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	rig_open(rig);
	link_set_request(rig->link, "req-7");
	assert_true(dup2(file, STDERR_FILENO) >= 0);
	SAY(rig, log, 0, .level = LOG_LEVEL_ERR, .text = wire_str("no /workspace"));
	assert_true(dup2(out, STDERR_FILENO) >= 0);
	assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "request_id=req-7"));
	assert_non_null(strstr(text, "box=box"));
	assert_non_null(strstr(text, "no /workspace"));
	(void)fd_close(out);
	(void)fd_close(file);
}

/* Violations. */

static void bytes_that_are_not_a_frame(void **state)
{
	struct link_rig *rig = *state;

	rig_open(rig);
	rig_say_bytes(rig, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
	expect_breach(rig);
}

static void a_type_that_does_not_exist(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	say_raw(rig, MSG_COUNT, 0, "", 0);
	expect_breach(rig);
}

static void type_zero(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	say_raw(rig, MSG_NONE, 0, "", 0);
	expect_breach(rig);
}

/* Messages of the other direction: each needs its own link. */
static void messages_of_our_own_direction(void **state)
{
	static const uint16_t ours[] = {MSG_SETUP,     MSG_PUT_BEGIN, MSG_PUT_DATA,
	                                MSG_PUT_END,   MSG_EXEC,      MSG_STDIN,
	                                MSG_STDIN_END, MSG_SIGNAL,    MSG_BYE};

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		struct link_rig *rig;

		if (i > 0)
			assert_int_equal(rig_setup(state), 0);
		rig = *state;
		rig_start(rig, 1);
		say_raw(rig, ours[i], 1, "\0", 1);
		expect_breach(rig);
		if (i + 1 < ARRAY_SIZE(ours))
			assert_int_equal(rig_teardown(state), 0);
	}
}

/* Empty and overlong payloads of every message of the agent. */
static void malformed_messages(void **state)
{
	static const uint16_t theirs[] = {MSG_HELLO,  MSG_STARTED, MSG_STDIN_ROOM,
	                                  MSG_OUTPUT, MSG_REPORT,  MSG_DENIAL,
	                                  MSG_DONE,   MSG_FAILED,  MSG_LOG};

	for (size_t i = 0; i < ARRAY_SIZE(theirs) * 2; i++) {
		uint16_t type = theirs[i / 2];
		bool of_box = type == MSG_HELLO || type == MSG_LOG;
		char payload[150] = {0};
		struct link_rig *rig;

		if (i > 0)
			assert_int_equal(rig_setup(state), 0);
		rig = *state;
		if (type == MSG_HELLO)
			rig_open(rig);
		else if (type == MSG_STARTED || type == MSG_FAILED)
			rig_hand_over(rig, 1);
		else
			rig_start(rig, 1);
		say_raw(rig, type, of_box ? 0 : 1, payload, i % 2 ? sizeof(payload) : 0);
		expect_breach(rig);
		if (i + 1 < ARRAY_SIZE(theirs) * 2)
			assert_int_equal(rig_teardown(state), 0);
	}
}

static void another_version(void **state)
{
	struct link_rig *rig = *state;

	rig_open(rig);
	SAY(rig, hello, 0, .version = WIRE_VERSION + 1);
	expect_breach(rig);
}

static void a_second_hello(void **state)
{
	struct link_rig *rig = *state;

	rig_open(rig);
	rig_greet(rig);
	SAY(rig, hello, 0, .version = WIRE_VERSION);
	expect_breach(rig);
}

static void a_hello_for_an_execution(void **state)
{
	struct link_rig *rig = *state;

	rig_open(rig);
	SAY(rig, hello, 1, .version = WIRE_VERSION);
	expect_breach(rig);
}

static void layers_that_are_the_engines(void **state)
{
	struct link_rig *rig = *state;

	rig_open(rig);
	SAY(rig, hello, 0, .version = WIRE_VERSION, .layers = LAYER_BIT(LAYER_CGROUP_MEMORY));
	expect_breach(rig);
}

static void anything_before_hello(void **state)
{
	struct link_rig *rig = *state;
	struct exec_plan plan = sample_plan(1);

	assert_int_equal(link_exec(rig->link, &plan, &rig->err), 0);
	rig_open(rig);
	SAY(rig, started, 1, .pid = 1);
	expect_breach(rig);
}

static void an_unknown_execution(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, output, 2, .stream = WIRE_STDOUT, .data = wire_str("x"));
	expect_breach(rig);
}

static void an_execution_message_for_the_box(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, output, 0, .stream = WIRE_STDOUT, .data = wire_str("x"));
	expect_breach(rig);
}

static void a_log_line_for_an_execution(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, log, 1, .level = LOG_LEVEL_INFO, .text = wire_str("x"));
	expect_breach(rig);
}

static void a_second_started(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, started, 1, .pid = 3);
	expect_breach(rig);
}

static void output_before_started(void **state)
{
	struct link_rig *rig = *state;

	rig_hand_over(rig, 1);
	SAY(rig, output, 1, .stream = WIRE_STDOUT, .data = wire_str("x"));
	expect_breach(rig);
}

static void done_before_started(void **state)
{
	struct link_rig *rig = *state;

	rig_hand_over(rig, 1);
	SAY(rig, done, 1, .status = 0);
	expect_breach(rig);
}

static void failed_after_started(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, failed, 1, .code = ERR_SYSTEM, .text = wire_str("x"));
	expect_breach(rig);
}

static void a_second_done(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, done, 1, .status = 0);
	recorder_expect(&rig->rec, "done(1,exit 0) ");
	SAY(rig, done, 1, .status = 0);
	expect_breach(rig);
}

static void output_after_done(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, done, 1, .status = 0);
	recorder_expect(&rig->rec, "done(1,exit 0) ");
	SAY(rig, output, 1, .stream = WIRE_STDOUT, .data = wire_str("x"));
	expect_breach(rig);
}

static void a_stream_that_does_not_exist(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, output, 1, .stream = WIRE_STREAM_COUNT, .data = wire_str("x"));
	expect_breach(rig);
}

static void empty_output(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, output, 1, .stream = WIRE_STDOUT, .data = wire_str(""));
	expect_breach(rig);
}

static void more_output_than_granted(void **state)
{
	struct link_rig *rig = *state;
	char text[100] = "";

	rig_start(rig, 1);
	SAY(rig, output, 1, .stream = WIRE_STDOUT, .data = {text, 100});
	buf_reset(&rig->rec.text);
	SAY(rig, output, 1, .stream = WIRE_STDOUT, .data = {text, 1});
	expect_breach(rig);
}

static void each_stream_has_its_own_grant(void **state)
{
	struct link_rig *rig = *state;
	char text[11] = "";

	rig_start(rig, 1);
	SAY(rig, output, 1, .stream = WIRE_STDERR, .data = {text, 11});
	expect_breach(rig);
}

static void a_longer_report_than_granted(void **state)
{
	struct link_rig *rig = *state;
	char text[50] = "";

	rig_start(rig, 1);
	SAY(rig, report, 1, .data = {text, 50});
	buf_reset(&rig->rec.text);
	SAY(rig, report, 1, .data = {text, 1});
	expect_breach(rig);
}

static void an_empty_report(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, report, 1, .data = wire_str(""));
	expect_breach(rig);
}

static void room_for_bytes_that_were_never_sent(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	assert_int_equal(link_stdin(rig->link, 1, "abc", 3, &rig->err), 0);
	SAY(rig, stdin_room, 1, .bytes = 3);
	recorder_expect(&rig->rec, "");
	SAY(rig, stdin_room, 1, .bytes = 1);
	recorder_expect(&rig->rec, "lost(PROTOCOL) ");
}

static void room_for_nothing(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, stdin_room, 1, .bytes = 0);
	expect_breach(rig);
}

static void room_that_would_wrap(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, stdin_room, 1, .bytes = UINT32_MAX);
	expect_breach(rig);
}

static void a_denial_of_an_unknown_kind(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, denial, 1, .kind = WIRE_DENIAL_COUNT, .count = 1);
	expect_breach(rig);
}

static void denials_without_end(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	for (unsigned i = 0; i < LINK_DENIALS_MAX; i++)
		SAY(rig, denial, 1, .kind = WIRE_DENIAL_SYSCALL, .number = i, .count = 1);
	assert_null(strstr(rig->rec.text.data, "lost"));
	buf_reset(&rig->rec.text);
	SAY(rig, denial, 1, .kind = WIRE_DENIAL_SYSCALL, .number = 1, .count = 1);
	expect_breach(rig);
}

static void log_lines_without_end(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	for (unsigned i = 0; i < LINK_LOGS_MAX; i++)
		SAY(rig, log, 0, .level = LOG_LEVEL_DEBUG, .text = wire_str("x"));
	recorder_expect(&rig->rec, "");
	SAY(rig, log, 0, .level = LOG_LEVEL_DEBUG, .text = wire_str("x"));
	expect_breach(rig);
}

static void a_log_level_that_does_not_exist(void **state)
{
	struct link_rig *rig = *state;

	rig_start(rig, 1);
	SAY(rig, log, 0, .level = LOG_LEVEL_COUNT, .text = wire_str("x"));
	expect_breach(rig);
}

static void facts_that_cannot_be(void **state)
{
	static const struct msg_done impossible[] = {
		{.signalled = 2},
		{.disk_full = 2},
		{.runner_lost = 3},
		{.runner_lost = 2}, /* it was not prepared */
		{.runner_lost = 1}, /* not a run */
		{.status = -1},
		{.status = 256},
		{.signalled = 1, .status = 0},
		{.signalled = 1, .status = 65},
		{.stdout_bytes = 1}, /* two were forwarded */
	};

	for (size_t i = 0; i < ARRAY_SIZE(impossible); i++) {
		cleanup_buf struct buf b = BUF_INIT(1000);
		struct link_rig *rig;

		if (i > 0)
			assert_int_equal(rig_setup(state), 0);
		rig = *state;
		rig_start(rig, 1);
		if (impossible[i].stdout_bytes)
			SAY(rig, output, 1, .stream = WIRE_STDOUT, .data = wire_str("ab"));
		buf_reset(&rig->rec.text);
		assert_int_equal(msg_done_encode(&b, 1, &impossible[i]), 0);
		rig_say_bytes(rig, b.data, b.len);
		expect_breach(rig);
		if (i + 1 < ARRAY_SIZE(impossible))
			assert_int_equal(rig_teardown(state), 0);
	}
}

/* A box that an earlier daemon set up. */

static int on_resume(void *ctx, const struct box_resumed *what, struct box_grant *ret_grant)
{
	record(ctx, "resume", "(%u,%s)", what->id, what->label);
	ret_grant->stdout_max = ret_grant->stderr_max = 100;
	return 0;
}

static void on_resumed(void *ctx, uint32_t last_id)
{
	record(ctx, "resumed", "(%u)", last_id);
}

/* Two runs are announced; the first is described. */
static void describe_half(struct link_rig *rig)
{
	int pair[2];

	rig->box.on_resume = on_resume;
	rig->box.on_resumed = on_resumed;
	assert_int_equal(fd_socketpair(SOCK_STREAM, pair), 0);
	rig->agent = pair[1];
	link_adopt(rig->link, pair[0]);
	rig_greet(rig);
	SAY(rig, resume, 0, .last_id = 7, .count = 2);
	SAY(rig, describe, 3, .text = wire_str("exec_a"));
	recorder_expect(&rig->rec, "resume(3,exec_a) ");
}

static void a_box_is_described_before_its_events_come(void **state)
{
	struct link_rig *rig = *state;

	describe_half(rig);
	SAY(rig, log, 0, .level = LOG_LEVEL_DEBUG, .text = wire_str("hm"));
	SAY(rig, describe, 4, .text = wire_str("exec_b"));
	SAY(rig, started, 3, .pid = 2);
	SAY(rig, output, 3, .stream = WIRE_STDOUT, .data = wire_str("hi"));
	recorder_expect(&rig->rec, "resume(4,exec_b) resumed(7) started(3) out(3,hi) ");
}

static void an_event_before_all_is_described(void **state)
{
	struct link_rig *rig = *state;

	describe_half(rig);
	SAY(rig, started, 3, .pid = 2);
	expect_breach(rig);
}

static void a_failure_before_all_is_described(void **state)
{
	struct link_rig *rig = *state;

	describe_half(rig);
	SAY(rig, failed, 3, .code = ERR_NOT_FOUND, .sys = ENOENT, .text = wire_str("x"));
	expect_breach(rig);
}

static void more_descriptions_than_announced(void **state)
{
	struct link_rig *rig = *state;

	describe_half(rig);
	SAY(rig, describe, 4, .text = wire_str("exec_b"));
	buf_reset(&rig->rec.text);
	SAY(rig, describe, 5, .text = wire_str("exec_c"));
	expect_breach(rig);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_whole_run_is_reported),
		TEST(frames_may_come_in_any_pieces),
		TEST(output_may_reach_exactly_what_was_granted),
		TEST(a_program_that_cannot_start_is_reported),
		TEST(unknown_codes_of_the_agent_become_ours),
		TEST(an_agent_may_give_the_box_up),
		TEST(an_agent_that_cannot_start_may_say_why),
		TEST(agent_messages_are_logged_with_their_request),
		TEST(bytes_that_are_not_a_frame),
		TEST(a_type_that_does_not_exist),
		TEST(type_zero),
		TEST(messages_of_our_own_direction),
		TEST(malformed_messages),
		TEST(another_version),
		TEST(a_second_hello),
		TEST(a_hello_for_an_execution),
		TEST(layers_that_are_the_engines),
		TEST(anything_before_hello),
		TEST(an_unknown_execution),
		TEST(an_execution_message_for_the_box),
		TEST(a_log_line_for_an_execution),
		TEST(a_second_started),
		TEST(output_before_started),
		TEST(done_before_started),
		TEST(failed_after_started),
		TEST(a_second_done),
		TEST(output_after_done),
		TEST(a_stream_that_does_not_exist),
		TEST(empty_output),
		TEST(more_output_than_granted),
		TEST(each_stream_has_its_own_grant),
		TEST(a_longer_report_than_granted),
		TEST(an_empty_report),
		TEST(room_for_bytes_that_were_never_sent),
		TEST(room_for_nothing),
		TEST(room_that_would_wrap),
		TEST(a_denial_of_an_unknown_kind),
		TEST(denials_without_end),
		TEST(log_lines_without_end),
		TEST(a_log_level_that_does_not_exist),
		TEST(facts_that_cannot_be),
		TEST(a_box_is_described_before_its_events_come),
		TEST(an_event_before_all_is_described),
		TEST(a_failure_before_all_is_described),
		TEST(more_descriptions_than_announced),
	};

	return cmocka_run_group_tests_name("driver/link_input", tests, NULL, NULL);
}
