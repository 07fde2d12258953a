/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include "base/map.h"
#include "http/internal.h"

#include <sys/un.h>
#include <unistd.h>

static void an_announced_body_over_the_limit_is_refused_unread(void **state)
{
	struct fixture *f = *state;

	expect_answer(f, "POST /x HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n", " 413 ",
	              "exceeds 1000 bytes");
	expect_answer(f, "POST /x HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999\r\n\r\n",
	              " 413 ", "exceeds 1000 bytes");
	expect_answer(f,
	              "POST /x HTTP/1.1\r\n" HOST
	              "Expect: 100-continue\r\nContent-Length: 1001\r\n\r\n",
	              " 413 ", "exceeds 1000 bytes");
	assert_int_equal(f->requests, 0);
}

static void a_client_that_sends_a_large_body_anyway_reads_the_refusal(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);
	cleanup_free char *big = xcalloc(1, BIG_LEN);

	assert_true(peer_say(f->loop, fd,
	                     "POST /x HTTP/1.1\r\n" HOST "Content-Length: 4194304\r\n\r\n"));
	assert_true(peer_send(f->loop, fd, big, BIG_LEN));
	/* To EOF, not just to the text: a reset would show as an error of recv. */
	assert_true(peer_read(f->loop, fd, &b, NULL));
	assert_non_null(strstr(b.data, " 413 "));
	assert_int_equal(f->requests, 0);
}

static void a_body_that_grows_over_the_limit_is_refused(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf answer = BUF_INIT(PEER_BUF_MAX);
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

	assert_int_equal(
		buf_add_str(&b, "POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"),
		0);
	/* Unterminated: the response does not wait for the rest. */
	for (int i = 0; i < 200000; i++)
		assert_int_equal(buf_add_str(&b, "1\r\na\r\n"), 0);
	exchange(f, b.data, &answer, NULL);
	assert_int_equal(strncmp(answer.data, "HTTP/1.1 413 ", 13), 0);
	assert_non_null(strstr(answer.data, "exceeds 1000 bytes"));
	assert_non_null(strstr(answer.data, "X-Request-ID: "));
	assert_int_equal(f->requests, 0);
}

static void bodies_of_all_requests_together_are_bounded(void **state)
{
	struct fixture *f = *state;
	char most[MAX_BODY - 1];
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	int fds[3];

	memset(most, 'x', sizeof(most));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = peer_connect(f->port);
		assert_true(peer_say(f->loop, fds[i],
		                     "POST /x HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n"));
		assert_true(peer_send(f->loop, fds[i], most, sizeof(most)));
	}
	assert_true(peer_read(f->loop, fds[2], &b, "too many bytes"));
	assert_non_null(strstr(b.data, "HTTP/1.1 429 "));
	/* The others are not affected. */
	assert_true(peer_say(f->loop, fds[0], "x"));
	while (f->requests == 0)
		peer_turn(f->loop);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
	peer_wait(f->loop, is_empty, f);
}

/* All but the last byte of a body of MAX_BODY. */
static int begin_body(struct fixture *f, const char *quota)
{
	char most[MAX_BODY - 1], head[160];
	int fd = peer_connect(f->port);

	memset(most, 'x', sizeof(most));
	(void)snprintf(head, sizeof(head),
	               "POST /x HTTP/1.1\r\n" HOST "X-Quota: %s\r\nContent-Length: 1000\r\n\r\n",
	               quota);
	assert_true(peer_say(f->loop, fd, head));
	assert_true(peer_send(f->loop, fd, most, sizeof(most)));
	return fd;
}

