/* SPDX-License-Identifier: Apache-2.0 */
#include "link_rig.h"

/* Callbacks of an operation go into the recorder's line of text. */

static void on_entry(void *ctx, const struct box_file_entry *entry)
{
	record(ctx, "entry", "(%d,%s,%llu,%s%s)", (int)entry->type, entry->path,
	       (unsigned long long)entry->size, entry->target, entry->sha256 ? ",hashed" : "");
}

static void on_data(void *ctx, const char *data, size_t len)
{
	record(ctx, "data", "(%zu,%c)", len, data[0]);
}

static void on_room(void *ctx)
{
	record(ctx, "room", "%s", "");
}

static void on_done(void *ctx, const struct box_file_summary *summary)
{
	record(ctx, "done", "(%d,%llu,%llu)", summary->truncated,
	       (unsigned long long)summary->entries, (unsigned long long)summary->bytes);
}

static void on_failed(void *ctx, const struct error *err)
{
	struct recorder *r = ctx;

	r->err = *err;
	record(r, "failed", "(%s)", error_name(err->code));
}

static int try_open(struct link_rig *rig, const struct box_file_request *request,
                    struct box_file **ret_file)
{
	const struct box_file_events events = {&rig->rec, on_entry, on_data,
	                                       on_room,   on_done,  on_failed};

	error_clear(&rig->err);
	return link_file_open(rig->link, request, &events, ret_file, &rig->err);
}

/* An operation that the agent knows. Ids count from 1. */
static struct box_file *opened(struct link_rig *rig, enum box_file_op op)
{
	const struct box_file_request request = {
		.op = op, .path = "p", .limit = 2, .length = UINT64_MAX};
	struct box_file *file = NULL;

	assert_int_equal(try_open(rig, &request, &file), 0);
	(void)rig_hear(rig, MSG_FILE_OPEN);
	return file;
}

static int setup(void **state)
{
	int r = rig_setup(state);

	rig_open(*state);
	(void)rig_hear(*state, MSG_SETUP);
	rig_greet(*state);
	return r;
}

static void every_field_of_a_request_is_passed(void **state)
{
	struct link_rig *rig = *state;
	const struct box_file_request request = {.op = BOX_FILE_MOVE,
	                                         .path = "a",
	                                         .to = "b",
	                                         .offset = 1,
	                                         .length = 2,
	                                         .mode = 0640,
	                                         .limit = 3,
	                                         .parents = true,
	                                         .replace = true};
	const struct box_file_request plain = {.op = BOX_FILE_REMOVE, .recursive = true};
	struct box_file *file = NULL;
	struct msg_file_open msg;
	struct frame frame;

	assert_int_equal(try_open(rig, &request, &file), 0);
	frame = rig_hear(rig, MSG_FILE_OPEN);
	assert_int_equal(frame.id, 1);
	assert_int_equal(msg_file_open_decode(&frame, &msg), 0);
	assert_int_equal(msg.op, WIRE_FILE_MOVE);
	assert_int_equal(msg.flags, WIRE_FILE_PARENTS | WIRE_FILE_REPLACE);
	assert_memory_equal(msg.path.data, "a", 1);
	assert_memory_equal(msg.to.data, "b", 1);
	assert_int_equal(msg.offset, 1);
	assert_int_equal(msg.length, 2);
	assert_int_equal(msg.mode, 0640);
	assert_int_equal(msg.limit, 3);
	assert_int_equal(try_open(rig, &plain, &file), 0);
	frame = rig_hear(rig, MSG_FILE_OPEN);
	assert_int_equal(frame.id, 2);
	assert_int_equal(msg_file_open_decode(&frame, &msg), 0);
	assert_int_equal(msg.flags, WIRE_FILE_RECURSIVE);
	assert_int_equal(msg.path.len + msg.to.len, 0);
}

