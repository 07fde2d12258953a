/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include "base/alloc.h"
#include "http/server.h"

#define HOST         "Host: localhost\r\n"
#define MAX_BODY     1000
#define MAX_BODIES   2500
#define BIG_LEN      (4u << 20)
#define TIMEOUT_US   (200 * USEC_PER_MS)
#define LONG_US      (60 * USEC_PER_SEC)
#define MAX_CONNS    8
#define MAX_PER_PEER 6

struct fixture {
	struct loop *loop;
	struct http_server *server;
	int port;
	struct http_request *waiting; /* of /later and /stream */
	unsigned requests, gone, quiet;
};

static void on_gone(void *ctx)
{
	struct fixture *f = ctx;

	f->gone++;
	f->waiting = NULL;
}

static void reply(struct http_request *req, int status, const char *text)
{
	http_reply(req, &(struct http_answer){status, "text/plain", text, strlen(text), NULL, 0});
}

static int on_headers(void *ctx, struct http_request *req, size_t *ret_max_body)
{
	(void)ctx;
	if (strcmp(http_path(req), "/refuse") == 0) {
		reply(req, 415, "refused");
		return -1;
	}
	if (http_is_crowded(req)) {
		reply(req, 503, "crowded");
		return -1;
	}
	*ret_max_body = MAX_BODY;
	return 0;
}

static void keep(struct fixture *f, struct http_request *req)
{
	assert_null(f->waiting);
	f->waiting = req;
	http_set_gone(req, on_gone, f);
}

static void reply_text(struct http_request *req, const char *text)
{
	reply(req, 200, text);
}

static void on_request(void *ctx, struct http_request *req)
{
	struct fixture *f = ctx;
	const char *path = http_path(req), *body, *query;
	size_t len;

	f->requests++;
	body = http_body(req, &len);
	if (strcmp(path, "/later") == 0) {
		keep(f, req);
	} else if (strcmp(path, "/stream") == 0) {
		keep(f, req);
		http_stream_begin(req, 200, "text/plain");
	} else if (strcmp(path, "/big") == 0) {
		char *big = xmalloc(BIG_LEN);

		memset(big, 'b', BIG_LEN);
		http_reply_owned(req,
		                 &(struct http_answer){200, "text/plain", big, BIG_LEN, NULL, 0});
	} else if (strcmp(path, "/query") == 0) {
		query = http_query(req, "q");
		reply_text(req, query ? query : "(none)");
	} else if (strcmp(path, "/id") == 0) {
		reply_text(req, http_request_id(req));
	} else if (len > 0) {
		http_reply(req, &(struct http_answer){200, "text/plain", body, len, NULL, 0});
	} else {
		reply_text(req, path);
	}
}

static void on_error(void *ctx, struct http_request *req, const struct error *err)
{
	(void)ctx;
	reply(req, error_http(err->code), err->msg);
}

static struct fixture *start(uint64_t request_us, uint64_t idle_us)
{
	struct fixture *f = NEW(struct fixture);
	struct http_server_config config = {
		.handlers = {f, on_headers, on_request, on_error},
		.max_connections = MAX_CONNS,
		.max_connections_per_peer = MAX_PER_PEER,
		.max_header_bytes = 8192,
		.max_bodies_bytes = MAX_BODIES,
		.request_timeout_us = request_us,
		.idle_timeout_us = idle_us,
	};
	struct error err = {0};
	char name[64];
	int fd = -1;

	config.loop = f->loop = loop_new();
	f->server = http_server_new(&config);
	assert_int_equal(http_listen_tcp("127.0.0.1:0", &fd, &err), 0);
	assert_int_equal(http_listen_name(fd, name, sizeof(name)), 0);
	assert_int_equal(sscanf(name, "http://127.0.0.1:%d", &f->port), 1);
	assert_int_equal(http_server_listen(f->server, fd, &err), 0);
	return f;
}

static int set_up(void **state)
{
	*state = start(LONG_US, LONG_US);
	return 0;
}

static int set_up_hasty(void **state)
{
	*state = start(TIMEOUT_US, TIMEOUT_US);
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	http_server_free(f->server);
	loop_free(f->loop);
	free(f);
	return 0;
}

/* One connection, one exchange, until the server closes or @until was seen. */
static void exchange(struct fixture *f, const char *request, struct buf *answer, const char *until)
{
	cleanup_close int fd = peer_connect(f->port);

	(void)peer_say(f->loop, fd, request);
	(void)peer_read(f->loop, fd, answer, until);
}