static void a_caller_that_fills_the_body_quota_leaves_others_their_share(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf refused = BUF_INIT(PEER_BUF_MAX);
	cleanup_buf struct buf served = BUF_INIT(PEER_BUF_MAX);
	int fds[4];

	fds[0] = begin_body(f, "greedy");
	fds[1] = begin_body(f, "greedy");
	fds[2] = begin_body(f, "greedy");
	assert_true(peer_read(f->loop, fds[2], &refused, "too many bytes"));
	/* The limit is used up, but another quota has its share. */
	fds[3] = begin_body(f, "modest");
	assert_true(peer_say(f->loop, fds[3], "x"));
	assert_true(peer_read(f->loop, fds[3], &served, "HTTP/1.1 200 "));
	/* Released bytes are available again. */
	assert_true(peer_say(f->loop, fds[0], "x"));
	assert_true(peer_say(f->loop, fds[1], "x"));
	while (f->requests < 3)
		peer_turn(f->loop);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
	peer_wait(f->loop, is_empty, f);
	fds[0] = begin_body(f, "greedy");
	assert_true(peer_say(f->loop, fds[0], "x"));
	while (f->requests < 4)
		peer_turn(f->loop);
	fd_close(fds[0]);
	peer_wait(f->loop, is_empty, f);
}

static void large_headers_are_refused(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf many = BUF_INIT(PEER_BUF_MAX);
	cleanup_buf struct buf large = BUF_INIT(PEER_BUF_MAX);
	cleanup_buf struct buf answer = BUF_INIT(PEER_BUF_MAX);

	assert_int_equal(buf_add_str(&many, "GET /x HTTP/1.1\r\n" HOST), 0);
	for (int i = 0; i < 101; i++)
		assert_int_equal(buf_addf(&many, "X-%d: y\r\n", i), 0);
	assert_int_equal(buf_add_str(&many, "\r\n"), 0);
	expect_answer(f, many.data, " 413 ", "header exceeds");
	assert_int_equal(buf_addf(&large, "GET /x HTTP/1.1\r\n" HOST "X: %09000d\r\n\r\n", 1), 0);
	expect_answer(f, large.data, " 413 ", "header exceeds");
	/* More than a connection's memory: microhttpd's own response. */
	buf_reset(&large);
	assert_int_equal(buf_addf(&large, "GET /x HTTP/1.1\r\n" HOST "X: %0100000d\r\n\r\n", 1), 0);
	exchange(f, large.data, &answer, NULL);
	assert_true(!answer.data || strstr(answer.data, "HTTP/1.1 4"));
	assert_int_equal(f->requests, 0);
}

static void add_many(struct buf *b, const char *text, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(buf_add_str(b, text), 0);
}

static void a_request_with_many_arguments_is_answered_at_once(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf few = BUF_INIT(PEER_BUF_MAX);
	cleanup_buf struct buf many = BUF_INIT(PEER_BUF_MAX);

	add_many(&few, "GET /x?q", 1);
	add_many(&few, "&a=1", 99);
	add_many(&few, " HTTP/1.1\r\n" HOST "\r\n", 1);
	expect_answer(f, few.data, " 200 ", "/x");
	/* Its header is unterminated: the response does not wait for the rest. */
	add_many(&many, "GET /x?q", 1);
	add_many(&many, "&a=1", 600);
	add_many(&many, " HTTP/1.1\r\n" HOST, 1);
	expect_answer(f, many.data, " 413 ", "more than 100 arguments");
	/* Terminated: nothing follows the response, and the connection ends. */
	add_many(&many, "\r\n", 1);
	buf_reset(&few);
	exchange(f, many.data, &few, NULL);
	assert_non_null(few.data);
	assert_string_equal(few.data + few.len - strlen("arguments"), "arguments");
	assert_int_equal(f->requests, 1);
	peer_wait(f->loop, is_empty, f);
}

static void any_header_within_its_limit_is_accepted(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

	add_many(&b, "GET /x?q", 1);
	add_many(&b, "&a=1", 99);
	add_many(&b, " HTTP/1.1\r\n" HOST, 1);
	for (int i = 0; i < 90; i++)
		assert_int_equal(buf_addf(&b, "X-%d: yyyyyyyyyyyyyyyyyyyy\r\n", i), 0);
	add_many(&b, "Cookie: q=1", 1);
	add_many(&b, "; a=1", 500);
	add_many(&b, "\r\n\r\n", 1);
	expect_answer(f, b.data, " 200 ", "/x");
	buf_reset(&b);
	assert_int_equal(buf_addf(&b, "GET /x HTTP/1.1\r\n" HOST "Cookie: q=%08000d\r\n\r\n", 1),
	                 0);
	expect_answer(f, b.data, " 200 ", "/x");
}

