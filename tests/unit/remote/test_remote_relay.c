/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/relay.h"
#include "unit.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "io/loop.h"
#include "remote/remote.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define PIECE 4096

struct rig {
	struct loop *loop;
	struct relay *relay;
	int daemon, server; /* what the relay connects */
	int ended;          /* how often */
	int sys;
};

static ssize_t read_plain(struct remote_stream *s, char *data, size_t size)
{
	ssize_t n = recv(s->fd, data, size, MSG_DONTWAIT);

	return n < 0 ? -errno : n;
}

static ssize_t write_plain(struct remote_stream *s, const char *data, size_t len)
{
	ssize_t n = send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	return n < 0 ? -errno : n;
}

static void free_plain(struct remote_stream *s)
{
	(void)fd_close(s->fd);
	free(s);
}

/* The relay may be freed here, as its owner does. */
static void on_end(void *ctx, int sys)
{
	struct rig *rig = ctx;

	rig->ended++;
	rig->sys = sys;
	relay_free(TAKE_PTR(rig->relay));
}

static void open_rig(struct rig *rig)
{
	struct remote_stream *far = NEW(struct remote_stream);
	int near[2], there[2];

	*rig = (struct rig){.loop = loop_new()};
	assert_int_equal(fd_socketpair(SOCK_STREAM, near), 0);
	assert_int_equal(fd_socketpair(SOCK_STREAM, there), 0);
	rig->daemon = near[0];
	rig->server = there[0];
	assert_int_equal(fd_set_nonblock(rig->daemon, true), 0);
	assert_int_equal(fd_set_nonblock(rig->server, true), 0);
	*far = (struct remote_stream){there[1], read_plain, write_plain, free_plain};
	rig->relay = relay_new(rig->loop, near[1], far, on_end, rig);
}

static void close_rig(struct rig *rig)
{
	relay_free(rig->relay);
	(void)fd_close(rig->daemon);
	(void)fd_close(rig->server);
	loop_free(rig->loop);
}

static void turn(struct rig *rig)
{
	for (int i = 0; i < 8; i++)
		loop_run_once(rig->loop, false);
}

static void expect_bytes(int fd, const char *text)
{
	char got[64];
	ssize_t n = recv(fd, got, sizeof(got), MSG_DONTWAIT);

	assert_int_equal(n, strlen(text));
	assert_memory_equal(got, text, strlen(text));
}

static void bytes_pass_in_both_directions(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	assert_int_equal(send(rig.daemon, "down", 4, 0), 4);
	assert_int_equal(send(rig.server, "up", 2, 0), 2);
	turn(&rig);
	expect_bytes(rig.server, "down");
	expect_bytes(rig.daemon, "up");
	assert_int_equal(rig.ended, 0);
	close_rig(&rig);
}

/* Fill until nothing moves any more. Return: bytes. */
static size_t fill(struct rig *rig, int fd)
{
	static const char piece[PIECE] = "x";
	size_t sent = 0, before;

	do {
		ssize_t n = 0;

		before = sent;
		while ((n = send(fd, piece, sizeof(piece), MSG_DONTWAIT)) > 0)
			sent += (size_t)n;
		turn(rig);
	} while (sent > before);
	return sent;
}

static size_t drain(struct rig *rig, int fd)
{
	static char piece[PIECE];
	size_t got = 0;

	for (int idle = 0; idle < 3; idle++) {
		ssize_t n;

		while ((n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT)) > 0) {
			got += (size_t)n;
			idle = 0;
		}
		turn(rig);
	}
	return got;
}

static void a_side_that_does_not_read_stops_the_other(void **state)
{
	struct rig rig;
	size_t sent;

	(void)state;
	open_rig(&rig);
	sent = fill(&rig, rig.server);
	/* Two sockets and a buffer, not everything that a program prints. */
	assert_in_range(sent, 1, 8 << 20);
	/* The other direction still works. */
	assert_int_equal(send(rig.daemon, "stop", 4, 0), 4);
	turn(&rig);
	expect_bytes(rig.server, "stop");
	assert_int_equal(drain(&rig, rig.daemon), sent);
	close_rig(&rig);
}

static void the_last_words_of_the_server_arrive_before_its_end(void **state)
{
	struct rig rig;
	size_t sent;

	(void)state;
	open_rig(&rig);
	sent = fill(&rig, rig.server);
	rig.server = fd_close(rig.server);
	turn(&rig);
	assert_int_equal(rig.ended, 0);
	assert_int_equal(drain(&rig, rig.daemon), sent);
	assert_int_equal(rig.ended, 1);
	assert_int_equal(recv(rig.daemon, (char[1]){0}, 1, 0), 0);
	close_rig(&rig);
}

static void a_server_that_does_not_listen_any_more_may_still_speak(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	assert_int_equal(shutdown(rig.server, SHUT_RD), 0);
	assert_int_equal(send(rig.daemon, "lost", 4, 0), 4);
	turn(&rig);
	assert_int_equal(rig.ended, 0);
	assert_int_equal(send(rig.server, "words", 5, 0), 5);
	turn(&rig);
	expect_bytes(rig.daemon, "words");
	close_rig(&rig);
}

static void the_end_of_the_daemon_is_the_end(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	rig.daemon = fd_close(rig.daemon);
	turn(&rig);
	assert_int_equal(rig.ended, 1);
	close_rig(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_pass_in_both_directions),
		cmocka_unit_test(a_side_that_does_not_read_stops_the_other),
		cmocka_unit_test(the_last_words_of_the_server_arrive_before_its_end),
		cmocka_unit_test(a_server_that_does_not_listen_any_more_may_still_speak),
		cmocka_unit_test(the_end_of_the_daemon_is_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