static void expect_answer(struct fixture *f, const char *request, const char *status,
                          const char *text)
{
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

	exchange(f, request, &b, text);
	assert_non_null(b.data);
	if (!strstr(b.data, status) || !strstr(b.data, text))
		fail_msg("to '%s' came '%s', not '%s' with '%s'", request, b.data, status, text);
}

static bool has_gone(void *ctx)
{
	return ((struct fixture *)ctx)->gone > 0;
}

static bool is_waiting(void *ctx)
{
	return ((struct fixture *)ctx)->waiting != NULL;
}

static bool is_empty(void *ctx)
{
	return http_server_connections(((struct fixture *)ctx)->server) == 0;
}

static void a_request_is_answered_and_the_connection_kept(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, "GET /one HTTP/1.1\r\n" HOST "\r\n"));
	assert_true(peer_read(f->loop, fd, &b, "/one"));
	assert_non_null(strstr(b.data, "HTTP/1.1 200"));
	assert_non_null(strstr(b.data, "X-Request-ID: "));
	assert_true(peer_say(f->loop, fd, "GET /two HTTP/1.1\r\n" HOST "\r\n"));
	assert_true(peer_read(f->loop, fd, &b, "/two"));
	assert_int_equal(http_server_connections(f->server), 1);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd,
	                     "GET /first HTTP/1.1\r\n" HOST "\r\n"
	                     "POST /x HTTP/1.1\r\n" HOST "Content-Length: 6\r\n\r\nsecond"
	                     "GET /later HTTP/1.1\r\n" HOST "\r\n"
	                     "GET /fourth HTTP/1.1\r\n" HOST "\r\n"));
	peer_wait(f->loop, is_waiting, f);
	assert_int_equal(f->requests, 3);
	reply_text(f->waiting, "third");
	f->waiting = NULL;
	assert_true(peer_read(f->loop, fd, &b, "/fourth"));
	assert_true(strstr(b.data, "/first") < strstr(b.data, "second"));
	assert_true(strstr(b.data, "second") < strstr(b.data, "third"));
	assert_true(strstr(b.data, "third") < strstr(b.data, "/fourth"));
}

static void a_client_that_leaves_behind_a_pipelined_request_is_noticed(void **state)
{
	struct fixture *f = *state;
	int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd,
	                     "GET /later HTTP/1.1\r\n" HOST "\r\nGET /next HTTP/1.1\r\n" HOST
	                     "\r\n"));
	peer_wait(f->loop, is_waiting, f);
	fd_close(fd);
	peer_wait(f->loop, has_gone, f);
	peer_wait(f->loop, is_empty, f);
	assert_int_equal(f->gone, 1);
	assert_int_equal(f->requests, 1);
}

static void a_body_comes_in_any_framing(void **state)
{
	expect_answer(*state, "POST /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", " 200 ",
	              "hello");
	expect_answer(*state,
	              "POST /x HTTP/1.1\r\n" HOST
	              "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
	              " 200 ", "hello");
	expect_answer(*state,
	              "POST /x HTTP/1.1\r\n" HOST
	              "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
	              " 100 ", "hello");
}

static void a_body_in_single_bytes_is_whole(void **state)
{
	struct fixture *f = *state;
	static const char text[] = "POST /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello";
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);

	for (size_t i = 0; text[i]; i++) {
		assert_true(peer_send(f->loop, fd, text + i, 1));
		peer_turn(f->loop);
	}
	assert_true(peer_read(f->loop, fd, &b, "hello"));
}

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

static void who_sends_a_large_body_anyway_still_reads_the_refusal(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);
	cleanup_free char *big = xcalloc(1, BIG_LEN);

	assert_true(peer_say(f->loop, fd,
	                     "POST /x HTTP/1.1\r\n" HOST "Content-Length: 4194304\r\n\r\n"));
	assert_true(peer_send(f->loop, fd, big, BIG_LEN));
	/* To the end, not just to the text: a reset would show as an error of recv. */
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
	/* Without its end: the answer does not wait for it. */
	for (int i = 0; i < 200000; i++)
		assert_int_equal(buf_add_str(&b, "1\r\na\r\n"), 0);
	exchange(f, b.data, &answer, NULL);
	assert_int_equal(strncmp(answer.data, "HTTP/1.1 413 ", 13), 0);
	assert_non_null(strstr(answer.data, "exceeds 1000 bytes"));
	assert_non_null(strstr(answer.data, "X-Request-ID: "));
	assert_int_equal(f->requests, 0);
}

