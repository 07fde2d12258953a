/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include "base/alloc.h"
#include "http/ws.h"

/* A server whose only path is a WebSocket that echoes, and a client of plain bytes. */

#define MESSAGE_MAX 4096
#define WAITING_MAX (1u << 20)
#define PINGS       10000
#define PING_LEN    6
#define LONG_US     (60 * USEC_PER_SEC)
#define GREETING                                                                                   \
	"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"       \
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

enum opcode {
	MORE = 0,
	TEXT = 1,
	BINARY = 2,
	CLOSE = 8,
	PING = 9,
	PONG = 10,
	FIN = 0x80,
};

struct fixture {
	struct loop *loop;
	struct http_server *server;
	struct http_ws *ws; /* NULL: it has ended */
	int port, fd;
	struct buf came; /* at the client */
	struct error refused;
	unsigned messages, closed;
	bool silent; /* no echo */
	bool binary; /* accept binary messages only */
	struct buf bytes;
	unsigned opened, sent;
};

static void on_message(void *ctx, const char *text, size_t len)
{
	struct fixture *f = ctx;

	f->messages++;
	if (!f->silent)
		http_ws_send(f->ws, text, len);
}

static void on_closed(void *ctx)
{
	struct fixture *f = ctx;

	f->ws = NULL;
	f->closed++;
}

static void on_binary(void *ctx, const char *data, size_t len)
{
	struct fixture *f = ctx;

	f->messages++;
	assert_int_equal(buf_add(&f->bytes, data, len), 0);
	if (!f->silent)
		http_ws_send_binary(f->ws, data, len);
}

static void on_opened(void *ctx)
{
	((struct fixture *)ctx)->opened++;
}

static void on_sent(void *ctx)
{
	((struct fixture *)ctx)->sent++;
}

static int on_headers(void *ctx, struct http_request *req, size_t *ret_max_body)
{
	(void)ctx;
	(void)req;
	*ret_max_body = 0;
	return 0;
}

static void on_request(void *ctx, struct http_request *req)
{
	struct fixture *f = ctx;
	const struct http_ws_config config = {MESSAGE_MAX, WAITING_MAX, "mcp"};
	const struct http_ws_events text = {f, on_message, on_closed};
	const struct http_ws_events binary = {.ctx = f,
	                                      .on_closed = on_closed,
	                                      .on_binary = on_binary,
	                                      .on_opened = on_opened,
	                                      .on_sent = on_sent};

	if (http_ws_accept(req, &config, f->binary ? &binary : &text, &f->ws, &f->refused) < 0)
		http_reply(req, &(struct http_answer){426, "text/plain", "no", 2, NULL, 0});
}

static void on_error(void *ctx, struct http_request *req, const struct error *err)
{
	(void)ctx;
	http_reply(req, &(struct http_answer){error_http(err->code), "text/plain", "", 0, NULL, 0});
}

static int set_up(void **state)
{
	struct fixture *f = NEW(struct fixture);
	const struct http_server_config config = {
		.loop = f->loop = loop_new(),
		.handlers = {f, on_headers, on_request, on_error},
		.max_connections = 8,
		.max_connections_per_peer = 8,
		.max_connections_per_local_peer = 8,
		.max_header_bytes = 8192,
		.max_bodies_bytes = MESSAGE_MAX,
		.max_answers_bytes = 8u << 20,
		.request_timeout_us = LONG_US,
		.idle_timeout_us = LONG_US,
	};
	struct error err = {0};
	char name[64];
	int fd = -1;

	f->server = http_server_new(&config);
	assert_int_equal(http_listen_tcp("127.0.0.1:0", &fd, &err), 0);
	assert_int_equal(http_listen_name(fd, "http", name, sizeof(name)), 0);
	assert_int_equal(sscanf(name, "http://127.0.0.1:%d", &f->port), 1);
	assert_int_equal(http_server_listen(f->server, fd, NULL, &err), 0);
	f->fd = peer_connect(f->port);
	buf_init(&f->came, PEER_BUF_MAX);
	buf_init(&f->bytes, PEER_BUF_MAX);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)close(f->fd);
	http_server_free(f->server);
	assert_null(f->ws);
	loop_free(f->loop);
	buf_done(&f->came);
	buf_done(&f->bytes);
	free(f);
	return 0;
}