static void a_client_that_drips_is_cut(void **state)
{
	struct fixture *f = *state;
	uint64_t start_us = clock_us();
	cleanup_close int fd = peer_connect(f->port);
	bool open = peer_say(f->loop, fd, "GET /x HTTP/1.1\r\n" HOST "X: ");

	while (open && clock_us() - start_us < PEER_PATIENCE_US) {
		open = peer_say(f->loop, fd, "y");
		peer_turn(f->loop);
	}
	assert_false(open);
	assert_true(clock_us() - start_us >= TIMEOUT_US);
	assert_int_equal(f->requests, 0);
}

static void a_body_that_drips_is_cut(void **state)
{
	struct fixture *f = *state;
	uint64_t start_us = clock_us();
	cleanup_close int fd = peer_connect(f->port);
	bool open =
		peer_say(f->loop, fd, "POST /x HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n");

	while (open && clock_us() - start_us < PEER_PATIENCE_US) {
		open = peer_say(f->loop, fd, "y");
		peer_turn(f->loop);
	}
	assert_false(open);
	assert_int_equal(f->requests, 0);
}

static void an_idle_connection_is_closed(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close attr_unused int quiet = peer_connect(f->port);
	cleanup_close int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, "GET /x HTTP/1.1\r\n" HOST "\r\n"));
	assert_true(peer_read(f->loop, fd, &b, "/x"));
	peer_wait(f->loop, is_empty, f);
}

static void a_waiting_request_has_no_time_out(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);
	uint64_t end_us;

	assert_true(peer_say(f->loop, fd, "GET /later HTTP/1.1\r\n" HOST "\r\n"));
	peer_wait(f->loop, is_waiting, f);
	end_us = clock_us() + TIMEOUT_US * 2;
	while (clock_us() < end_us)
		peer_turn(f->loop);
	assert_int_equal(f->gone, 0);
	reply_text(f->waiting, "at last");
	f->waiting = NULL;
	assert_true(peer_read(f->loop, fd, &b, "at last"));
}