static void there_are_eight_places_and_ids_are_not_used_twice(void **state)
{
	struct link_rig *rig = *state;
	const struct box_file_request request = {.op = BOX_FILE_STAT};
	struct box_file *first = opened(rig, BOX_FILE_STAT), *file = NULL;

	for (int i = 1; i < BOX_FILE_OPS_MAX; i++)
		(void)opened(rig, BOX_FILE_STAT);
	assert_int_equal(try_open(rig, &request, &file), -1);
	assert_int_equal(rig->err.code, ERR_BUSY);
	rig_hear_nothing(rig);
	box_file_cancel(first);
	assert_int_equal(rig_hear(rig, MSG_FILE_CANCEL).id, 1);
	assert_int_equal(try_open(rig, &request, &file), 0);
	assert_int_equal(rig_hear(rig, MSG_FILE_OPEN).id, BOX_FILE_OPS_MAX + 1);
}

/* Bytes of FILE_DATA that came, frames with their headers in *ret_window. */
static size_t hear_data(struct link_rig *rig, size_t frames, size_t *ret_window)
{
	size_t bytes = 0;

	*ret_window = 0;
	for (size_t i = 0; i < frames; i++) {
		struct frame frame = rig_hear(rig, MSG_FILE_DATA);
		struct msg_file_data msg;

		assert_int_equal(msg_file_data_decode(&frame, &msg), 0);
		bytes += msg.data.len;
		*ret_window += FRAME_HEADER_LEN + frame.len;
	}
	return bytes;
}

static void a_writer_waits_for_the_window_and_learns_of_room(void **state)
{
	struct link_rig *rig = *state;
	struct box_file *file = opened(rig, BOX_FILE_WRITE);
	char *data = xcalloc(1, 2 * BOX_FILE_WINDOW);
	size_t taken = box_file_write(file, data, 2 * BOX_FILE_WINDOW), window = 0;
	size_t frames = (taken + FRAME_CHUNK - 1) / FRAME_CHUNK;

	assert_in_range(taken, BOX_FILE_WINDOW - 1000, BOX_FILE_WINDOW);
	assert_int_equal(hear_data(rig, frames, &window), taken);
	assert_in_range(window, 1, BOX_FILE_WINDOW);
	assert_int_equal(box_file_write(file, data, 1000), 0);
	SAY(rig, file_room, 1, .bytes = 500);
	recorder_expect(&rig->rec, "room ");
	/* No writer waits: no callback. */
	SAY(rig, file_room, 1, .bytes = 500);
	recorder_expect(&rig->rec, "");
	assert_in_range(box_file_write(file, data, 990), 900, 990);
	(void)hear_data(rig, 1, &window);
	box_file_end(file);
	(void)rig_hear(rig, MSG_FILE_END);
	SAY(rig, file_entry, 1, .type = WIRE_FILE_REGULAR, .size = 7);
	SAY(rig, file_done, 1, .entries = 1, .bytes = 7);
	recorder_expect(&rig->rec, "entry(0,,7,) done(0,1,7) ");
	free(data);
}

static void more_room_than_there_can_be_is_a_breach(void **state)
{
	struct link_rig *rig = *state;

	(void)opened(rig, BOX_FILE_WRITE);
	SAY(rig, file_room, 1, .bytes = 1);
	recorder_expect(&rig->rec, "failed(PROTOCOL) lost(PROTOCOL) ");
}

static void a_write_without_its_end_cannot_be_done(void **state)
{
	struct link_rig *rig = *state;

	(void)opened(rig, BOX_FILE_UNTAR);
	SAY(rig, file_done, 1, .entries = 1);
	recorder_expect(&rig->rec, "failed(PROTOCOL) lost(PROTOCOL) ");
}

static void entries_are_bounded(void **state)
{
	struct link_rig *rig = *state;
	const char digest[BOX_SHA256_LEN] = {0};

	(void)opened(rig, BOX_FILE_LIST); /* two */
	SAY(rig, file_entry, 1, .type = WIRE_FILE_LINK, .path = wire_str("l"),
	    .target = wire_str("t"));
	SAY(rig, file_entry, 1, .path = wire_str("f"), .sha256 = {digest, sizeof(digest)});
	recorder_expect(&rig->rec, "entry(2,l,0,t) entry(0,f,0,,hashed) ");
	SAY(rig, file_entry, 1, .path = wire_str("one too many"));
	recorder_expect(&rig->rec, "failed(PROTOCOL) lost(PROTOCOL) ");
}

