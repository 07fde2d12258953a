/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include "base/alloc.h"

/*
 * Streamed bodies and streamed responses: /take consumes a body, /give sends so many bytes, a
 * window at a time.
 */

#define HOST      "Host: localhost\r\n"
#define WINDOW    (64u << 10)
#define GIVEN     (8u << 20)
#define TIMEOUT   (200 * USEC_PER_MS)
#define LONG_TIME (60 * USEC_PER_SEC)

struct fixture {
	struct loop *loop;
	struct http_server *server;
	int port;
	struct http_request *req;
	struct buf body;
	size_t most;     /* consumed of each piece; SIZE_MAX: all */
	size_t left;     /* of /give: not yet written */
	size_t waiting;  /* of /give: written, not taken */
	size_t peak;     /* the most of it */
	uint64_t length; /* announced */
	bool refuse;     /* respond in the middle */
	unsigned ended, gone;
};

static void answer(struct http_request *req, int status, const char *text)
{
	http_reply(req, &(struct http_answer){status, "text/plain", text, strlen(text), NULL, 0});
}

static void on_gone(void *ctx)
{
	struct fixture *f = ctx;

	f->gone++;
	f->req = NULL;
}

static size_t on_data(void *ctx, const char *data, size_t len)
{
	struct fixture *f = ctx;
	size_t n = len < f->most ? len : f->most;

	assert_true(len > 0);
	if (f->refuse) {
		http_set_gone(f->req, NULL, NULL);
		answer(TAKE_PTR(f->req), 400, "enough");
		return 0;
	}
	assert_int_equal(buf_add(&f->body, data, n), 0);
	return n;
}

static void on_end(void *ctx)
{
	struct fixture *f = ctx;
	char text[64];

	f->ended++;
	(void)snprintf(text, sizeof(text), "took %zu", f->body.len);
	http_set_gone(f->req, NULL, NULL);
	answer(TAKE_PTR(f->req), 200, text);
}

static void give(struct fixture *f)
{
	static const char zeros[4096];

	while (f->req && f->left > 0 && f->waiting < WINDOW) {
		size_t n = f->left < sizeof(zeros) ? f->left : sizeof(zeros);

		assert_int_equal(http_stream_write(f->req, zeros, n), 0);
		f->left -= n;
		f->waiting += n;
	}
	f->peak = f->waiting > f->peak ? f->waiting : f->peak;
	if (f->req && f->left == 0 && f->waiting == 0) {
		http_set_gone(f->req, NULL, NULL);
		http_stream_end(TAKE_PTR(f->req));
	}
}

static void on_taken(void *ctx, size_t bytes)
{
	struct fixture *f = ctx;

	assert_true(bytes <= f->waiting);
	f->waiting -= bytes;
	give(f);
}

static int on_headers(void *ctx, struct http_request *req, size_t *ret_max_body)
{
	struct fixture *f = ctx;

	*ret_max_body = 0;
	if (strcmp(http_path(req), "/take") == 0) {
		const struct http_body_events body = {f, on_data, on_end};

		f->req = req;
		f->length = http_body_length(req);
		http_set_gone(req, on_gone, f);
		http_take_body(req, &body);
	}
	return 0;
}

static void on_request(void *ctx, struct http_request *req)
{
	struct fixture *f = ctx;

	if (strcmp(http_path(req), "/give") != 0) {
		answer(req, 404, "nothing");
		return;
	}
	f->req = req;
	f->left = GIVEN;
	http_set_gone(req, on_gone, f);
	http_stream_start(req, &(struct http_stream_head){.status = 200,
	                                                  .content_type = "text/plain",
	                                                  .length = GIVEN,
	                                                  .on_taken = on_taken,
	                                                  .ctx = f});
	give(f);
}

static void on_error(void *ctx, struct http_request *req, const struct error *err)
{
	(void)ctx;
	answer(req, error_http(err->code), err->msg);
}

static struct fixture *start(uint64_t timeout_us)
{
	struct fixture *f = NEW(struct fixture);
	struct http_server_config config = {
		.handlers = {f, on_headers, on_request, on_error},
		.max_connections = 8,
		.max_connections_per_peer = 8,
		.max_connections_per_local_peer = 8,
		.max_header_bytes = 8192,
		.max_bodies_bytes = 1000, /* streamed bodies do not count */
		.max_answers_bytes = 1 << 20,
		.request_timeout_us = timeout_us,
		.idle_timeout_us = timeout_us,
	};
	struct error err = {0};
	char name[64];
	int fd = -1;

	buf_init(&f->body, 32 << 20);
	f->most = SIZE_MAX;
	config.loop = f->loop = loop_new();
	f->server = http_server_new(&config);
	assert_int_equal(http_listen_tcp("127.0.0.1:0", &fd, &err), 0);
	assert_int_equal(http_listen_name(fd, "http", name, sizeof(name)), 0);
	assert_int_equal(sscanf(name, "http://127.0.0.1:%d", &f->port), 1);
	assert_int_equal(http_server_listen(f->server, fd, NULL, &err), 0);
	return f;
}

static int set_up(void **state)
{
	*state = start(LONG_TIME);
	return 0;
}

