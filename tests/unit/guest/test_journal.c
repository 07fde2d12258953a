/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "guest/journal.h"

/* A channel without a socket: the tests examine what would be sent. */
struct rig {
	struct journal journal;
	struct channel ch;
};

static int setup(void **state)
{
	struct rig *rig = NEW(struct rig);

	journal_init(&rig->journal, true);
	rig->ch.fd = -1;
	buf_init(&rig->ch.out, CHANNEL_MAX_BYTES);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	journal_done(&rig->journal);
	channel_done(&rig->ch);
	free(rig);
	return 0;
}

static int label(struct rig *rig, uint32_t id, const char *text)
{
	const struct wire_bytes bytes = {text, (uint32_t)strlen(text)};

	return journal_label(&rig->journal, id, &bytes);
}

/* An execution that has begun. */
static void begin(struct rig *rig, uint32_t id)
{
	assert_int_equal(label(rig, id, "exec"), 0);
	assert_int_equal(journal_begin(&rig->journal, id, 0, false), 0);
}

static void send_output(struct rig *rig, uint32_t id, const char *data, size_t len)
{
	const struct msg_output msg = {WIRE_STDOUT, {data, (uint32_t)len}};

	assert_int_equal(msg_output_encode(&rig->ch.out, id, &msg), 0);
}

static void say(struct rig *rig, uint32_t id, const char *text)
{
	send_output(rig, id, text, strlen(text));
}

static void send_done(struct rig *rig, uint32_t id)
{
	assert_int_equal(msg_done_encode(&rig->ch.out, id, &(struct msg_done){0}), 0);
}

static void note(struct rig *rig)
{
	assert_int_equal(journal_note(&rig->journal, &rig->ch), 0);
}

static void pump(struct rig *rig)
{
	assert_int_equal(journal_pump(&rig->journal, &rig->ch), 0);
}

/* Everything queued was sent. */
static void drain(struct rig *rig)
{
	assert_int_equal(channel_flush(&rig->ch), 0);
	rig->ch.noted = rig->ch.out.len;
}

/* What is to be sent, as "1:text 2. ": output, and any other message. */
static void expect_said(struct rig *rig, const char *expected)
{
	char text[512] = "";
	size_t at = 0, used = 0;
	struct frame frame;
	struct msg_output msg;

	while (at < rig->ch.out.len) {
		int len = frame_parse(rig->ch.out.data + at, rig->ch.out.len - at, &frame);

		assert_true(len > 0);
		at += (size_t)len;
		if (frame.type == MSG_OUTPUT) {
			assert_int_equal(msg_output_decode(&frame, &msg), 0);
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%u:%.*s ",
			                         frame.id, (int)msg.data.len, msg.data.data);
		} else {
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%u. ",
			                         frame.id);
		}
	}
	assert_string_equal(text, expected);
}

static void everything_is_replayed_in_order(void **state)
{
	struct rig *rig = *state;

	begin(rig, 1);
	begin(rig, 2);
	say(rig, 1, "a");
	note(rig);
	say(rig, 2, "b");
	say(rig, 1, "c");
	send_done(rig, 2);
	note(rig);
	expect_said(rig, "1:a 2:b 1:c 2. "); /* noting removes nothing */
	for (int i = 0; i < 2; i++) {
		drain(rig);
		journal_replay(&rig->journal);
		pump(rig);
		expect_said(rig, "1:a 2:b 1:c 2. ");
		assert_false(rig->journal.replaying);
	}
}

static void nothing_is_noted_twice(void **state)
{
	struct rig *rig = *state;
	size_t len;

	begin(rig, 1);
	say(rig, 1, "a");
	note(rig);
	len = rig->journal.frames.len;
	note(rig);
	journal_replay(&rig->journal);
	drain(rig);
	pump(rig);
	note(rig); /* what was replayed is not new */
	assert_int_equal(rig->journal.frames.len, len);
}

/* STDIN_ROOM is for this host only, as are messages of no kept execution. */
static void irrelevant_frames_are_not_kept(void **state)
{
	struct rig *rig = *state;
	const struct msg_stdin_room room = {5};

	begin(rig, 1);
	assert_int_equal(msg_stdin_room_encode(&rig->ch.out, 1, &room), 0);
	say(rig, 9, "unlabelled");
	assert_int_equal(msg_hello_encode(&rig->ch.out, 0, &(struct msg_hello){0}), 0);
	note(rig);
	assert_int_equal(rig->journal.frames.len, 0);
	expect_said(rig, "1. 9:unlabelled 0. ");
	journal_replay(&rig->journal);
	assert_false(rig->journal.replaying);
}