static void one_entry_is_enough_for_most(void **state)
{
	struct link_rig *rig = *state;

	(void)opened(rig, BOX_FILE_STAT);
	SAY(rig, file_entry, 1, .type = WIRE_FILE_DIRECTORY);
	SAY(rig, file_entry, 1, .type = WIRE_FILE_DIRECTORY);
	recorder_expect(&rig->rec, "entry(1,,0,) failed(PROTOCOL) lost(PROTOCOL) ");
}

static void an_entry_after_bytes_is_a_breach(void **state)
{
	struct link_rig *rig = *state;

	(void)opened(rig, BOX_FILE_READ);
	SAY(rig, file_bytes, 1, .data = {"x", 1});
	buf_reset(&rig->rec.text);
	SAY(rig, file_entry, 1, .type = WIRE_FILE_REGULAR);
	recorder_expect(&rig->rec, "failed(PROTOCOL) lost(PROTOCOL) ");
}

static void an_entry_of_a_tar_is_a_breach(void **state)
{
	struct link_rig *rig = *state;

	(void)opened(rig, BOX_FILE_TAR);
	SAY(rig, file_entry, 1, .type = WIRE_FILE_DIRECTORY);
	recorder_expect(&rig->rec, "failed(PROTOCOL) lost(PROTOCOL) ");
}

static void malformed_entries_are_a_breach(void **state)
{
	struct link_rig *rig = *state;

	(void)opened(rig, BOX_FILE_STAT);
	SAY(rig, file_entry, 1, .type = WIRE_FILE_TYPE_COUNT);
	recorder_expect(&rig->rec, "failed(PROTOCOL) lost(PROTOCOL) ");
}

static void digest_of_another_length_is_a_breach(void **state)
{
	struct link_rig *rig = *state;

	(void)opened(rig, BOX_FILE_CHANGES);
	SAY(rig, file_entry, 1, .sha256 = wire_str("short"));
	recorder_expect(&rig->rec, "failed(PROTOCOL) lost(PROTOCOL) ");
}

/* The window is free at first; then only what was granted may come. */
static void reader_gets_what_it_grants(void **state)
{
	struct link_rig *rig = *state;
	struct box_file *file = opened(rig, BOX_FILE_READ);
	const size_t piece = BOX_FILE_WINDOW / 4 - FRAME_HEADER_LEN - 4;
	char *data = xcalloc(1, piece);
	struct msg_file_grant grant;
	struct frame frame;

	memset(data, 'd', piece);
	for (int i = 0; i < 4; i++)
		SAY(rig, file_bytes, 1, .data = {data, (uint32_t)piece});
	buf_reset(&rig->rec.text);
	rig_hear_nothing(rig);
	box_file_grant(file, 10); /* too little for a message */
	rig_hear_nothing(rig);
	box_file_grant(file, piece);
	frame = rig_hear(rig, MSG_FILE_GRANT);
	assert_int_equal(msg_file_grant_decode(&frame, &grant), 0);
	assert_in_range(grant.bytes, piece, BOX_FILE_WINDOW);
	SAY(rig, file_bytes, 1, .data = {data, 100});
	recorder_expect(&rig->rec, "data(100,d) ");
	SAY(rig, file_bytes, 1, .data = {data, (uint32_t)piece});
	recorder_expect(&rig->rec, "failed(PROTOCOL) lost(PROTOCOL) ");
	free(data);
}

static void bytes_are_for_readers_only(void **state)
{
	struct link_rig *rig = *state;

	(void)opened(rig, BOX_FILE_LIST);
	SAY(rig, file_bytes, 1, .data = wire_str("x"));
	recorder_expect(&rig->rec, "failed(PROTOCOL) lost(PROTOCOL) ");
}