static void a_client_that_does_not_take_its_answer_is_cut(void **state)
{
	struct fixture *f = *state;
	const int small = 4096;
	int fd = fd_socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in addr = {.sin_family = AF_INET,
	                           .sin_port = htons((uint16_t)f->port),
	                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_true(peer_say(f->loop, fd, "GET /big HTTP/1.1\r\n" HOST "\r\n"));
	while (f->requests == 0)
		peer_turn(f->loop);
	peer_wait(f->loop, is_empty, f);
	fd_close(fd);
}

static void an_unread_stream_is_bounded(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *big = xcalloc(1, BIG_LEN);
	cleanup_close int fd = peer_connect(f->port);
	int r = 0, pieces = 0;

	assert_true(peer_say(f->loop, fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n"));
	peer_wait(f->loop, is_waiting, f);
	while (r == 0 && pieces < 100) {
		r = http_stream_write(f->waiting, big, BIG_LEN);
		pieces++;
		for (int turns = 0; turns < 5; turns++)
			peer_turn(f->loop);
	}
	assert_int_equal(r, -ENOBUFS);
	assert_true(pieces <= 10);
	peer_wait(f->loop, has_gone, f);
	peer_wait(f->loop, is_empty, f);
}

/* Requests @path and reads nothing of the response. */
static int ask_and_sleep(struct fixture *f, const char *path)
{
	cleanup_free char *text =
		xasprintf("GET %s HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", path);
	const int small = 4096;
	int fd = fd_socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in addr = {.sin_family = AF_INET,
	                           .sin_port = htons((uint16_t)f->port),
	                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	unsigned before = f->requests;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_true(peer_say(f->loop, fd, text));
	while (f->requests == before)
		peer_turn(f->loop);
	for (int turns = 0; turns < 5; turns++)
		peer_turn(f->loop);
	return fd;
}

static void unread_responses_are_bounded_together(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	int fds[4];

	/* Two fit; each further one cuts off the one that has waited longest. */
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = ask_and_sleep(f, "/big");
	assert_int_equal(http_server_connections(f->server), 2);
	(void)peer_read(f->loop, fds[0], &b, NULL);
	assert_true(b.len < BIG_LEN);
	buf_reset(&b);
	/* The last one, though late, gets all of its response. */
	assert_true(peer_read(f->loop, fds[3], &b, NULL));
	assert_true(b.len > BIG_LEN);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
	peer_wait(f->loop, is_empty, f);
}

static void an_unread_stream_gives_way_to_others(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *big = xcalloc(1, BIG_LEN);
	int stream = ask_and_sleep(f, "/stream");
	int fds[2];

	assert_int_equal(http_stream_write(f->waiting, big, BIG_LEN), 0);
	for (int turns = 0; turns < 5; turns++)
		peer_turn(f->loop);
	fds[0] = ask_and_sleep(f, "/big");
	assert_int_equal(f->gone, 0);
	fds[1] = ask_and_sleep(f, "/big");
	peer_wait(f->loop, has_gone, f);
	assert_int_equal(http_server_connections(f->server), 2);
	fd_close(stream);
	fd_close(fds[0]);
	fd_close(fds[1]);
	peer_wait(f->loop, is_empty, f);
	/* Nothing is counted twice: there is room for as much again. */
	fds[0] = ask_and_sleep(f, "/big");
	fds[1] = ask_and_sleep(f, "/big");
	assert_int_equal(http_server_connections(f->server), 2);
	fd_close(fds[0]);
	fd_close(fds[1]);
	peer_wait(f->loop, is_empty, f);
}

/* An authenticated connection in the middle of a body, which cannot make room. */
static int connect_busy_as(struct fixture *f, const char *header)
{
	cleanup_free char *text = xasprintf("POST /x HTTP/1.1\r\n" HOST "%s"
	                                    "Expect: 100-continue\r\nContent-Length: 10\r\n\r\n",
	                                    header);
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, text));
	assert_true(peer_read(f->loop, fd, &b, "100 Continue"));
	return fd;
}

static int connect_busy(struct fixture *f)
{
	return connect_busy_as(f, KNOWN);
}

/* Between two requests. */
static int connect_idle(struct fixture *f, const char *header)
{
	cleanup_free char *text = xasprintf("GET /x HTTP/1.1\r\n" HOST "%s\r\n", header);
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, text));
	assert_true(peer_read(f->loop, fd, &b, "/x"));
	return fd;
}