/* Waiting. */

static bool has_ended(void *ctx)
{
	return ((struct fixture *)ctx)->closed > 0;
}

static bool is_empty(void *ctx)
{
	return http_server_connections(((struct fixture *)ctx)->server) == 0;
}

static void greet(struct fixture *f, const char *headers)
{
	char *text = xasprintf("%s\r\n", headers);

	assert_true(peer_say(f->loop, f->fd, text));
	free(text);
	assert_true(peer_read(f->loop, f->fd, &f->came, "\r\n\r\n"));
}

static void open_ws(struct fixture *f)
{
	greet(f, GREETING);
	assert_non_null(memmem(f->came.data, f->came.len, " 101 ", 5));
	buf_consume(&f->came, f->came.len);
	assert_non_null(f->ws);
}

static void send_frame(struct fixture *f, int first, const char *data, size_t len)
{
	static const char mask[] = {7, 11, 13, 17};
	char frame[MESSAGE_MAX + 128];
	size_t n = 2;

	frame[0] = (char)first;
	frame[1] = (char)(0x80 | (len < 126 ? len : 126));
	if (len >= 126) {
		frame[n++] = (char)(len >> 8);
		frame[n++] = (char)len;
	}
	memcpy(frame + n, mask, sizeof(mask));
	n += sizeof(mask);
	for (size_t i = 0; i < len; i++)
		frame[n + i] = (char)(data[i] ^ mask[i % 4]);
	(void)peer_send(f->loop, f->fd, frame, n + len);
}

static void send_text(struct fixture *f, int first, const char *text)
{
	send_frame(f, first, text, strlen(text));
}

/* The server's next frame; short ones only. */
static void expect(struct fixture *f, int first, const char *data, size_t len)
{
	uint64_t deadline = clock_us() + PEER_PATIENCE_US;
	char piece[4096];

	while (f->came.len < len + 2) {
		ssize_t n = recv(f->fd, piece, sizeof(piece), MSG_DONTWAIT);

		assert_true(clock_us() < deadline && n != 0);
		if (n > 0)
			assert_int_equal(buf_add(&f->came, piece, (size_t)n), 0);
		peer_turn(f->loop);
	}
	assert_int_equal((unsigned char)f->came.data[0], first);
	assert_int_equal((unsigned char)f->came.data[1], len);
	assert_memory_equal(f->came.data + 2, data, len);
	buf_consume(&f->came, len + 2);
}

static void expect_text(struct fixture *f, const char *text)
{
	expect(f, FIN | TEXT, text, strlen(text));
}

/* A close frame with @code comes first, then EOF. */
static void expect_close(struct fixture *f, unsigned code)
{
	const char data[] = {(char)(code >> 8), (char)code};

	expect(f, FIN | CLOSE, data, 2);
	send_frame(f, FIN | CLOSE, data, 2);
	peer_wait(f->loop, has_ended, f);
	(void)shutdown(f->fd, SHUT_RDWR);
	peer_wait(f->loop, is_empty, f);
}

/* The handshake. */