/* New messages during a replay come after the old ones; those that are not kept do not wait. */
static void nothing_overtakes_a_replay(void **state)
{
	struct rig *rig = *state;
	const struct msg_stdin_room room = {5};

	begin(rig, 1);
	say(rig, 1, "old");
	note(rig);
	drain(rig);
	journal_replay(&rig->journal);
	say(rig, 1, "new");
	assert_int_equal(msg_stdin_room_encode(&rig->ch.out, 1, &room), 0);
	send_done(rig, 1);
	note(rig);
	expect_said(rig, "1. ");
	pump(rig);
	expect_said(rig, "1. 1:old 1:new 1. ");
	say(rig, 1, "after");
	note(rig);
	expect_said(rig, "1. 1:old 1:new 1. 1:after ");
}

/* The channel takes a part at a time, and new messages come in between. */
static void a_replay_continues_where_it_was(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *chunk = xcalloc(FRAME_CHUNK, 1);
	size_t seen = 0, rounds = 0;

	begin(rig, 1);
	for (int i = 0; i < 12; i++) {
		send_output(rig, 1, chunk, FRAME_CHUNK);
		note(rig);
		drain(rig);
	}
	journal_replay(&rig->journal);
	for (; rig->journal.replaying; rounds++) {
		pump(rig);
		assert_true(rig->ch.out.len <= CHANNEL_MAX_BYTES);
		seen += rig->ch.out.len;
		drain(rig);
		if (rounds == 0) {
			say(rig, 1, "late");
			note(rig);
			expect_said(rig, "");
		}
	}
	assert_true(rounds > 1);
	assert_int_equal(seen, rig->journal.frames.len);
}

/* Acknowledged in the middle of a replay: the cursor stays between the same two frames. */
static void cursor_moves_with_what_is_forgotten_before_it(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *chunk = xcalloc(FRAME_CHUNK, 1);

	begin(rig, 1);
	begin(rig, 2);
	say(rig, 1, "one");
	send_done(rig, 1);
	note(rig);
	for (int i = 0; i < 5; i++) {
		send_output(rig, 2, chunk, FRAME_CHUNK);
		note(rig);
		drain(rig);
	}
	say(rig, 2, "last");
	note(rig);
	drain(rig);
	journal_replay(&rig->journal);
	pump(rig);
	assert_true(rig->journal.replaying);
	drain(rig);
	assert_int_equal(journal_ack(&rig->journal, 1), 0);
	assert_true(rig->journal.replaying);
	pump(rig);
	assert_false(rig->journal.replaying);
	assert_int_equal(rig->journal.cursor, rig->journal.frames.len);
	assert_true(rig->ch.out.len < 3 * FRAME_CHUNK);
	assert_memory_equal(rig->ch.out.data + rig->ch.out.len - 4, "last", 4);
}

/* What was still to be sent is dropped: then there is nothing to wait for. */
static void replay_ends_with_what_is_forgotten_behind_it(void **state)
{
	struct rig *rig = *state;

	begin(rig, 1);
	say(rig, 1, "x");
	send_done(rig, 1);
	note(rig);
	drain(rig);
	journal_replay(&rig->journal);
	assert_int_equal(journal_ack(&rig->journal, 1), 0);
	assert_false(rig->journal.replaying);
	assert_int_equal(rig->journal.cursor, 0);
	pump(rig);
	expect_said(rig, "");
}

static void only_what_has_ended_is_acknowledged(void **state)
{
	struct rig *rig = *state;

	begin(rig, 1);
	begin(rig, 2);
	say(rig, 1, "a");
	say(rig, 2, "b");
	note(rig);
	assert_int_equal(journal_ack(&rig->journal, 1), -EPROTO);
	send_done(rig, 1);
	note(rig);
	assert_int_equal(journal_ack(&rig->journal, 1), 0);
	assert_int_equal(journal_ack(&rig->journal, 1), 0); /* acknowledged twice */
	assert_int_equal(rig->journal.count, 1);
	drain(rig);
	journal_replay(&rig->journal);
	pump(rig);
	expect_said(rig, "2:b ");
}

static void a_run_that_could_not_start_has_ended(void **state)
{
	struct rig *rig = *state;
	const struct msg_failed msg = {.code = 1, .text = {"no", 2}};

	assert_int_equal(label(rig, 1, "exec"), 0);
	assert_int_equal(msg_failed_encode(&rig->ch.out, 1, &msg), 0);
	note(rig);
	assert_int_equal(journal_ack(&rig->journal, 1), 0);
	assert_int_equal(rig->journal.count, 0);
}

