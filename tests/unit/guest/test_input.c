/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "guest/input.h"

struct fixture {
	struct channel ch;
	struct input in;
	int end;
	char data[WIRE_STDIN_WINDOW + 1];
};

static int open_fixture(void **state)
{
	struct fixture *f = NEW(struct fixture);

	(void)signal(SIGPIPE, SIG_IGN);
	buf_init(&f->ch.out, CHANNEL_MAX_BYTES);
	assert_int_equal(input_open(&f->in, &f->end), 0);
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	input_close(&f->in);
	(void)fd_close(f->end);
	channel_done(&f->ch);
	free(f);
	return 0;
}

/* Return: the room reported in all messages so far. */
static uint32_t room_told(struct fixture *f)
{
	uint32_t total = 0;
	size_t pos = 0;

	while (pos < f->ch.out.len) {
		struct frame frame;
		struct msg_stdin_room msg;
		int n = frame_parse(f->ch.out.data + pos, f->ch.out.len - pos, &frame);
		assert_true(n > 0);
		assert_int_equal(msg_stdin_room_decode(&frame, &msg), 0);
		total += msg.bytes;
		pos += (size_t)n;
	}
	return total;
}

static int add(struct fixture *f, uint32_t len)
{
	return input_add(&f->in, &(struct wire_bytes){f->data, len});
}

static void room_is_returned_for_bytes_the_pipe_took(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, 1000), 0);
	assert_true(input_wants(&f->in));
	assert_int_equal(input_pump(&f->in, &f->ch, 1), 0);
	assert_false(input_wants(&f->in));
	assert_int_equal(room_told(f), 1000);
}

static void the_window_holds_whatever_the_program_reads(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, WIRE_STDIN_WINDOW), 0);
	assert_int_equal(input_pump(&f->in, &f->ch, 1), 0);
	uint32_t room = room_told(f);
	assert_true(room > 0 && room < WIRE_STDIN_WINDOW); /* the pipe is smaller */
	assert_int_equal(add(f, room + 1), -EPROTO);
	assert_int_equal(add(f, room), 0);
}

static void bytes_for_a_closed_stdin_return_as_room(void **state)
{
	struct fixture *f = *state;

	f->end = fd_close(f->end);
	assert_int_equal(add(f, 5000), 0);
	assert_int_equal(input_pump(&f->in, &f->ch, 1), 0);
	assert_int_equal(room_told(f), 5000);
	assert_int_equal(f->in.fd, -1);
	assert_int_equal(add(f, 300), 0);
	assert_int_equal(input_pump(&f->in, &f->ch, 1), 0);
	assert_int_equal(room_told(f), 5300);
}

static void the_end_comes_after_the_last_byte(void **state)
{
	struct fixture *f = *state;
	char got[16];

	assert_int_equal(add(f, 3), 0);
	input_end(&f->in);
	assert_true(f->in.fd >= 0);
	assert_int_equal(input_pump(&f->in, &f->ch, 1), 0);
	assert_int_equal(f->in.fd, -1);
	assert_int_equal(read(f->end, got, sizeof(got)), 3);
	assert_int_equal(read(f->end, got, sizeof(got)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(room_is_returned_for_bytes_the_pipe_took,
	                                        open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(the_window_holds_whatever_the_program_reads,
	                                        open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(bytes_for_a_closed_stdin_return_as_room,
	                                        open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(the_end_comes_after_the_last_byte, open_fixture,
	                                        close_fixture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
