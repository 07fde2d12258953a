/* SPDX-License-Identifier: Apache-2.0 */
#include "link_rig.h"

/* Callbacks of a connection go into the recorder's line of text. */

static void on_opened(void *ctx)
{
	record(ctx, "opened", "%s", "");
}

static void on_data(void *ctx, const char *data, size_t len)
{
	record(ctx, "data", "(%zu,%c)", len, data[0]);
}

static void on_room(void *ctx)
{
	record(ctx, "room", "%s", "");
}

static void on_finished(void *ctx)
{
	record(ctx, "finished", "%s", "");
}

static void on_closed(void *ctx, const struct error *err)
{
	struct recorder *r = ctx;

	if (err)
		r->err = *err;
	record(r, "closed", "(%s)", err ? error_name(err->code) : "");
}

static void on_listed(void *ctx, const struct box_port_rows *rows, const struct error *err)
{
	record(ctx, "listed", "(%s", err ? error_name(err->code) : "");
	for (size_t i = 0; i < rows->count; i++)
		record(ctx, "", "%u/%u", rows->rows[i].port, rows->rows[i].bound);
	record(ctx, "", "%s)", rows->truncated ? "..." : "");
}

static int try_open(struct link_rig *rig, struct box_port **ret_port)
{
	const struct box_port_events events = {&rig->rec, on_opened,   on_data,
	                                       on_room,   on_finished, on_closed};

	error_clear(&rig->err);
	return link_port_open(rig->link, 8000, &events, ret_port, &rig->err);
}

/* A connection that the agent was asked for. Ids count from 1. */
static struct box_port *asked(struct link_rig *rig)
{
	struct box_port *port = NULL;
	struct msg_port_open msg;
	struct frame frame;

	assert_int_equal(try_open(rig, &port), 0);
	frame = rig_hear(rig, MSG_PORT_OPEN);
	assert_int_equal(msg_port_open_decode(&frame, &msg), 0);
	assert_int_equal(msg.port, 8000);
	return port;
}

static struct box_port *opened(struct link_rig *rig)
{
	struct box_port *port = asked(rig);

	SAY(rig, port_opened, 1, .unused = 0);
	recorder_expect(&rig->rec, "opened ");
	return port;
}

static int setup(void **state)
{
	int r = rig_setup(state);

	rig_open(*state);
	(void)rig_hear(*state, MSG_SETUP);
	rig_greet(*state);
	return r;
}

static void both_ends_end_a_connection(void **state)
{
	struct link_rig *rig = *state;
	struct box_port *port = opened(rig);
	struct msg_port_send msg;
	struct frame frame;

	assert_int_equal(box_port_write(port, "abc", 3), 3);
	frame = rig_hear(rig, MSG_PORT_SEND);
	assert_int_equal(msg_port_send_decode(&frame, &msg), 0);
	assert_memory_equal(msg.data.data, "abc", 3);
	SAY(rig, port_bytes, 1, .data = wire_str("xy"));
	SAY(rig, port_finished, 1, .unused = 0);
	recorder_expect(&rig->rec, "data(2,x) finished ");
	box_port_finish(port);
	(void)rig_hear(rig, MSG_PORT_FINISH);
	SAY(rig, port_closed, 1, .sys = 0);
	recorder_expect(&rig->rec, "closed() ");
	SAY(rig, port_closed, 1, .sys = 0);
	recorder_expect(&rig->rec, "lost(PROTOCOL) ");
}

static void a_failure_has_the_errno_and_a_code(void **state)
{
	static const struct {
		int sys;
		const char *report;
	} cases[] = {
		{ECONNREFUSED, "closed(NOT_FOUND) "}, {EMFILE, "closed(BUSY) "},
		{ETIMEDOUT, "closed(UNAVAILABLE) "},  {ECONNRESET, "closed(AGENT_LOST) "},
		{EIO, "closed(AGENT_LOST) "},         {4095, "closed(AGENT_LOST) "},
	};
	struct link_rig *rig = *state;

	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		(void)asked(rig);
		SAY(rig, port_closed, i + 1, .sys = cases[i].sys);
		recorder_expect(&rig->rec, cases[i].report);
		assert_non_null(strstr(rig->rec.err.msg, "port 8000: "));
		assert_int_equal(rig->rec.err.sys, cases[i].sys);
	}
}

static void a_writer_stops_at_the_window(void **state)
{
	struct link_rig *rig = *state;
	struct box_port *port = opened(rig);
	char *data = xcalloc(1, BOX_PORT_WINDOW);
	size_t taken = box_port_write(port, data, BOX_PORT_WINDOW);
	size_t window = 0, bytes = 0;

	while (bytes < taken) {
		struct frame frame = rig_hear(rig, MSG_PORT_SEND);
		struct msg_port_send msg;

		assert_int_equal(msg_port_send_decode(&frame, &msg), 0);
		bytes += msg.data.len;
		window += FRAME_HEADER_LEN + frame.len;
	}
	assert_in_range(window, BOX_PORT_WINDOW - FRAME_HEADER_LEN - 4, BOX_PORT_WINDOW);
	assert_int_equal(box_port_write(port, data, 1), 0);
	SAY(rig, port_room, 1, .bytes = 100);
	recorder_expect(&rig->rec, "room ");
	assert_int_equal(box_port_write(port, data, 1), 1);
	SAY(rig, port_room, 1, .bytes = BOX_PORT_WINDOW);
	recorder_expect(&rig->rec, "closed(PROTOCOL) lost(PROTOCOL) ");
	free(data);
}