/* Three clients that each may send 1000 bytes, and all together no more than 2500. */
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
	/* The others are not disturbed. */
	assert_true(peer_say(f->loop, fds[0], "x"));
	while (f->requests == 0)
		peer_turn(f->loop);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
	peer_wait(f->loop, is_empty, f);
}

static void a_refused_header_ends_the_connection_when_a_body_follows(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

	/* What follows is a body, not a request. */
	exchange(f,
	         "POST /refuse HTTP/1.1\r\n" HOST "Content-Length: 40\r\n\r\n"
	         "GET /smuggled HTTP/1.1\r\n" HOST "\r\n",
	         &b, NULL);
	assert_non_null(strstr(b.data, " 415 "));
	assert_null(strstr(b.data, "smuggled"));
	assert_int_equal(f->requests, 0);
}

static void ambiguous_framing_is_refused(void **state)
{
	static const char *const bad[] = {
		"POST /x HTTP/1.1\r\n" HOST
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		"POST /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		"POST /x HTTP/1.1\r\n" HOST "Content-Length : 5\r\n\r\nhello",
		"POST /x HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\nhello",
		"POST /x HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\nhello",
		"POST /x HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\nhello",
		"POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"POST /x HTTP/1.1\r\n" HOST
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET /x HTTP/1.1\r\n" HOST HOST "\r\n",
		"GET /x HTTP/1.1\r\n\r\n",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

		exchange(f, bad[i], &b, NULL);
		if (!b.data || strncmp(b.data, "HTTP/1.1 400", 12) != 0)
			fail_msg("to '%s' came '%s'", bad[i], b.data ? b.data : "");
	}
	assert_int_equal(f->requests, 0);
}

static void a_path_that_is_not_well_formed_is_refused(void **state)
{
	struct fixture *f = *state;

	expect_answer(f, "GET /%00 HTTP/1.1\r\n" HOST "\r\n", " 400 ", "not well-formed");
	expect_answer(f, "GET /%zz HTTP/1.1\r\n" HOST "\r\n", " 400 ", "not well-formed");
	expect_answer(f, "GET http://localhost/x HTTP/1.1\r\n" HOST "\r\n", " 400 ",
	              "not well-formed");
	assert_int_equal(f->requests, 0);
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
	/* More than the memory of a connection: microhttpd's own answer. */
	buf_reset(&large);
	assert_int_equal(buf_addf(&large, "GET /x HTTP/1.1\r\n" HOST "X: %0100000d\r\n\r\n", 1), 0);
	exchange(f, large.data, &answer, NULL);
	assert_true(!answer.data || strstr(answer.data, "HTTP/1.1 4"));
	assert_int_equal(f->requests, 0);
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

	while (open && clock_us() - start_us < TIMEOUT_US * 4) {
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
	cleanup_close int quiet = peer_connect(f->port);
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

static void a_large_answer_arrives_whole(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

	exchange(f, "GET /big HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", &b, NULL);
	assert_true(b.len > BIG_LEN);
	assert_int_equal(b.data[b.len - 1], 'b');
}

static void a_client_that_leaves_is_told_to_the_handler(void **state)
{
	struct fixture *f = *state;
	int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, "GET /later HTTP/1.1\r\n" HOST "\r\n"));
	peer_wait(f->loop, is_waiting, f);
	fd_close(fd);
	peer_wait(f->loop, has_gone, f);
	peer_wait(f->loop, is_empty, f);
	assert_int_equal(f->gone, 1);
}

static void a_client_that_leaves_at_once_is_told_to_the_handler(void **state)
{
	struct fixture *f = *state;
	int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, "GET /later HTTP/1.1\r\n" HOST "\r\n"));
	fd_close(fd);
	peer_wait(f->loop, has_gone, f);
	peer_wait(f->loop, is_empty, f);
}

static void a_stream_arrives_in_pieces(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n"));
	peer_wait(f->loop, is_waiting, f);
	assert_true(peer_read(f->loop, fd, &b, "\r\n\r\n"));
	assert_int_equal(http_stream_write(f->waiting, "one", 3), 0);
	assert_true(peer_read(f->loop, fd, &b, "one"));
	assert_int_equal(http_stream_write(f->waiting, "two", 3), 0);
	assert_true(peer_read(f->loop, fd, &b, "two"));
	assert_null(strstr(b.data, "\r\n0\r\n"));
	http_stream_end(TAKE_PTR(f->waiting));
	assert_true(peer_read(f->loop, fd, &b, "\r\n0\r\n\r\n"));
	assert_true(peer_say(f->loop, fd, "GET /after HTTP/1.1\r\n" HOST "\r\n"));
	assert_true(peer_read(f->loop, fd, &b, "/after"));
	assert_int_equal(f->gone, 0);
}