static void the_answer_proves_that_it_was_understood(void **state)
{
	struct fixture *f = *state;

	greet(f, GREETING "Sec-WebSocket-Protocol: other, mcp\r\n");
	/* The example of RFC 6455, 1.3. */
	assert_non_null(strstr(f->came.data, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
	assert_non_null(strstr(f->came.data, "Sec-WebSocket-Protocol: mcp\r\n"));
}

static void a_bad_handshake_names_the_header(void **state)
{
	static const struct {
		const char *headers, *field;
	} cases[] = {
		{"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n", "Upgrade"},
		{"Upgrade: h2c\r\nConnection: Upgrade\r\n", "Upgrade"},
		{"Upgrade: websockets\r\nConnection: Upgrade\r\n", "Upgrade"},
		{"Upgrade: websocket\r\nConnection: keep-alive\r\n", "Upgrade"},
		{"Upgrade: websocket\r\nConnection: Upgrade\r\n", "Sec-WebSocket-Version"},
		{"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 12\r\n",
	         "Sec-WebSocket-Version"},
		{"Upgrade: websocket\r\nConnection: x, upgrade\r\nSec-WebSocket-Version: 13\r\n",
	         "Sec-WebSocket-Key"},
		{"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
	         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n",
	         "Sec-WebSocket-Key"},
		{"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
	         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ!==\r\n",
	         "Sec-WebSocket-Key"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = xasprintf("GET / HTTP/1.1\r\nHost: localhost\r\n%s", cases[i].headers);

		f->refused = (struct error){0};
		buf_consume(&f->came, f->came.len);
		/* A refused upgrade ends the connection. */
		fd_close(f->fd);
		f->fd = peer_connect(f->port);
		greet(f, text);
		free(text);
		assert_non_null(memmem(f->came.data, f->came.len, " 426 ", 5));
		assert_string_equal(f->refused.field, cases[i].field);
		assert_null(f->ws);
		assert_true(peer_read(f->loop, f->fd, &f->came, "\r\n\r\nno"));
	}
}

static void bytes_with_the_handshake_are_read(void **state)
{
	static const char frame[] = {(char)(FIN | TEXT), (char)0x82, 0, 0, 0, 0, 'h', 'i'};
	struct fixture *f = *state;
	cleanup_buf struct buf all = BUF_INIT(PEER_BUF_MAX);

	assert_int_equal(buf_add_str(&all, GREETING "\r\n"), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(buf_add(&all, frame, sizeof(frame)), 0);
	assert_true(peer_send(f->loop, f->fd, all.data, all.len));
	assert_true(peer_read(f->loop, f->fd, &f->came, "\r\n\r\n"));
	buf_consume(&f->came, (size_t)((char *)memmem(f->came.data, f->came.len, "\r\n\r\n", 4) +
	                               4 - f->came.data));
	for (int i = 0; i < 20; i++)
		expect_text(f, "hi");
}

/* Messages. */

static void messages_come_whole(void **state)
{
	struct fixture *f = *state;

	open_ws(f);
	send_text(f, FIN | TEXT, "one");
	expect_text(f, "one");
	send_text(f, TEXT, "in ");
	send_text(f, FIN | PING, "?");
	send_text(f, MORE, "three ");
	send_text(f, FIN | MORE, "parts");
	expect(f, FIN | PONG, "?", 1);
	expect_text(f, "in three parts");
	send_text(f, FIN | TEXT, "");
	expect_text(f, "");
	send_text(f, FIN | PONG, "unasked");
	send_text(f, TEXT, "\xe2\x82");
	send_text(f, FIN | MORE, "\xac");
	expect_text(f, "\xe2\x82\xac");
	assert_int_equal(f->messages, 4);
}

static void the_longest_message_is_accepted(void **state)
{
	struct fixture *f = *state;
	char text[MESSAGE_MAX + 1];

	memset(text, 'x', sizeof(text));
	open_ws(f);
	f->silent = true;
	send_frame(f, FIN | TEXT, text, MESSAGE_MAX);
	send_frame(f, FIN | TEXT, text, MESSAGE_MAX + 1);
	expect_close(f, 1009);
	assert_int_equal(f->messages, 1);
}

static void too_much_in_pieces_is_too_much(void **state)
{
	struct fixture *f = *state;
	char text[1024];

	memset(text, 'x', sizeof(text));
	open_ws(f);
	send_frame(f, TEXT, text, sizeof(text));
	for (int i = 0; i < 4; i++)
		send_frame(f, MORE, text, sizeof(text));
	expect_close(f, 1009);
	assert_int_equal(f->messages, 0);
}

static bool has_sent(void *ctx)
{
	return ((struct fixture *)ctx)->sent > 0;
}

static void binary_messages_are_echoed_and_their_end_is_reported(void **state)
{
	struct fixture *f = *state;

	f->binary = true;
	open_ws(f);
	assert_int_equal(f->opened, 1);
	assert_int_equal(f->sent, 0);
	send_frame(f, FIN | BINARY, "a\0b", 3);
	expect(f, FIN | BINARY, "a\0b", 3);
	send_frame(f, FIN | BINARY, "", 0);
	expect(f, FIN | BINARY, "", 0);
	peer_wait(f->loop, has_sent, f);
	send_text(f, FIN | TEXT, "text");
	expect_close(f, 1003);
	assert_int_equal(f->messages, 2);
}

static bool has_two(void *ctx)
{
	return ((struct fixture *)ctx)->messages >= 2;
}

static void a_held_client_waits(void **state)
{
	struct fixture *f = *state;
	char data[MESSAGE_MAX];

	memset(data, 'x', sizeof(data));
	f->binary = f->silent = true;
	open_ws(f);
	http_ws_hold(f->ws, true);
	send_frame(f, FIN | BINARY, data, sizeof(data));
	send_frame(f, FIN | BINARY, data, sizeof(data));
	for (int i = 0; i < 20; i++)
		peer_turn(f->loop);
	assert_int_equal(f->messages, 0);
	http_ws_hold(f->ws, false);
	peer_wait(f->loop, has_two, f);
	assert_int_equal(f->bytes.len, 2 * sizeof(data));
}

/* A violation closes the connection with a code; later input is ignored. */
static void violations_close_it(void **state)
{
	static const struct {
		int first;
		const char *data;
		size_t len;
		unsigned code;
	} cases[] = {
		{FIN | TEXT, "\xff", 1, 1007},
		{FIN | TEXT, "\xed\xa0\x80", 3, 1007},
		{FIN | TEXT, "\xe2\x82", 2, 1007},
		{FIN | BINARY, "x", 1, 1003},
		{FIN | 3, "x", 1, 1002},
		{FIN | 0x40 | TEXT, "x", 1, 1002},
		{FIN | MORE, "x", 1, 1002},
		{FIN | CLOSE, "\x03\xed", 2, 1002}, /* 1005 is never sent */
		{FIN | CLOSE, "\x00\x07", 2, 1002},
		{FIN | CLOSE, "\x03\xe8\xff", 3, 1007},
		{FIN | CLOSE, "\x03\xe8", 2, 1000},
		{FIN | CLOSE,
	         "\x03\xe9"
	         "bye",
	         5, 1001},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		/* NUL-terminated: it is also searched for as a string. */
		char code[3] = {(char)(cases[i].code >> 8), (char)cases[i].code, 0};

		f->closed = 0;
		open_ws(f);
		send_frame(f, cases[i].first, cases[i].data, cases[i].len);
		send_text(f, FIN | TEXT, "late");
		while (f->came.len < 4 && peer_read(f->loop, f->fd, &f->came, code))
			;
		if (f->came.len < 4 || memcmp(f->came.data + 2, code, 2) != 0)
			fail_msg("case %zu: %zu bytes came", i, f->came.len);
		assert_int_equal((unsigned char)f->came.data[0], FIN | CLOSE);
		(void)close(f->fd);
		peer_wait(f->loop, has_ended, f);
		peer_wait(f->loop, is_empty, f);
		f->fd = peer_connect(f->port);
		buf_consume(&f->came, f->came.len);
	}
	assert_int_equal(f->messages, 0);
}

static void a_frame_without_a_mask_closes_it(void **state)
{
	struct fixture *f = *state;

	open_ws(f);
	assert_true(peer_send(f->loop, f->fd, "\x81\x01x", 3));
	expect_close(f, 1002);
	assert_int_equal(f->messages, 0);
}

/* Frames that cannot be parsed: there is no close code. */
static void invalid_control_frames_close_it(void **state)
{
	struct fixture *f = *state;
	char text[126] = {0};
	const struct {
		int first;
		size_t len;
	} cases[] = {{PING, 1}, {FIN | PING, sizeof(text)}, {CLOSE, 0}, {FIN | CLOSE, 1}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		f->closed = 0;
		open_ws(f);
		send_frame(f, cases[i].first, text, cases[i].len);
		send_text(f, FIN | TEXT, "late");
		expect(f, FIN | CLOSE, "", 0);
		(void)close(f->fd);
		peer_wait(f->loop, has_ended, f);
		peer_wait(f->loop, is_empty, f);
		f->fd = peer_connect(f->port);
	}
	assert_int_equal(f->messages, 0);
}

/* Ends. */

static void the_server_sends_its_close_code(void **state)
{
	struct fixture *f = *state;

	open_ws(f);
	http_ws_close(f->ws, HTTP_WS_POLICY);
	http_ws_send(f->ws, "late", 4); /* nothing follows a close */
	expect_close(f, HTTP_WS_POLICY);
	assert_int_equal(f->closed, 1);
}

static void a_disconnect_is_noticed(void **state)
{
	struct fixture *f = *state;

	open_ws(f);
	send_text(f, TEXT, "half a mess");
	(void)shutdown(f->fd, SHUT_RDWR);
	peer_wait(f->loop, has_ended, f);
	peer_wait(f->loop, is_empty, f);
	assert_int_equal(f->messages, 0);
}

static void a_client_that_does_not_read_is_cut_off(void **state)
{
	struct fixture *f = *state;
	char *text = xmalloc(MESSAGE_MAX);

	memset(text, 'x', MESSAGE_MAX);
	open_ws(f);
	/* More than the kernel buffers plus what may wait. */
	for (int i = 0; i < 100000 && f->ws && !f->closed; i++) {
		http_ws_send(f->ws, text, MESSAGE_MAX);
		loop_run_once(f->loop, false);
	}
	peer_wait(f->loop, has_ended, f);
	free(text);
}

static void pings_with_unread_answers_are_not_read(void **state)
{
	static const char ping[PING_LEN] = {(char)(FIN | PING), (char)0x80};
	struct fixture *f = *state;
	char many[PINGS * PING_LEN];
	size_t sent = 0;
	int blocked = 0;

	for (size_t i = 0; i < PINGS; i++)
		memcpy(many + i * PING_LEN, ping, PING_LEN);
	open_ws(f);
	/* More than the kernel buffers, twice: it blocks, and stays blocked. */
	while (blocked < 200 && sent < (256u << 20)) {
		size_t at = sent % sizeof(many);
		ssize_t n = send(f->fd, many + at, sizeof(many) - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		blocked = n < 0 ? blocked + 1 : 0;
		sent += n > 0 ? (size_t)n : 0;
		loop_run_once(f->loop, false);
	}
	assert_int_equal(blocked, 200);
	assert_non_null(f->ws);
}

static void a_server_that_ends_takes_it_along(void **state)
{
	struct fixture *f = *state;

	open_ws(f);
	http_server_free(f->server);
	assert_int_equal(f->closed, 1);
	f->server = http_server_new(&(struct http_server_config){.loop = f->loop});
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(the_answer_proves_that_it_was_understood),
		UNIT(a_bad_handshake_names_the_header),
		UNIT(bytes_with_the_handshake_are_read),
		UNIT(messages_come_whole),
		UNIT(the_longest_message_is_accepted),
		UNIT(too_much_in_pieces_is_too_much),
		UNIT(binary_messages_are_echoed_and_their_end_is_reported),
		UNIT(a_held_client_waits),
		UNIT(violations_close_it),
		UNIT(a_frame_without_a_mask_closes_it),
		UNIT(invalid_control_frames_close_it),
		UNIT(the_server_sends_its_close_code),
		UNIT(a_disconnect_is_noticed),
		UNIT(a_client_that_does_not_read_is_cut_off),
		UNIT(pings_with_unread_answers_are_not_read),
		UNIT(a_server_that_ends_takes_it_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
