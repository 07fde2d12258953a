/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a server on a loop and clients with plain sockets, in one thread: waiting for bytes runs the
 * loop. Tests wait for events with a generous deadline, never for a time.
 */

#include "unit.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "http/server.h"
#include "io/loop.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define PEER_PATIENCE_US (10 * USEC_PER_SEC)
#define PEER_BUF_MAX     (64u << 20)

static inline void peer_turn(struct loop *loop)
{
	loop_run_once(loop, false);
	(void)poll(NULL, 0, 1);
}

/* Runs the loop until @done(@ctx), or fails the test. */
static inline void peer_wait(struct loop *loop, bool (*done)(void *ctx), void *ctx)
{
	uint64_t deadline = clock_us() + PEER_PATIENCE_US;

	while (!done(ctx)) {
		assert_true(clock_us() < deadline);
		peer_turn(loop);
	}
}

static inline int peer_connect(int port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
	                           .sin_port = htons((uint16_t)port),
	                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = fd_socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* Return: whether all of it was sent; false when the server cut the connection. */
static inline bool peer_send(struct loop *loop, int fd, const char *data, size_t len)
{
	uint64_t deadline = clock_us() + PEER_PATIENCE_US;

	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		assert_true(clock_us() < deadline);
		if (n < 0 && errno != EAGAIN)
			return false;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		} else {
			peer_turn(loop);
		}
	}
	return true;
}

static inline bool peer_say(struct loop *loop, int fd, const char *text)
{
	return peer_send(loop, fd, text, strlen(text));
}

/* Reads until @text appears (NULL: until EOF). Return: whether it did. */
static inline bool peer_read(struct loop *loop, int fd, struct buf *b, const char *text)
{
	uint64_t deadline = clock_us() + PEER_PATIENCE_US;

	for (;;) {
		char piece[65536];
		ssize_t n;

		if (text && b->len > 0 && memmem(b->data, b->len, text, strlen(text)))
			return true;
		n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);
		assert_true(clock_us() < deadline);
		if (n > 0)
			assert_int_equal(buf_add(b, piece, (size_t)n), 0);
		else if (n == 0 || errno != EAGAIN)
			return !text && n == 0;
		else
			peer_turn(loop);
	}
}