static void a_large_stream_arrives_whole(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);
	cleanup_free char *big = xmalloc(BIG_LEN);

	memset(big, 's', BIG_LEN);
	assert_true(
		peer_say(f->loop, fd, "GET /stream HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"));
	peer_wait(f->loop, is_waiting, f);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(http_stream_write(f->waiting, big, BIG_LEN), 0);
		for (int turns = 0; turns < 20; turns++)
			peer_turn(f->loop);
	}
	http_stream_end(TAKE_PTR(f->waiting));
	assert_true(peer_read(f->loop, fd, &b, NULL));
	assert_true(b.len > 3 * BIG_LEN);
	assert_non_null(memmem(b.data + b.len - 16, 16, "\r\n0\r\n\r\n", 7));
}

static void a_client_that_leaves_a_stream_is_told_to_the_handler(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n"));
	peer_wait(f->loop, is_waiting, f);
	assert_true(peer_read(f->loop, fd, &b, "\r\n\r\n"));
	fd_close(fd);
	peer_wait(f->loop, has_gone, f);
	peer_wait(f->loop, is_empty, f);
	assert_int_equal(f->gone, 1);
}

static void a_stream_that_nobody_reads_is_bounded(void **state)
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

static void head_is_answered_without_a_body(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

	exchange(f, "HEAD /abcdef HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", &b, NULL);
	assert_non_null(strstr(b.data, " 200 "));
	assert_non_null(strstr(b.data, "Content-Length: 7"));
	assert_null(strstr(b.data, "/abcdef"));
}

static void the_request_id_is_taken_only_when_well_formed(void **state)
{
	expect_answer(*state, "GET /id HTTP/1.1\r\n" HOST "X-Request-ID: abc-1\r\n\r\n",
	              "X-Request-ID: abc-1\r\n", "\r\n\r\nabc-1");
	expect_answer(*state, "GET /id HTTP/1.1\r\n" HOST "X-Request-ID: a<b>c\r\n\r\n", " 200 ",
	              "X-Request-ID: ");
	for (int i = 0; i < 2; i++) {
		cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

		exchange(*state,
		         i ? "GET /id HTTP/1.1\r\n" HOST "Connection: close\r\n"
		             "X-Request-ID: a b\r\n\r\n"
		           : "GET /id HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
		         &b, NULL);
		assert_null(strstr(b.data, "a b"));
		assert_non_null(strstr(b.data, "X-Request-ID: "));
	}
}

static void a_query_is_decoded_once(void **state)
{
	expect_answer(*state, "GET /query?q=a%2520b+c HTTP/1.1\r\n" HOST "\r\n", " 200 ",
	              "a%20b c");
	expect_answer(*state, "GET /query?q=%00 HTTP/1.1\r\n" HOST "\r\n", " 200 ", "(none)");
	expect_answer(*state, "GET /query HTTP/1.1\r\n" HOST "\r\n", " 200 ", "(none)");
}

static void more_connections_than_a_peer_may_have_are_told(void **state)
{
	struct fixture *f = *state;
	int fds[MAX_PER_PEER];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = peer_connect(f->port);
	while (http_server_connections(f->server) < MAX_PER_PEER)
		peer_turn(f->loop);
	expect_answer(f, "GET /x HTTP/1.1\r\n" HOST "\r\n", " 503 ", "crowded");
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
	peer_wait(f->loop, is_empty, f);
	expect_answer(f, "GET /x HTTP/1.1\r\n" HOST "\r\n", " 200 ", "/x");
}

static void a_flood_of_connections_is_bounded(void **state)
{
	struct fixture *f = *state;
	int fds[120];
	size_t most = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = peer_connect(f->port);
		peer_turn(f->loop);
	}
	for (int turns = 0; turns < 100; turns++)
		peer_turn(f->loop);
	most = http_server_connections(f->server);
	assert_true(most >= MAX_PER_PEER && most <= MAX_PER_PEER + 40);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
	peer_wait(f->loop, is_empty, f);
}

static void on_quiet(void *ctx)
{
	((struct fixture *)ctx)->quiet++;
}

static bool is_quiet(void *ctx)
{
	return ((struct fixture *)ctx)->quiet > 0;
}