static void host_that_breaks_the_rules_is_refused(void **state)
{
	struct rig *rig = *state;
	char longest[WIRE_LABEL_MAX + 2];

	memset(longest, 'x', sizeof(longest));
	longest[WIRE_LABEL_MAX + 1] = '\0';
	assert_int_equal(label(rig, 1, ""), -EPROTO);
	assert_int_equal(label(rig, 1, longest), -EPROTO);
	assert_int_equal(rig->journal.count, 0);
	assert_int_equal(label(rig, 1, longest + 1), 0);
	assert_string_equal(rig->journal.entries[0].label, longest + 1);
	assert_int_equal(label(rig, 1, "again"), -EPROTO);
	assert_int_equal(journal_begin(&rig->journal, 2, 0, false), -EPROTO);
	assert_int_equal(journal_begin(&rig->journal, 1, 7, true), 0);
	assert_int_equal(journal_begin(&rig->journal, 1, 0, false), -EPROTO);
	assert_true(rig->journal.entries[0].keep && rig->journal.entries[0].runner == 7);
}

static void no_more_than_its_places_are_kept(void **state)
{
	struct rig *rig = *state;

	for (uint32_t id = 1; id <= WIRE_KEPT_MAX; id++)
		begin(rig, id);
	assert_int_equal(label(rig, WIRE_KEPT_MAX + 1, "one more"), -EPROTO);
	send_done(rig, WIRE_KEPT_MAX);
	send_done(rig, 1);
	note(rig);
	assert_int_equal(journal_ack(&rig->journal, WIRE_KEPT_MAX), 0);
	assert_int_equal(journal_ack(&rig->journal, 1), 0);
	assert_int_equal(rig->journal.count, WIRE_KEPT_MAX - 2);
	assert_int_equal(rig->journal.entries[0].id, 2);
	assert_int_equal(label(rig, WIRE_KEPT_MAX + 1, "one more"), 0);
}

/* A frame that does not fit is an error: a replay must not omit events. */
static void frames_that_cannot_be_kept_are_an_error(void **state)
{
	struct rig *rig = *state;

	begin(rig, 1);
	buf_done(&rig->journal.frames);
	buf_init(&rig->journal.frames, 20);
	say(rig, 1, "longer than that");
	assert_true(journal_note(&rig->journal, &rig->ch) < 0);
	assert_int_equal(rig->journal.frames.len, 0);
}

static void a_lost_host_drops_what_had_not_begun(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(label(rig, 1, "never begun"), 0);
	begin(rig, 2);
	assert_int_equal(label(rig, 3, "never begun"), 0);
	say(rig, 2, "x");
	note(rig);
	journal_replay(&rig->journal);
	journal_detach(&rig->journal);
	assert_false(rig->journal.replaying);
	assert_int_equal(rig->journal.count, 1);
	assert_int_equal(rig->journal.entries[0].id, 2);
	say(rig, 2, "y"); /* no host; it is kept */
	note(rig);
	channel_close(&rig->ch);
	journal_replay(&rig->journal);
	pump(rig);
	expect_said(rig, "2:x 2:y ");
}

static void box_that_is_not_kept_has_no_journal(void **state)
{
	struct rig *rig = *state;

	rig->journal.on = false;
	assert_int_equal(label(rig, 1, "exec"), -EPROTO);
	assert_int_equal(journal_begin(&rig->journal, 1, 0, false), 0);
	assert_int_equal(journal_ack(&rig->journal, 1), -EPROTO);
	say(rig, 1, "a");
	note(rig);
	assert_int_equal(rig->journal.frames.len, 0);
	expect_said(rig, "1:a ");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(everything_is_replayed_in_order),
		TEST(nothing_is_noted_twice),
		TEST(irrelevant_frames_are_not_kept),
		TEST(nothing_overtakes_a_replay),
		TEST(a_replay_continues_where_it_was),
		TEST(cursor_moves_with_what_is_forgotten_before_it),
		TEST(replay_ends_with_what_is_forgotten_behind_it),
		TEST(only_what_has_ended_is_acknowledged),
		TEST(a_run_that_could_not_start_has_ended),
		TEST(host_that_breaks_the_rules_is_refused),
		TEST(no_more_than_its_places_are_kept),
		TEST(frames_that_cannot_be_kept_are_an_error),
		TEST(a_lost_host_drops_what_had_not_begun),
		TEST(box_that_is_not_kept_has_no_journal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