static int set_up_hasty(void **state)
{
	*state = start(TIMEOUT);
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	http_server_free(f->server);
	loop_free(f->loop);
	buf_done(&f->body);
	free(f);
	return 0;
}

static bool has_gone(void *ctx)
{
	return ((struct fixture *)ctx)->gone > 0;
}

static bool has_some(void *ctx)
{
	return ((struct fixture *)ctx)->body.len > 0;
}

static void a_body_of_any_size_is_streamed(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf got = BUF_INIT(PEER_BUF_MAX);
	cleanup_free char *data = xmalloc(1 << 20);
	cleanup_close int fd = peer_connect(f->port);

	memset(data, 'd', 1 << 20);
	assert_true(peer_say(f->loop, fd,
	                     "POST /take HTTP/1.1\r\n" HOST "Content-Length: 4194304\r\n\r\n"));
	for (int i = 0; i < 4; i++)
		assert_true(peer_send(f->loop, fd, data, 1 << 20));
	(void)peer_read(f->loop, fd, &got, "took 4194304");
	assert_non_null(strstr(got.data, " 200 "));
	assert_int_equal(f->length, 4 << 20);
	assert_int_equal(f->ended, 1);
}

static void chunks_have_no_length(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf got = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);

	assert_true(
		peer_say(f->loop, fd,
	                 "POST /take HTTP/1.1\r\n" HOST
	                 "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"));
	(void)peer_read(f->loop, fd, &got, "took 7");
	assert_int_equal(f->length, HTTP_LENGTH_UNKNOWN);
	assert_memory_equal(f->body.data, "abcdefg", 7);
}

static void a_sink_that_takes_less_gets_the_rest_on_resume(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf got = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);

	f->most = 3;
	assert_true(peer_say(f->loop, fd,
	                     "POST /take HTTP/1.1\r\n" HOST
	                     "Content-Length: 10\r\n\r\n0123456789"));
	peer_wait(f->loop, has_some, f);
	for (int i = 0; i < 20; i++)
		peer_turn(f->loop);
	assert_int_equal(f->body.len, 3); /* no more comes until it is requested */
	for (size_t before; f->body.len < 10;) {
		before = f->body.len;
		http_body_resume(f->req);
		while (f->req && f->body.len == before)
			peer_turn(f->loop);
	}
	(void)peer_read(f->loop, fd, &got, "took 10");
	assert_memory_equal(f->body.data, "0123456789", 10);
	assert_int_equal(f->ended, 1);
}

static void an_empty_body_ends_at_once(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf got = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);

	assert_true(
		peer_say(f->loop, fd, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"));
	(void)peer_read(f->loop, fd, &got, "took 0");
	assert_int_equal(f->ended, 1);
}

static void an_answer_in_the_middle_closes_the_connection(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf got = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);

	f->refuse = true;
	assert_true(peer_say(f->loop, fd,
	                     "POST /take HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nsome"));
	(void)peer_read(f->loop, fd, &got, NULL); /* until it is closed */
	assert_non_null(strstr(got.data, " 400 "));
	assert_non_null(strstr(got.data, "enough"));
	assert_int_equal(f->ended, 0);
	assert_int_equal(f->gone, 0);
}

static void a_disconnect_is_reported_once(void **state)
{
	struct fixture *f = *state;
	int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd,
	                     "POST /take HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\nsome"));
	peer_wait(f->loop, has_some, f);
	(void)fd_close(fd);
	peer_wait(f->loop, has_gone, f);
	assert_int_equal(f->gone, 1);
	assert_int_equal(f->ended, 0);
}

static void a_client_that_stops_sending_is_cut_off(void **state)
{
	struct fixture *f = *state;
	cleanup_close int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd,
	                     "POST /take HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\nsome"));
	peer_wait(f->loop, has_gone, f);
	assert_int_equal(f->ended, 0);
}

static void an_answer_is_made_as_fast_as_it_is_taken(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf got = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);

	assert_true(
		peer_say(f->loop, fd, "GET /give HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"));
	(void)peer_read(f->loop, fd, &got, NULL);
	assert_non_null(strstr(got.data, "Content-Length: 8388608"));
	assert_true(got.len > GIVEN);
	assert_int_equal(f->left, 0);
	assert_true(f->peak <= WINDOW + 4096);
	assert_int_equal(f->gone, 0);
}

static void a_client_that_reads_nothing_of_a_stream_is_cut_off(void **state)
{
	struct fixture *f = *state;
	cleanup_close int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, "GET /give HTTP/1.1\r\n" HOST "\r\n"));
	peer_wait(f->loop, has_gone, f);
	assert_true(f->left > 0);
	assert_true(f->peak <= WINDOW + 4096);
}

#define UNIT(name)  cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define HASTY(name) cmocka_unit_test_setup_teardown(name, set_up_hasty, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_body_of_any_size_is_streamed),
		UNIT(chunks_have_no_length),
		UNIT(a_sink_that_takes_less_gets_the_rest_on_resume),
		UNIT(an_empty_body_ends_at_once),
		UNIT(an_answer_in_the_middle_closes_the_connection),
		UNIT(a_disconnect_is_reported_once),
		HASTY(a_client_that_stops_sending_is_cut_off),
		UNIT(an_answer_is_made_as_fast_as_it_is_taken),
		HASTY(a_client_that_reads_nothing_of_a_stream_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