static bool is_open(struct fixture *f, int fd)
{
	char byte;

	for (int turns = 0; turns < 5; turns++)
		peer_turn(f->loop);
	return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

static void close_all(struct fixture *f, const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fd_close(fds[i]);
	peer_wait(f->loop, is_empty, f);
}

static void expect_crowded(struct fixture *f, int fd)
{
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

	assert_true(peer_read(f->loop, fd, &b, "crowded"));
}

static void connections_beyond_a_peers_limit_get_an_error(void **state)
{
	struct fixture *f = *state;
	int fds[MAX_PER_PEER];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = connect_busy(f);
	expect_answer(f, "GET /x HTTP/1.1\r\n" HOST KNOWN "\r\n", " 503 ", "crowded");
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		assert_true(is_open(f, fds[i]));
	close_all(f, fds, ARRAY_SIZE(fds));
	expect_answer(f, "GET /x HTTP/1.1\r\n" HOST KNOWN "\r\n", " 200 ", "/x");
}

/* More than are kept for the time of a request. */
#define CROWD 40

/* Return: the answer is complete, and the connection was closed without a reset. */
static bool reads_refusal(struct fixture *f, int fd)
{
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

	return peer_read(f->loop, fd, &b, NULL) &&
	       (memmem(b.data, b.len, "HTTP/1.1 429 ", 13) ||
	        memmem(b.data, b.len, "HTTP/1.1 503 ", 13)) &&
	       (memmem(b.data, b.len, "too many connections", 20) ||
	        memmem(b.data, b.len, "crowded", 7));
}

/* No connection can make room. */
static void fill(struct fixture *f, int fds[MAX_CONNS])
{
	for (size_t i = 0; i < MAX_CONNS; i++)
		fds[i] = connect_busy_as(f, i % 2 ? KNOWN : "X-Known: other\r\n");
}

/* Each has sent a request with a body before the server looks. */
static void clients_that_send_first_read_the_refusal(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *body = xcalloc(1, 50000);
	int busy[MAX_CONNS], fds[CROWD];

	fill(f, busy);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = peer_connect(f->port);
		assert_true(peer_say(f->loop, fds[i],
		                     "POST /x HTTP/1.1\r\n" HOST KNOWN
		                     "Content-Length: 50000\r\n\r\n"));
		assert_int_equal(send(fds[i], body, 50000, MSG_NOSIGNAL), 50000);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		assert_true(reads_refusal(f, fds[i]));
	assert_int_equal(f->requests, 0);
	for (size_t i = 0; i < ARRAY_SIZE(busy); i++) {
		assert_true(is_open(f, busy[i]));
		fd_close(busy[i]);
	}
	close_all(f, fds, ARRAY_SIZE(fds));
	/* Control: with room they are served. */
	expect_answer(f, "GET /x HTTP/1.1\r\n" HOST KNOWN "\r\n", " 200 ", "/x");
}

/* Not one byte of a request comes. Those that were kept for one are answered after a while. */
static void clients_that_read_first_read_the_refusal(void **state)
{
	struct fixture *f = *state;
	int busy[MAX_CONNS], fds[CROWD];

	fill(f, busy);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = peer_connect(f->port);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		assert_true(reads_refusal(f, fds[i]));
	for (size_t i = 0; i < ARRAY_SIZE(busy); i++)
		fd_close(busy[i]);
	close_all(f, fds, ARRAY_SIZE(fds));
}

/* The client could not know that its connection was about to be closed. */
static void a_request_on_a_connection_that_makes_room_is_refused_not_lost(void **state)
{
	struct fixture *f = *state;
	int fds[MAX_PER_PEER + 1];

	fds[0] = connect_idle(f, KNOWN);
	for (size_t i = 1; i < ARRAY_SIZE(fds); i++)
		fds[i] = connect_busy(f);
	assert_int_equal(f->requests, 1);
	assert_true(peer_say(f->loop, fds[0], "GET /y HTTP/1.1\r\n" HOST KNOWN "\r\n"));
	assert_true(reads_refusal(f, fds[0]));
	assert_int_equal(f->requests, 1);
	close_all(f, fds, ARRAY_SIZE(fds));
}

/* As behind a proxy. */
static void an_account_leaves_room_for_others_at_its_address(void **state)
{
	struct fixture *f = *state;
	int fds[MAX_PER_PEER + 1];

	for (size_t i = 0; i < MAX_PER_PEER; i++)
		fds[i] = connect_busy(f);
	expect_answer(f, "GET /x HTTP/1.1\r\n" HOST KNOWN "\r\n", " 503 ", "crowded");
	fds[MAX_PER_PEER] = connect_idle(f, "X-Known: other\r\n");
	/* Over the same connection: it counts for the account of its latest request. */
	assert_true(peer_say(f->loop, fds[MAX_PER_PEER], "GET /x HTTP/1.1\r\n" HOST KNOWN "\r\n"));
	expect_crowded(f, fds[MAX_PER_PEER]);
	for (size_t i = 0; i < MAX_PER_PEER; i++)
		assert_true(is_open(f, fds[i]));
	close_all(f, fds, ARRAY_SIZE(fds));
	assert_int_equal(map_count(f->server->peers), 0);
}

static void an_idle_connection_of_an_account_makes_room_for_its_next(void **state)
{
	struct fixture *f = *state;
	int fds[MAX_PER_PEER + 2];
	size_t n = 0;

	fds[n++] = connect_idle(f, "X-Known: other\r\n");
	fds[n++] = connect_idle(f, KNOWN);
	while (n < MAX_PER_PEER + 1)
		fds[n++] = connect_busy(f);
	assert_true(is_open(f, fds[1]));
	fds[n++] = connect_busy(f);
	assert_false(is_open(f, fds[1]));
	assert_true(is_open(f, fds[0])); /* idle for longer, but of another account */
	close_all(f, fds, n);
}

static void silent_connections_lock_nobody_out(void **state)
{
	struct fixture *f = *state;
	int fds[100];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = peer_connect(f->port);
		peer_turn(f->loop);
	}
	expect_answer(f, "GET /x HTTP/1.1\r\n" HOST "\r\n", " 200 ", "/x");
	assert_true(http_server_take_evicted(f->server) >= ARRAY_SIZE(fds) - MAX_PER_PEER);
	assert_int_equal(http_server_take_evicted(f->server), 0);
	close_all(f, fds, ARRAY_SIZE(fds));
}