static void only_known_failure_codes_are_accepted(void **state)
{
	static const struct {
		uint32_t code;
		const char *text, *report, *field;
	} cases[] = {
		{ERR_FILE_NOT_FOUND, "no such", "failed(FILE_NOT_FOUND) ", ""},
		{ERR_DISK_FULL, "full", "failed(DISK_FULL) ", ""},
		{ERR_INVALID, "path: bad", "failed(INVALID) ", "path"},
		{ERR_INVALID, "to: bad", "failed(INVALID) ", "to"},
		{ERR_INVALID, "tenant: bad", "failed(INVALID) ", ""},
		{ERR_UNAUTHENTICATED, "who", "failed(BOX_FAILED) ", ""},
		{9999, "\x1b[2J", "failed(BOX_FAILED) ", ""},
	};
	struct link_rig *rig = *state;

	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		(void)opened(rig, BOX_FILE_STAT);
		SAY(rig, file_failed, i + 1, .code = cases[i].code, .sys = 4096,
		    .text = wire_str(cases[i].text));
		recorder_expect(&rig->rec, cases[i].report);
		assert_string_equal(rig->rec.err.field, cases[i].field);
		assert_int_equal(rig->rec.err.sys, 0);
		assert_null(strchr(rig->rec.err.msg, '\x1b'));
	}
}

/* Frames in flight when it was cancelled: as many as it was granted. */
static void messages_about_cancelled_operations_are_dropped(void **state)
{
	struct link_rig *rig = *state;
	struct box_file *file = opened(rig, BOX_FILE_READ);
	const size_t piece = BOX_FILE_WINDOW / 4;
	char *data = xcalloc(1, piece);

	box_file_cancel(file);
	(void)rig_hear(rig, MSG_FILE_CANCEL);
	for (int i = 0; i < 3; i++)
		SAY(rig, file_bytes, 1, .data = {data, (uint32_t)piece});
	SAY(rig, file_done, 1, .entries = 0);
	recorder_expect(&rig->rec, "");
	for (int i = 0; i < 2; i++)
		SAY(rig, file_bytes, 1, .data = {data, (uint32_t)piece});
	recorder_expect(&rig->rec, "lost(PROTOCOL) ");
	free(data);
}

static void messages_about_unknown_operations_are_violations(void **state)
{
	struct link_rig *rig = *state;

	box_file_cancel(opened(rig, BOX_FILE_READ));
	SAY(rig, file_done, 2, .entries = 0);
	recorder_expect(&rig->rec, "lost(PROTOCOL) ");
}

static void summary_that_is_neither_is_a_breach(void **state)
{
	struct link_rig *rig = *state;

	(void)opened(rig, BOX_FILE_TAR);
	SAY(rig, file_done, 1, .truncated = 2);
	recorder_expect(&rig->rec, "failed(PROTOCOL) lost(PROTOCOL) ");
}

/* Operations fail before their box is lost; afterwards none can be opened. */
static void end_of_the_agent_fails_all(void **state)
{
	struct link_rig *rig = *state;
	const struct box_file_request request = {.op = BOX_FILE_STAT};
	struct box_file *file = NULL;

	(void)opened(rig, BOX_FILE_WRITE);
	(void)opened(rig, BOX_FILE_READ);
	rig->agent = fd_close(rig->agent);
	rig_run(rig);
	recorder_expect(&rig->rec, "failed(AGENT_LOST) failed(AGENT_LOST) lost(AGENT_LOST) ");
	assert_int_equal(try_open(rig, &request, &file), -1);
	assert_int_equal(rig->err.code, ERR_AGENT_LOST);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_field_of_a_request_is_passed),
		TEST(there_are_eight_places_and_ids_are_not_used_twice),
		TEST(a_writer_waits_for_the_window_and_learns_of_room),
		TEST(more_room_than_there_can_be_is_a_breach),
		TEST(a_write_without_its_end_cannot_be_done),
		TEST(entries_are_bounded),
		TEST(one_entry_is_enough_for_most),
		TEST(an_entry_after_bytes_is_a_breach),
		TEST(an_entry_of_a_tar_is_a_breach),
		TEST(malformed_entries_are_a_breach),
		TEST(digest_of_another_length_is_a_breach),
		TEST(reader_gets_what_it_grants),
		TEST(bytes_are_for_readers_only),
		TEST(only_known_failure_codes_are_accepted),
		TEST(messages_about_cancelled_operations_are_dropped),
		TEST(messages_about_unknown_operations_are_violations),
		TEST(summary_that_is_neither_is_a_breach),
		TEST(end_of_the_agent_fails_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
