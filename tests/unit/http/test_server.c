/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

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

static void a_disconnect_after_a_pipelined_request_is_noticed(void **state)
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

/* Three clients with at most 1000 bytes each, and at most 2500 together. */
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

/* A literal with NULs, and what the refusal says. */
struct lax {
	const char *data;
	size_t len;
	const char *why;
};

static void lax_framing_is_refused(void **state)
{
#define LAX(text, why)                                                                             \
	{                                                                                          \
		text, sizeof(text) - 1, why                                                        \
	}
	static const struct lax bad[] = {
		LAX("GET /x HTTP/1.1\nHost: localhost\n\n", "LF"),
		LAX("GET /x HTTP/1.1\r\nHost: localhost\n\r\n", "LF"),
		LAX("GET /x HTTP/1.1\r\n" HOST "\n", "LF"),
		LAX("GET /x HTTP/1.1\rHost: localhost\r\r", "CR"),
		LAX("GET /x HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n", "NUL"),
		LAX("GET /x HTTP/1.1\r\n" HOST "X\0Y: a\r\n\r\n", "NUL"),
		LAX("GET /x\0y HTTP/1.1\r\n" HOST "\r\n", "NUL"),
		LAX("GET /x HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", "folded"),
		LAX("GET /x HTTP/1.1\r\n" HOST " X: a\r\n\r\n", "folded"),
		LAX("GET /x HTTP/1.1\r\n" HOST "X\r\n\r\n", "colon"),
	};
#undef LAX
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
		cleanup_close int fd = peer_connect(f->port);

		(void)peer_send(f->loop, fd, bad[i].data, bad[i].len);
		/* To EOF: the connection is closed. */
		assert_true(peer_read(f->loop, fd, &b, NULL));
		if (strncmp(b.data, "HTTP/1.1 400 ", 13) != 0 || !strstr(b.data, bad[i].why))
			fail_msg("to '%s' came '%s'", bad[i].data, b.data);
	}
	assert_int_equal(f->requests, 0);
	peer_wait(f->loop, is_empty, f);
}

#define CHUNKED "POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

static void a_chunk_that_is_badly_framed_is_refused(void **state)
{
	struct fixture *f = *state;

	expect_answer(f, CHUNKED "5\r\nhello\r\n0\r\n\r\n", " 200 ", "hello");
	expect_answer(f, CHUNKED "5\nhello\n0\n\n", " 400 ", "LF");
	expect_answer(f, CHUNKED "5\r\nhello\n0\r\n\r\n", " 400 ", "LF");
	expect_answer(f, CHUNKED "5\r\nhello\r\n0\r\n\n", " 400 ", "LF");
	expect_answer(f, CHUNKED "4\r\nhello\r\n0\r\n\r\n", " 400 ", "longer than announced");
	expect_answer(f, CHUNKED "zz\r\nhello\r\n0\r\n\r\n", " 400 ", "size of a chunk");
	assert_int_equal(f->requests, 1);
	peer_wait(f->loop, is_empty, f);
}

static void bad_bytes_after_a_request_do_not_change_its_response(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd,
	                     "GET /later HTTP/1.1\r\n" HOST "\r\nGET /smuggled HTTP/1.1\n" HOST
	                     "\r\n"));
	peer_wait(f->loop, is_waiting, f);
	for (int turns = 0; turns < 10; turns++)
		peer_turn(f->loop);
	reply_text(f->waiting, "first");
	f->waiting = NULL;
	assert_true(peer_read(f->loop, fd, &b, NULL));
	assert_int_equal(strncmp(b.data, "HTTP/1.1 200 ", 13), 0);
	assert_non_null(strstr(strstr(b.data, "first"), "HTTP/1.1 400 "));
	assert_int_equal(f->requests, 1);
	fd = fd_close(fd);
	peer_wait(f->loop, is_empty, f);
}