/* It has the first line of a request, so it is not idle; but nothing is known of its caller. */
static void unfinished_headers_lock_nobody_out(void **state)
{
	struct fixture *f = *state;
	int fds[100];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = peer_connect(f->port);
		(void)peer_say(f->loop, fds[i], "POST /x HTTP/1.1\r\n" HOST "X: ");
		peer_turn(f->loop);
	}
	expect_answer(f, "GET /x HTTP/1.1\r\n" HOST "\r\n", " 200 ", "/x");
	close_all(f, fds, ARRAY_SIZE(fds));
}

/* Of the whole server: the rooms of peers and accounts have space. */
static void strangers_make_room_before_idle_callers_and_those_before_none(void **state)
{
	struct fixture *f = *state;
	int fds[MAX_CONNS + 3];
	size_t n = 0;

	fds[n++] = connect_idle(f, KNOWN);
	fds[n++] = connect_idle(f, KNOWN);
	for (; n < MAX_CONNS - 1; n++)
		fds[n] = connect_busy_as(f, n % 2 ? KNOWN : "X-Known: other\r\n");
	fds[n++] = peer_connect(f->port); /* the only stranger, and the newest */
	assert_int_equal(n, MAX_CONNS);
	assert_true(is_open(f, fds[MAX_CONNS - 1]));
	fds[n++] = connect_busy_as(f, "X-Known: third\r\n");
	assert_false(is_open(f, fds[MAX_CONNS - 1]));
	assert_true(is_open(f, fds[0]));
	fds[n++] = connect_busy_as(f, "X-Known: third\r\n");
	assert_false(is_open(f, fds[0])); /* the one that was idle longest */
	assert_true(is_open(f, fds[1]));
	fds[n++] = connect_busy_as(f, "X-Known: third\r\n");
	assert_false(is_open(f, fds[1]));
	for (size_t i = 2; i < MAX_CONNS - 1; i++)
		assert_true(is_open(f, fds[i]));
	expect_answer(f, "GET /x HTTP/1.1\r\n" HOST "\r\n", " 503 ", "crowded");
	close_all(f, fds, n);
}

