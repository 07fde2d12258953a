/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "guest/output.h"

struct fixture {
	struct channel ch;
	struct output out;
	int end;
	int host;
};

static int open_fixture(void **state)
{
	struct fixture *f = NEW(struct fixture);
	int ends[2];

	assert_int_equal(fd_socketpair(SOCK_STREAM, ends), 0);
	assert_int_equal(channel_init(&f->ch, ends[0], -1), 0);
	f->host = ends[1];
	assert_int_equal(output_open(&f->out, WIRE_STDERR, 10, &f->end), 0);
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	output_close(&f->out);
	(void)fd_close(f->end);
	(void)fd_close(f->host);
	(void)fd_close(f->ch.fd);
	channel_done(&f->ch);
	free(f);
	return 0;
}

static struct msg_output sent(struct fixture *f)
{
	struct frame frame;
	struct msg_output msg;

	assert_true(frame_parse(f->ch.out.data, f->ch.out.len, &frame) > 0);
	assert_int_equal(frame.id, 7);
	assert_int_equal(msg_output_decode(&frame, &msg), 0);
	return msg;
}

static void accounting_forwards_up_to_the_maximum_and_counts_the_rest(void **state)
{
	struct output o = {.max = 100};

	(void)state;
	assert_int_equal(output_account(&o, 60), 60);
	assert_int_equal(output_account(&o, 60), 40);
	assert_int_equal(output_account(&o, 60), 0);
	assert_int_equal(o.produced, 180);
}

static void a_maximum_of_zero_forwards_nothing(void **state)
{
	struct output o = {.max = 0};

	(void)state;
	assert_int_equal(output_account(&o, 5), 0);
	assert_int_equal(o.produced, 5);
}

static void bytes_are_forwarded_with_stream_and_id(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fd_write_all(f->end, "hello", 5), 0);
	assert_int_equal(output_pump(&f->out, &f->ch, 7), 5);
	struct msg_output msg = sent(f);
	assert_int_equal(msg.stream, WIRE_STDERR);
	assert_int_equal(msg.data.len, 5);
	assert_memory_equal(msg.data.data, "hello", 5);
}

static void the_excess_is_read_but_not_sent(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fd_write_all(f->end, "0123456789abc", 13), 0);
	assert_int_equal(output_pump(&f->out, &f->ch, 7), 13);
	assert_int_equal(sent(f).data.len, 10);
	buf_reset(&f->ch.out);
	assert_int_equal(fd_write_all(f->end, "more", 4), 0);
	assert_int_equal(output_pump(&f->out, &f->ch, 7), 4);
	assert_int_equal(f->ch.out.len, 0);
	assert_int_equal(f->out.produced, 17);
}

static void an_empty_pipe_is_not_its_end(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(output_pump(&f->out, &f->ch, 7), 0);
	assert_true(f->out.fd >= 0);
	f->end = fd_close(f->end);
	assert_int_equal(output_pump(&f->out, &f->ch, 7), 0);
	assert_int_equal(f->out.fd, -1);
}

static void a_full_channel_stops_only_what_would_be_forwarded(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *fill = xcalloc(1, CHANNEL_HIGH_BYTES);

	assert_true(output_wants(&f->out, &f->ch));
	assert_int_equal(buf_add(&f->ch.out, fill, CHANNEL_HIGH_BYTES), 0);
	assert_false(output_wants(&f->out, &f->ch));
	f->out.produced = 10;
	assert_true(output_wants(&f->out, &f->ch));
}

static void partly_sent_frames_continue_where_they_stopped(void **state)
{
	struct fixture *f = *state;
	size_t total = CHANNEL_HIGH_BYTES + 12345;
	cleanup_free char *bytes = xcalloc(1, total);
	cleanup_free char *got = xcalloc(1, total);
	size_t have = 0;

	for (size_t i = 0; i < total; i++)
		bytes[i] = (char)(i * 31 + i / 255);
	assert_int_equal(buf_add(&f->ch.out, bytes, total), 0);
	while (have < total) {
		assert_int_equal(channel_flush(&f->ch), 0);
		ssize_t n = recv(f->host, got + have, total - have, MSG_DONTWAIT);
		assert_true(n > 0);
		have += (size_t)n;
	}
	assert_memory_equal(got, bytes, total);
	assert_int_equal(channel_flush(&f->ch), 0);
	assert_false(channel_has_output(&f->ch));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accounting_forwards_up_to_the_maximum_and_counts_the_rest),
		cmocka_unit_test(a_maximum_of_zero_forwards_nothing),
		cmocka_unit_test_setup_teardown(bytes_are_forwarded_with_stream_and_id,
	                                        open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(the_excess_is_read_but_not_sent, open_fixture,
	                                        close_fixture),
		cmocka_unit_test_setup_teardown(an_empty_pipe_is_not_its_end, open_fixture,
	                                        close_fixture),
		cmocka_unit_test_setup_teardown(a_full_channel_stops_only_what_would_be_forwarded,
	                                        open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(partly_sent_frames_continue_where_they_stopped,
	                                        open_fixture, close_fixture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
