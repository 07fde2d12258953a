/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/channel.h"
#include "egress/flow.h"
#include "unit.h"

#include "base/fd.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* A flow between two sockets, with their other ends. */
struct rig {
	int sender, receiver;
	struct channel from, to;
	struct flow flow;
};

static void setup(struct rig *r)
{
	int from[2], to[2];

	assert_int_equal(fd_socketpair(SOCK_STREAM, from), 0);
	assert_int_equal(fd_socketpair(SOCK_STREAM, to), 0);
	r->sender = from[0];
	r->receiver = to[0];
	r->from = (struct channel){.fd = from[1]};
	r->to = (struct channel){.fd = to[1]};
	flow_init(&r->flow, &r->from, &r->to);
}

static void teardown(struct rig *r)
{
	const int fds[] = {r->sender, r->receiver, r->from.fd, r->to.fd};

	for (size_t i = 0; i < 4; i++)
		(void)fd_close(fds[i]);
	flow_done(&r->flow);
}

static void put(const struct rig *r, const char *text)
{
	assert_int_equal(send(r->sender, text, strlen(text), 0), (ssize_t)strlen(text));
}

/* What the receiver has: @text, or with NULL the end. */
static void expect(const struct rig *r, const char *text)
{
	char data[64];
	ssize_t n = recv(r->receiver, data, sizeof(data), MSG_DONTWAIT);

	assert_int_equal(n, text ? (ssize_t)strlen(text) : 0);
	if (text)
		assert_memory_equal(data, text, (size_t)n);
}

static void bytes_and_the_end_pass(void **state)
{
	struct rig r;
	size_t moved;

	(void)state;
	setup(&r);
	assert_int_equal(flow_pump(&r.flow, SIZE_MAX, &moved), 0);
	assert_int_equal(moved, 0);
	put(&r, "hello");
	assert_int_equal(flow_pump(&r.flow, SIZE_MAX, &moved), 0);
	assert_int_equal(moved, 5);
	expect(&r, "hello");
	assert_true(flow_wants_read(&r.flow));
	assert_int_equal(shutdown(r.sender, SHUT_WR), 0);
	assert_int_equal(flow_pump(&r.flow, SIZE_MAX, &moved), 0);
	assert_true(r.flow.ended && r.flow.finished);
	assert_false(flow_wants_read(&r.flow));
	expect(&r, NULL);
	teardown(&r);
}

static void no_more_than_asked_is_moved(void **state)
{
	struct rig r;
	size_t moved;

	(void)state;
	setup(&r);
	put(&r, "hello");
	assert_int_equal(flow_pump(&r.flow, 0, &moved), 0);
	assert_int_equal(moved, 0);
	assert_int_equal(flow_pump(&r.flow, 2, &moved), 0);
	assert_int_equal(moved, 2);
	expect(&r, "he");
	assert_int_equal(flow_pump(&r.flow, SIZE_MAX, &moved), 0);
	expect(&r, "llo");
	teardown(&r);
}

/* The receiver does not read: the flow takes one piece, not more, and passes the end behind it. */
static void a_slow_receiver_costs_one_piece(void **state)
{
	static char block[FLOW_CHUNK];
	struct rig r;
	size_t moved, total = 0, got = 0;
	ssize_t n;

	(void)state;
	setup(&r);
	do {
		(void)!send(r.sender, block, sizeof(block), MSG_DONTWAIT);
		assert_int_equal(flow_pump(&r.flow, SIZE_MAX, &moved), 0);
		total += moved;
	} while (moved > 0);
	assert_true(flow_wants_write(&r.flow));
	assert_false(flow_wants_read(&r.flow));
	assert_in_range(r.flow.waiting.len, 1, FLOW_CHUNK);
	assert_int_equal(shutdown(r.sender, SHUT_WR), 0);
	while (!r.flow.finished) {
		n = recv(r.receiver, block, sizeof(block), MSG_DONTWAIT);
		got += n > 0 ? (size_t)n : 0;
		assert_int_equal(flow_pump(&r.flow, SIZE_MAX, &moved), 0);
		total += moved;
	}
	while ((n = recv(r.receiver, block, sizeof(block), 0)) > 0)
		got += (size_t)n;
	assert_int_equal(n, 0);
	assert_int_equal(got, total);
	assert_null(r.flow.waiting.data); /* an idle flow has no memory */
	teardown(&r);
}