static void an_ipv6_network_is_one_peer(void **state)
{
	static const struct {
		const char *address, *key;
	} list[] = {
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"2001:db8:1:2::1", "2001:db8:1:2::/64"},
		{"2001:db8:1:3::1", "2001:db8:1:3::/64"},
		{"fe80::1", "fe80::/64"},
		{"::1", "::1"},
		{"::ffff:192.0.2.1", "192.0.2.1"},
	};
	struct sockaddr_in6 addr = {.sin6_family = AF_INET6};
	struct sockaddr_in old = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)};
	char key[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		assert_int_equal(inet_pton(AF_INET6, list[i].address, &addr.sin6_addr), 1);
		assert_int_equal(conn_peer_key((struct sockaddr *)&addr, key, sizeof(key)), 0);
		assert_string_equal(key, list[i].key);
	}
	assert_int_equal(conn_peer_key((struct sockaddr *)&old, key, sizeof(key)), 0);
	assert_string_equal(key, "192.0.2.1");
}

/* All of TCP is busy. */
static void the_unix_socket_has_room_of_its_own(void **state)
{
	struct fixture *f = *state;
	char dir[] = "/tmp/mbxunit-XXXXXX";
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	struct error err = {0};
	int fds[MAX_CONNS + 1], fd = -1;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/s", dir);
	assert_int_equal(http_listen_unix(addr.sun_path, 0600, &fd, &err), 0);
	assert_int_equal(http_server_listen(f->server, fd, NULL, &err), 0);
	fill(f, fds);
	expect_answer(f, "GET /x HTTP/1.1\r\n" HOST "\r\n", " 503 ", "crowded");
	fds[MAX_CONNS] = fd_socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(connect(fds[MAX_CONNS], (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_true(peer_say(f->loop, fds[MAX_CONNS], "GET /x HTTP/1.1\r\n" HOST "\r\n"));
	assert_true(peer_read(f->loop, fds[MAX_CONNS], &b, "/x"));
	assert_non_null(strstr(b.data, " 200 "));
	close_all(f, fds, ARRAY_SIZE(fds));
	assert_int_equal(unlink(addr.sun_path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static bool has_no_crowd(void *ctx)
{
	const struct fixture *f = ctx;

	return http_server_connections(f->server) == MAX_PER_PEER;
}

static void a_flood_of_connections_is_bounded(void **state)
{
	struct fixture *f = *state;
	int fds[120];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = peer_connect(f->port);
		peer_turn(f->loop);
	}
	/* Others may read why they were turned away, but not for long. */
	peer_wait(f->loop, has_no_crowd, f);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
	peer_wait(f->loop, is_empty, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(an_announced_body_over_the_limit_is_refused_unread),
		UNIT(a_client_that_sends_a_large_body_anyway_reads_the_refusal),
		UNIT(a_body_that_grows_over_the_limit_is_refused),
		UNIT(bodies_of_all_requests_together_are_bounded),
		UNIT(a_caller_that_fills_the_body_quota_leaves_others_their_share),
		UNIT(large_headers_are_refused),
		UNIT(a_request_with_many_arguments_is_answered_at_once),
		UNIT(any_header_within_its_limit_is_accepted),
		HASTY(a_client_that_drips_is_cut),
		HASTY(a_body_that_drips_is_cut),
		HASTY(an_idle_connection_is_closed),
		HASTY(a_waiting_request_has_no_time_out),
		HASTY(a_client_that_does_not_take_its_answer_is_cut),
		UNIT(an_unread_stream_is_bounded),
		UNIT(unread_responses_are_bounded_together),
		UNIT(an_unread_stream_gives_way_to_others),
		UNIT(connections_beyond_a_peers_limit_get_an_error),
		UNIT(clients_that_send_first_read_the_refusal),
		UNIT(clients_that_read_first_read_the_refusal),
		UNIT(a_request_on_a_connection_that_makes_room_is_refused_not_lost),
		UNIT(an_account_leaves_room_for_others_at_its_address),
		UNIT(an_idle_connection_of_an_account_makes_room_for_its_next),
		UNIT(silent_connections_lock_nobody_out),
		UNIT(unfinished_headers_lock_nobody_out),
		UNIT(strangers_make_room_before_idle_callers_and_those_before_none),
		UNIT(the_unix_socket_has_room_of_its_own),
		UNIT(an_ipv6_network_is_one_peer),
		UNIT(a_flood_of_connections_is_bounded),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