/* What follows is not checked, as it could be another protocol. */
static void an_upgrade_that_is_not_made_ends_the_connection(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

	exchange(f,
	         "GET /x HTTP/1.1\r\n" HOST
	         "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /smuggled HTTP/1.1\n" HOST
	         "\r\n",
	         &b, NULL);
	assert_non_null(strstr(b.data, "Connection: close"));
	assert_null(strstr(b.data, "/smuggled"));
	assert_int_equal(f->requests, 1);
}

static void a_path_that_is_not_well_formed_is_refused(void **state)
{
	struct fixture *f = *state;

	expect_answer(f, "GET /%00 HTTP/1.1\r\n" HOST "\r\n", " 400 ", "malformed");
	expect_answer(f, "GET /%zz HTTP/1.1\r\n" HOST "\r\n", " 400 ", "malformed");
	expect_answer(f, "GET http://localhost/x HTTP/1.1\r\n" HOST "\r\n", " 400 ", "malformed");
	assert_int_equal(f->requests, 0);
}

static void a_large_answer_arrives_whole(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

	exchange(f, "GET /big HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", &b, NULL);
	assert_true(b.len > BIG_LEN);
	assert_int_equal(b.data[b.len - 1], 'b');
}

static void a_disconnect_reaches_the_handler(void **state)
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

static void an_immediate_disconnect_reaches_the_handler(void **state)
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

static void a_disconnect_during_a_stream_reaches_the_handler(void **state)
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
	expect_answer(*state, "GET /query HTTP/1.1\r\n" HOST "\r\n", " 200 ", "(none)");
}

static void a_query_that_cannot_be_decoded_is_refused(void **state)
{
	static const char *const bad[] = {"q=%", "q=%4", "q=%zz", "q=%00", "%0a=1", "a=1&b=%4&c=2"};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cleanup_free char *text =
			xasprintf("GET /query?%s HTTP/1.1\r\n" HOST "\r\n", bad[i]);

		expect_answer(f, text, " 400 ", "escape");
	}
	assert_int_equal(f->requests, 0);
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
	cleanup_close attr_unused int idle = peer_connect(f->port);
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

static void quiescing_without_connections_is_reported(void **state)
{
	struct fixture *f = *state;

	http_server_quiesce(f->server, on_quiet, f);
	peer_wait(f->loop, is_quiet, f);
}

static void freeing_the_server_notifies_the_handlers(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_request_is_answered_and_the_connection_kept),
		UNIT(pipelined_requests_are_answered_in_order),
		UNIT(a_disconnect_after_a_pipelined_request_is_noticed),
		UNIT(a_body_comes_in_any_framing),
		UNIT(a_body_in_single_bytes_is_whole),
		UNIT(a_refused_header_ends_the_connection_when_a_body_follows),
		UNIT(ambiguous_framing_is_refused),
		UNIT(a_path_that_is_not_well_formed_is_refused),
		UNIT(a_large_answer_arrives_whole),
		UNIT(a_disconnect_reaches_the_handler),
		UNIT(an_immediate_disconnect_reaches_the_handler),
		UNIT(a_stream_arrives_in_pieces),
		UNIT(a_large_stream_arrives_whole),
		UNIT(a_disconnect_during_a_stream_reaches_the_handler),
		UNIT(head_is_answered_without_a_body),
		UNIT(the_request_id_is_taken_only_when_well_formed),
		UNIT(a_query_is_decoded_once),
		UNIT(a_query_that_cannot_be_decoded_is_refused),
		UNIT(lax_framing_is_refused),
		UNIT(a_chunk_that_is_badly_framed_is_refused),
		UNIT(bad_bytes_after_a_request_do_not_change_its_response),
		UNIT(an_upgrade_that_is_not_made_ends_the_connection),
		UNIT(quiescing_lets_the_running_request_end),
		UNIT(quiescing_without_connections_is_reported),
		UNIT(freeing_the_server_notifies_the_handlers),
		UNIT(a_connection_that_ends_in_its_header_leaks_nothing),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
