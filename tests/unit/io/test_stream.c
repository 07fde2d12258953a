/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "io/loop.h"
#include "io/stream.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

struct fixture {
	struct loop *loop;
	struct stream *stream;
	int theirs;
	struct buf seen;
	size_t take;        /* maximum that on_data consumes */
	bool free_in_event; /* on_data frees the stream */
	int datas, ends, sys;
};

static size_t on_data(void *ctx, const char *data, size_t len)
{
	struct fixture *f = ctx;
	size_t used = len < f->take ? len : f->take;

	f->datas++;
	assert_int_equal(buf_add(&f->seen, data, used), 0);
	if (f->free_in_event) {
		stream_free(TAKE_PTR(f->stream));
		assert_int_equal(memcmp(f->seen.data, data, used), 0); /* still readable */
	}
	return used;
}

static void on_end(void *ctx, int sys)
{
	struct fixture *f = ctx;

	f->ends++;
	f->sys = sys;
}

/* A stream whose other end is f->theirs once open() was called. */
static int setup(void **state)
{
	static struct fixture f;
	struct stream_limits limits = {.read_max = 100000, .write_max = 4000000};
	struct stream_events events = {.ctx = &f, .on_data = on_data, .on_end = on_end};

	f = (struct fixture){
		.loop = loop_new(), .theirs = -1, .seen = BUF_INIT(8000000), .take = SIZE_MAX};
	f.stream = stream_new(f.loop, &limits, &events);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	stream_free(f->stream);
	loop_free(f->loop);
	(void)fd_close(f->theirs);
	buf_done(&f->seen);
	return 0;
}

static void open_pair(struct fixture *f)
{
	int pair[2];

	assert_int_equal(fd_socketpair(SOCK_STREAM, pair), 0);
	f->theirs = pair[1];
	stream_open(f->stream, pair[0]);
}

/* Read until @len bytes are there, letting the loop write meanwhile. */
static void read_all(struct fixture *f, char *ret_data, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = recv(f->theirs, ret_data + have, len - have, MSG_DONTWAIT);

		if (n < 0)
			assert_int_equal(errno, EAGAIN);
		else
			have += (size_t)n;
		loop_run_once(f->loop, false);
	}
}

static void bytes_go_both_ways(void **state)
{
	struct fixture *f = *state;
	char got[5];

	open_pair(f);
	assert_int_equal(stream_write(f->stream, "hello", 5), 0);
	assert_int_equal(stream_pending(f->stream), 0); /* sent at once, no round of the loop */
	read_all(f, got, 5);
	assert_memory_equal(got, "hello", 5);
	assert_int_equal(fd_write_all(f->theirs, "world", 5), 0);
	loop_run_once(f->loop, true);
	assert_string_equal(f->seen.data, "world");
}

static void bytes_queued_before_opening_are_sent_first(void **state)
{
	struct fixture *f = *state;
	char got[6];

	assert_int_equal(stream_write(f->stream, "abc", 3), 0);
	assert_int_equal(stream_pending(f->stream), 3);
	assert_int_equal(buf_add(stream_queue(f->stream), "def", 3), 0);
	open_pair(f);
	read_all(f, got, 6);
	assert_memory_equal(got, "abcdef", 6);
}

static void unconsumed_bytes_are_passed_again_with_more(void **state)
{
	struct fixture *f = *state;

	open_pair(f);
	f->take = 2;
	assert_int_equal(fd_write_all(f->theirs, "abc", 3), 0);
	loop_run_once(f->loop, true);
	assert_string_equal(f->seen.data, "ab");
	assert_int_equal(fd_write_all(f->theirs, "d", 1), 0);
	loop_run_once(f->loop, true);
	assert_string_equal(f->seen.data, "abcd");
}

static void a_full_read_buffer_ends_the_stream(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *flood = xcalloc(1, 50000);

	open_pair(f);
	f->take = 0;
	assert_int_equal(fd_write_all(f->theirs, flood, 50000), 0);
	loop_run_once(f->loop, true);
	assert_int_equal(f->ends, 0);
	assert_int_equal(fd_write_all(f->theirs, flood, 50000), 0);
	loop_run_once(f->loop, true);
	assert_int_equal(f->ends, 1);
	assert_int_equal(f->sys, ENOBUFS);
}