static void a_receiver_that_is_gone_is_an_error(void **state)
{
	struct rig r;
	size_t moved;

	(void)state;
	setup(&r);
	put(&r, "hello");
	r.receiver = fd_close(r.receiver);
	assert_int_equal(flow_pump(&r.flow, SIZE_MAX, &moved), -EPIPE);
	teardown(&r);
}

/* Passes three bytes; '!' is malformed. */
static int64_t three(void *ctx, const char *data, size_t len, bool *ret_done)
{
	size_t *left = ctx;

	if (data[0] == '!')
		return -1;
	if (len > *left)
		len = *left;
	*left -= len;
	*ret_done = *left == 0;
	return (int64_t)len;
}

static void a_filter_ends_a_flow(void **state)
{
	struct rig r;
	size_t moved, left = 3;

	(void)state;
	setup(&r);
	r.flow.filter = three;
	r.flow.filter_ctx = &left;
	put(&r, "abcdef");
	assert_int_equal(flow_pump(&r.flow, SIZE_MAX, &moved), 0);
	assert_true(r.flow.ended && r.flow.finished);
	expect(&r, "abc");
	put(&r, "more");
	assert_int_equal(flow_pump(&r.flow, SIZE_MAX, &moved), 0);
	assert_int_equal(moved, 0);
	/* The receiver does not get the end of the flow: it has an answer to send. */
	assert_int_equal(recv(r.receiver, &(char){0}, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	teardown(&r);
}

static void a_filter_refuses(void **state)
{
	struct rig r;
	size_t moved, left = 3;

	(void)state;
	setup(&r);
	r.flow.filter = three;
	r.flow.filter_ctx = &left;
	put(&r, "!");
	assert_int_equal(flow_pump(&r.flow, SIZE_MAX, &moved), -EPROTO);
	assert_int_equal(recv(r.receiver, &(char){0}, 1, MSG_DONTWAIT), -1);
	teardown(&r);
}

/* A flow that fills a turn gets a pipe; what the receiver does not take waits there. */
static void a_large_flow_goes_through_a_pipe(void **state)
{
	static char block[FLOW_CHUNK], got[FLOW_CHUNK];
	struct flow_pipes pipes = {0};
	size_t sent = 0, received = 0, moved;
	struct rig r;

	(void)state;
	setup(&r);
	assert_int_equal(fd_set_nonblock(r.from.fd, true), 0);
	assert_int_equal(fd_set_nonblock(r.to.fd, true), 0);
	flow_set_pipes(&r.flow, &pipes);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)(i % 251);
	while (received < 16 * sizeof(block)) {
		ssize_t n = send(r.sender, block + sent % sizeof(block),
		                 sizeof(block) - sent % sizeof(block), MSG_DONTWAIT);

		sent += n > 0 && sent < 16 * sizeof(block) ? (size_t)n : 0;
		assert_int_equal(flow_pump(&r.flow, SIZE_MAX, &moved), 0);
		assert_true(flow_wants_read(&r.flow) || flow_wants_write(&r.flow));
		n = recv(r.receiver, got, 50000, MSG_DONTWAIT);
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(got[i], block[(received + (size_t)i) % sizeof(block)]);
		received += n > 0 ? (size_t)n : 0;
	}
	assert_int_equal(pipes.used, 1);
	teardown(&r);
	assert_int_equal(pipes.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_flow_goes_through_a_pipe),
		cmocka_unit_test(bytes_and_the_end_pass),
		cmocka_unit_test(no_more_than_asked_is_moved),
		cmocka_unit_test(a_slow_receiver_costs_one_piece),
		cmocka_unit_test(a_receiver_that_is_gone_is_an_error),
		cmocka_unit_test(a_filter_ends_a_flow),
		cmocka_unit_test(a_filter_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