static void quiescing_lets_the_running_request_end(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int idle = peer_connect(f->port);
	cleanup_close int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, "GET /later HTTP/1.1\r\n" HOST "\r\n"));
	peer_wait(f->loop, is_waiting, f);
	http_server_quiesce(f->server, on_quiet, f);
	while (http_server_connections(f->server) > 1)
		peer_turn(f->loop);
	assert_int_equal(f->quiet, 0);
	reply_text(TAKE_PTR(f->waiting), "done");
	assert_true(peer_read(f->loop, fd, &b, NULL));
	assert_non_null(strstr(b.data, "Connection: close"));
	assert_non_null(strstr(b.data, "done"));
	peer_wait(f->loop, is_quiet, f);
	assert_int_equal(f->quiet, 1);
}

static void quiescing_without_connections_is_told_too(void **state)
{
	struct fixture *f = *state;

	http_server_quiesce(f->server, on_quiet, f);
	peer_wait(f->loop, is_quiet, f);
}

static void freeing_the_server_tells_the_handlers(void **state)
{
	struct fixture *f = *state;
	cleanup_close int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, "GET /later HTTP/1.1\r\n" HOST "\r\n"));
	peer_wait(f->loop, is_waiting, f);
	http_server_free(f->server);
	f->server = NULL;
	assert_int_equal(f->gone, 1);
}

static void a_connection_that_ends_in_its_header_leaks_nothing(void **state)
{
	static const char *const begins[] = {"",
	                                     "G",
	                                     "GET /x HTTP/1.1\r\n",
	                                     "GET /x HTTP/1.1\r\nHo",
	                                     "POST /x HTTP/1.1\r\n" HOST
	                                     "Content-Length: 9\r\n\r\nab",
	                                     "\r\n\r\n\r\n",
	                                     "\x16\x03\x01",
	                                     "GARBAGE\r\n\r\n"};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		int fd = peer_connect(f->port);

		(void)peer_say(f->loop, fd, begins[i]);
		for (int turns = 0; turns < 3; turns++)
			peer_turn(f->loop);
		fd_close(fd);
		peer_wait(f->loop, is_empty, f);
	}
	assert_int_equal(f->requests, 0);
}

#define UNIT(name)  cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define HASTY(name) cmocka_unit_test_setup_teardown(name, set_up_hasty, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_request_is_answered_and_the_connection_kept),
		UNIT(pipelined_requests_are_answered_in_order),
		UNIT(a_client_that_leaves_behind_a_pipelined_request_is_noticed),
		UNIT(a_body_comes_in_any_framing),
		UNIT(a_body_in_single_bytes_is_whole),
		UNIT(an_announced_body_over_the_limit_is_refused_unread),
		UNIT(who_sends_a_large_body_anyway_still_reads_the_refusal),
		UNIT(a_body_that_grows_over_the_limit_is_refused),
		UNIT(bodies_of_all_requests_together_are_bounded),
		UNIT(a_refused_header_ends_the_connection_when_a_body_follows),
		UNIT(ambiguous_framing_is_refused),
		UNIT(a_path_that_is_not_well_formed_is_refused),
		UNIT(large_headers_are_refused),
		HASTY(a_client_that_drips_is_cut),
		HASTY(a_body_that_drips_is_cut),
		HASTY(an_idle_connection_is_closed),
		HASTY(a_waiting_request_has_no_time_out),
		HASTY(a_client_that_does_not_take_its_answer_is_cut),
		UNIT(a_large_answer_arrives_whole),
		UNIT(a_client_that_leaves_is_told_to_the_handler),
		UNIT(a_client_that_leaves_at_once_is_told_to_the_handler),
		UNIT(a_stream_arrives_in_pieces),
		UNIT(a_large_stream_arrives_whole),
		UNIT(a_client_that_leaves_a_stream_is_told_to_the_handler),
		UNIT(a_stream_that_nobody_reads_is_bounded),
		UNIT(head_is_answered_without_a_body),
		UNIT(the_request_id_is_taken_only_when_well_formed),
		UNIT(a_query_is_decoded_once),
		UNIT(more_connections_than_a_peer_may_have_are_told),
		UNIT(a_flood_of_connections_is_bounded),
		UNIT(quiescing_lets_the_running_request_end),
		UNIT(quiescing_without_connections_is_told_too),
		UNIT(freeing_the_server_tells_the_handlers),
		UNIT(a_connection_that_ends_in_its_header_leaks_nothing),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