static void a_full_queue_refuses_and_keeps_what_it_has(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *data = xcalloc(1, 3000000);

	assert_int_equal(stream_write(f->stream, data, 3000000), 0);
	assert_int_equal(stream_write(f->stream, data, 1000001), -ENOBUFS);
	assert_int_equal(stream_pending(f->stream), 3000000);
	assert_int_equal(stream_write(f->stream, data, 1000000), 0);
}

static void a_long_queue_arrives_whole_and_in_order(void **state)
{
	struct fixture *f = *state;
	const size_t len = 3500000;
	cleanup_free char *sent = xmalloc(len);
	cleanup_free char *got = xmalloc(len);

	for (size_t i = 0; i < len; i++)
		sent[i] = (char)(i * 31 + i / 4096);
	open_pair(f);
	for (size_t at = 0; at < len; at += 500000)
		assert_int_equal(stream_write(f->stream, sent + at, 500000), 0);
	assert_true(stream_pending(f->stream) > 0);
	read_all(f, got, len);
	assert_memory_equal(got, sent, len);
	assert_int_equal(stream_pending(f->stream), 0);
}

static void the_end_comes_after_the_last_bytes_and_once(void **state)
{
	struct fixture *f = *state;

	open_pair(f);
	assert_int_equal(fd_write_all(f->theirs, "last", 4), 0);
	f->theirs = fd_close(f->theirs);
	while (!f->ends)
		loop_run_once(f->loop, true);
	assert_string_equal(f->seen.data, "last");
	assert_int_equal(f->sys, 0);
	loop_run_once(f->loop, false);
	assert_int_equal(f->ends, 1);
	assert_int_equal(stream_write(f->stream, "x", 1), -EPIPE);
}

static void a_dead_peer_is_reported_by_reading_not_by_writing(void **state)
{
	struct fixture *f = *state;

	open_pair(f);
	assert_int_equal(fd_write_all(f->theirs, "last", 4), 0);
	f->theirs = fd_close(f->theirs);
	assert_int_equal(stream_write(f->stream, "x", 1), -EPIPE);
	assert_int_equal(f->ends, 0); /* never from inside the call */
	while (!f->ends)
		loop_run_once(f->loop, true);
	assert_string_equal(f->seen.data, "last");
}

static void nothing_follows_a_close(void **state)
{
	struct fixture *f = *state;

	open_pair(f);
	assert_int_equal(fd_write_all(f->theirs, "x", 1), 0);
	stream_close(f->stream);
	loop_run_once(f->loop, false);
	assert_int_equal(f->datas + f->ends, 0);
	/* The socket is closed, not only silent. */
	assert_int_equal(send(f->theirs, "x", 1, MSG_NOSIGNAL), -1);
	stream_drain(f->stream);
	assert_int_equal(f->datas + f->ends, 0);
}

static void a_stream_may_be_freed_by_its_own_callback(void **state)
{
	struct fixture *f = *state;

	open_pair(f);
	f->free_in_event = true;
	assert_int_equal(fd_write_all(f->theirs, "x", 1), 0);
	loop_run_once(f->loop, true);
	loop_run_once(f->loop, false);
	assert_null(f->stream);
	assert_int_equal(f->datas, 1);
	assert_int_equal(f->ends, 0);
}

static void drain_reads_all_available_bytes(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *data = xcalloc(1, 150000);

	open_pair(f);
	assert_int_equal(fd_write_all(f->theirs, data, 150000), 0);
	stream_drain(f->stream);
	assert_int_equal(f->seen.len, 150000);
	assert_int_equal(f->ends, 0);
	f->theirs = fd_close(f->theirs);
	stream_drain(f->stream);
	assert_int_equal(f->ends, 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bytes_go_both_ways),
		TEST(bytes_queued_before_opening_are_sent_first),
		TEST(unconsumed_bytes_are_passed_again_with_more),
		TEST(a_full_read_buffer_ends_the_stream),
		TEST(a_full_queue_refuses_and_keeps_what_it_has),
		TEST(a_long_queue_arrives_whole_and_in_order),
		TEST(the_end_comes_after_the_last_bytes_and_once),
		TEST(a_dead_peer_is_reported_by_reading_not_by_writing),
		TEST(nothing_follows_a_close),
		TEST(a_stream_may_be_freed_by_its_own_callback),
		TEST(drain_reads_all_available_bytes),
	};

	return cmocka_run_group_tests_name("io/stream", tests, NULL, NULL);
}