static void a_reader_gets_what_it_grants(void **state)
{
	struct link_rig *rig = *state;
	struct box_port *port = opened(rig);
	const size_t piece = BOX_PORT_WINDOW / 4 - FRAME_HEADER_LEN - 4;
	char *data = xcalloc(1, piece);
	struct msg_port_grant grant;
	struct frame frame;

	memset(data, 'd', piece);
	for (int i = 0; i < 4; i++)
		SAY(rig, port_bytes, 1, .data = {data, (uint32_t)piece});
	buf_reset(&rig->rec.text);
	box_port_grant(port, 10); /* too little for a message */
	rig_hear_nothing(rig);
	box_port_grant(port, piece);
	frame = rig_hear(rig, MSG_PORT_GRANT);
	assert_int_equal(msg_port_grant_decode(&frame, &grant), 0);
	assert_in_range(grant.bytes, piece, BOX_PORT_WINDOW);
	SAY(rig, port_bytes, 1, .data = {data, 100});
	recorder_expect(&rig->rec, "data(100,d) ");
	SAY(rig, port_bytes, 1, .data = {data, (uint32_t)piece});
	recorder_expect(&rig->rec, "closed(PROTOCOL) lost(PROTOCOL) ");
	free(data);
}

/* What an agent that was taken over may try. */

static void say_bytes_early(struct link_rig *rig)
{
	(void)asked(rig);
	SAY(rig, port_bytes, 1, .data = wire_str("x"));
}

static void say_finished_early(struct link_rig *rig)
{
	(void)asked(rig);
	SAY(rig, port_finished, 1, .unused = 0);
}

static void say_opened_twice(struct link_rig *rig)
{
	(void)opened(rig);
	SAY(rig, port_opened, 1, .unused = 0);
}

static void say_nothing(struct link_rig *rig)
{
	(void)opened(rig);
	SAY(rig, port_bytes, 1, .data = wire_str(""));
}

static void say_bytes_after_the_end(struct link_rig *rig)
{
	(void)opened(rig);
	SAY(rig, port_finished, 1, .unused = 0);
	buf_reset(&rig->rec.text);
	SAY(rig, port_bytes, 1, .data = wire_str("x"));
}

static void say_the_end_twice(struct link_rig *rig)
{
	(void)opened(rig);
	SAY(rig, port_finished, 1, .unused = 0);
	buf_reset(&rig->rec.text);
	SAY(rig, port_finished, 1, .unused = 0);
}

static void say_closed_early(struct link_rig *rig)
{
	(void)opened(rig);
	SAY(rig, port_closed, 1, .sys = 0);
}

static void say_no_errno(struct link_rig *rig)
{
	(void)opened(rig);
	SAY(rig, port_closed, 1, .sys = -1);
}

static void say_a_large_errno(struct link_rig *rig)
{
	(void)opened(rig);
	SAY(rig, port_closed, 1, .sys = 4096);
}

static void say_no_room(struct link_rig *rig)
{
	(void)opened(rig);
	SAY(rig, port_room, 1, .bytes = 0);
}

static void say_unused_room(struct link_rig *rig)
{
	(void)opened(rig);
	SAY(rig, port_room, 1, .bytes = 1);
}

static void violations_end_the_box(void **state)
{
	static void (*const attempts[])(struct link_rig * rig) = {
		say_bytes_early,         say_finished_early, say_opened_twice, say_nothing,
		say_bytes_after_the_end, say_the_end_twice,  say_closed_early, say_no_errno,
		say_a_large_errno,       say_no_room,        say_unused_room,
	};

	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
		struct link_rig *rig = *state;

		attempts[i](rig);
		recorder_expect(&rig->rec, "closed(PROTOCOL) lost(PROTOCOL) ");
		(void)rig_teardown(state);
		(void)setup(state);
	}
}

static void ids_that_were_never_given_are_violations(void **state)
{
	struct link_rig *rig = *state;

	box_port_reset(asked(rig));
	SAY(rig, port_closed, 2, .sys = ECONNREFUSED);
	recorder_expect(&rig->rec, "lost(PROTOCOL) ");
}

static void messages_about_reset_connections_are_dropped(void **state)
{
	struct link_rig *rig = *state;
	const size_t piece = BOX_PORT_WINDOW / 4;
	char *data = xcalloc(1, piece);

	box_port_reset(opened(rig));
	(void)rig_hear(rig, MSG_PORT_RESET);
	for (int i = 0; i < 3; i++)
		SAY(rig, port_bytes, 1, .data = {data, (uint32_t)piece});
	SAY(rig, port_closed, 1, .sys = ECONNRESET);
	recorder_expect(&rig->rec, "");
	for (int i = 0; i < 2; i++)
		SAY(rig, port_bytes, 1, .data = {data, (uint32_t)piece});
	recorder_expect(&rig->rec, "lost(PROTOCOL) ");
	free(data);
}

static void there_is_a_limit_and_ids_are_not_used_twice(void **state)
{
	struct link_rig *rig = *state;
	struct box_port *first = asked(rig), *port = NULL;

	for (int i = 1; i < BOX_PORTS_MAX; i++)
		(void)asked(rig);
	assert_int_equal(try_open(rig, &port), -1);
	assert_int_equal(rig->err.code, ERR_BUSY);
	box_port_reset(first);
	assert_int_equal(rig_hear(rig, MSG_PORT_RESET).id, 1);
	assert_int_equal(try_open(rig, &port), 0);
	assert_int_equal(rig_hear(rig, MSG_PORT_OPEN).id, BOX_PORTS_MAX + 1);
}

static void end_of_the_agent_closes_all(void **state)
{
	struct link_rig *rig = *state;
	struct box_port_list *list = NULL;
	struct box_port *port = NULL;

	(void)asked(rig);
	(void)asked(rig);
	assert_int_equal(link_port_list(rig->link, 0, on_listed, &rig->rec, &list, &rig->err), 0);
	rig->agent = fd_close(rig->agent);
	rig_run(rig);
	recorder_expect(&rig->rec, "closed(AGENT_LOST) closed(AGENT_LOST) listed(AGENT_LOST ) "
	                           "lost(AGENT_LOST) ");
	assert_int_equal(try_open(rig, &port), -1);
	assert_int_equal(rig->err.code, ERR_AGENT_LOST);
}

static struct box_port_list *listing(struct link_rig *rig, uint16_t hidden)
{
	struct box_port_list *list = NULL;

	assert_int_equal(link_port_list(rig->link, hidden, on_listed, &rig->rec, &list, &rig->err),
	                 0);
	(void)rig_hear(rig, MSG_PORT_LIST);
	return list;
}

static void a_listing_is_sorted_and_hides_one(void **state)
{
	struct link_rig *rig = *state;

	(void)listing(rig, 3128);
	SAY(rig, port_found, 1, .port = 9000, .bound = 2);
	SAY(rig, port_found, 1, .port = 3128, .bound = 1);
	SAY(rig, port_found, 1, .port = 80, .bound = 5);
	recorder_expect(&rig->rec, "");
	SAY(rig, port_listed, 1, .truncated = 1);
	recorder_expect(&rig->rec, "listed( 80/5 9000/2 ...) ");
}

static void bad_listings_are_violations(void **state)
{
	static const struct msg_port_found bad[] = {{0, 1}, {1, 0}, {1, 8}};
	struct link_rig *rig = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		(void)listing(rig, 0);
		SAY(rig, port_found, 1, bad[i].port, bad[i].bound);
		recorder_expect(&rig->rec, "listed(PROTOCOL ) lost(PROTOCOL) ");
		(void)rig_teardown(state);
		(void)setup(state);
	}
	(void)listing(rig, 0);
	SAY(rig, port_found, 1, .port = 1, .bound = 1);
	SAY(rig, port_found, 1, .port = 1, .bound = 1);
	SAY(rig, port_listed, 1, .truncated = 0);
	recorder_expect(&rig->rec, "listed(PROTOCOL ) lost(PROTOCOL) ");
}

static void a_listing_has_a_limit(void **state)
{
	struct link_rig *rig = *state;

	(void)listing(rig, 1);
	for (uint16_t i = 0; i < BOX_LISTED_MAX; i++)
		SAY(rig, port_found, 1, .port = (uint16_t)(i + 1), .bound = 1);
	recorder_expect(&rig->rec, "");
	SAY(rig, port_found, 1, .port = 1, .bound = 1);
	recorder_expect(&rig->rec, "listed(PROTOCOL ) lost(PROTOCOL) ");
}

static void a_cancelled_listing_is_dropped(void **state)
{
	struct link_rig *rig = *state;

	box_port_list_cancel(listing(rig, 0));
	SAY(rig, port_found, 1, .port = 1, .bound = 1);
	SAY(rig, port_listed, 1, .truncated = 0);
	recorder_expect(&rig->rec, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_ends_end_a_connection),
		TEST(a_failure_has_the_errno_and_a_code),
		TEST(a_writer_stops_at_the_window),
		TEST(a_reader_gets_what_it_grants),
		TEST(violations_end_the_box),
		TEST(ids_that_were_never_given_are_violations),
		TEST(messages_about_reset_connections_are_dropped),
		TEST(there_is_a_limit_and_ids_are_not_used_twice),
		TEST(end_of_the_agent_closes_all),
		TEST(a_listing_is_sorted_and_hides_one),
		TEST(bad_listings_are_violations),
		TEST(a_listing_has_a_limit),
		TEST(a_cancelled_listing_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
