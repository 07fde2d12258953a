/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client sends after the handshake of a WebSocket: as it is, or turned into frames, at once
 * or in small pieces, with the handshake or after it. Whatever it is, the resulting messages are
 * text and within the limit, they do not depend on how the input was split, and the responses are
 * well-formed.
 *
 * The first byte of the input selects the mode: 1: bytes as they are; 2: with the handshake.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "http/ws.h"
#include "io/loop.h"

#define MESSAGE_MAX 600
#define TEXT_MAX    (1u << 22)
#define QUIET_TURNS 6
#define PIECE       3
#define TURNS_MAX   100000

#define OPCODE_TEXT  1
#define OPCODE_CLOSE 8
#define OPCODE_PING  9
#define OPCODE_PONG  10

static const char handshake[] = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
				"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
				"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

/* One connection, from both sides. */
struct talk {
	struct http_ws *ws; /* NULL: none, or it has ended */
	struct buf said;    /* messages that came out, each with its length before it */
	struct buf heard;   /* what the client received */
	unsigned accepted, closed;
};

struct rig {
	struct loop *loop;
	struct http_server *server;
	struct sockaddr_un address;
	struct talk *talk; /* the current one */
};

static void on_message(void *ctx, const char *text, size_t len)
{
	struct talk *t = ctx;
	uint32_t head = (uint32_t)len;

	require(t->closed == 0 && len <= MESSAGE_MAX && utf8_is_valid(text, len));
	require(buf_add(&t->said, &head, sizeof(head)) == 0 && buf_add(&t->said, text, len) == 0);
	http_ws_send(t->ws, text, len);
}

static void on_closed(void *ctx)
{
	struct talk *t = ctx;

	require(t->closed++ == 0);
	t->ws = NULL;
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
	const struct rig *rig = ctx;
	const struct http_ws_config config = {MESSAGE_MAX, TEXT_MAX, NULL};
	const struct http_ws_events events = {rig->talk, on_message, on_closed};
	struct error err = {0};

	require(http_ws_accept(req, &config, &events, &rig->talk->ws, &err) == 0);
	rig->talk->accepted++;
}

static void on_error(void *ctx, struct http_request *req, const struct error *err)
{
	(void)ctx;
	http_reply(req, &(struct http_answer){error_http(err->code), "text/plain", "", 0, NULL, 0});
}

static void rig_make(struct rig *rig)
{
	char folder[] = "/tmp/mbxfuzz-XXXXXX";
	const struct http_server_config config = {
		.loop = rig->loop = loop_new(),
		.handlers = {rig, on_headers, on_request, on_error},
		.max_connections = 64,
		.max_connections_per_peer = 64,
		.max_connections_per_local_peer = 64,
		.max_header_bytes = 8192,
		.max_bodies_bytes = 1 << 20,
		.max_answers_bytes = TEXT_MAX,
		.request_timeout_us = 60 * USEC_PER_SEC,
		.idle_timeout_us = 60 * USEC_PER_SEC,
	};
	struct error err = {0};
	int fd = -1;

	require(mkdtemp(folder));
	rig->address.sun_family = AF_UNIX;
	(void)snprintf(rig->address.sun_path, sizeof(rig->address.sun_path), "%s/s", folder);
	rig->server = http_server_new(&config);
	require(http_listen_unix(rig->address.sun_path, 0600, &fd, &err) == 0);
	require(http_server_listen(rig->server, fd, NULL, &err) == 0);
}

/* Connections can still be made while the name exists: it is removed with the program. */
static void rig_forget(struct rig *rig)
{
	char *slash = strrchr(rig->address.sun_path, '/');

	(void)unlink(rig->address.sun_path);
	*slash = '\0';
	(void)rmdir(rig->address.sun_path);
	http_server_free(rig->server);
	loop_free(rig->loop);
}

static struct rig rig; /* libFuzzer calls one function again and again */

static void rig_end(void)
{
	rig_forget(&rig);
}

/* Read what the client received. Return: whether there was something. */
static bool hear(struct talk *t, int fd)
{
	char piece[8192];
	ssize_t n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (n <= 0)
		return false;
	require(buf_add(&t->heard, piece, (size_t)n) == 0);
	return true;
}

/* Until nothing happens. Everything is in one process: what was sent has arrived. */
static void settle(struct talk *t, int fd)
{
	unsigned turns = 0;

	for (int quiet = 0; quiet < QUIET_TURNS; quiet++) {
		size_t said = t->said.len;
		unsigned ends = t->closed + t->accepted;

		require(turns++ < TURNS_MAX);
		loop_run_once(rig.loop, false);
		if (hear(t, fd) || t->said.len != said || t->closed + t->accepted != ends)
			quiet = 0;
	}
}

static void say(struct talk *t, int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return; /* it has closed */
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
		loop_run_once(rig.loop, false);
		(void)hear(t, fd);
	}
}

/* Records of the input as frames: first byte, length, payload. Masks are part of it. */
static void make_frames(struct buf *b, const uint8_t *data, size_t size)
{
	static const char mask[] = {1, 2, 3, 4};

	while (size >= 2) {
		size_t len = data[1] & 0x7f, there = size - 2 < len ? size - 2 : len;
		bool masked = data[1] != 0x80;
		const char head[] = {(char)data[0],
		                     (char)((masked ? 0x80 : 0) | (len < 126 ? len : 126)), 0,
		                     (char)len};

		require(buf_add(b, head, len < 126 ? 2 : 4) == 0);
		if (masked)
			require(buf_add(b, mask, sizeof(mask)) == 0);
		for (size_t i = 0; i < there; i++) {
			char c = (char)(data[2 + i] ^ (masked ? mask[i % 4] : 0));

			require(buf_add(b, &c, 1) == 0);
		}
		data += 2 + there;
		size -= 2 + there;
	}
}

/* The reason is the client's own, echoed by wslay, which does not check all of it. */
static void check_close(const char *payload, size_t len)
{
	unsigned code;

	if (len == 0)
		return;
	require(len >= 2);
	code = (unsigned)(uint8_t)payload[0] << 8 | (uint8_t)payload[1];
	require((code >= 1000 && code <= 1011 && code != 1004 && code != 1005 && code != 1006) ||
	        (code >= 3000 && code <= 4999));
}

/* One frame of the server's. Return: its length; 0: incomplete. */
static size_t check_frame(const char *data, size_t size, const char **said, bool *ret_last)
{
	size_t head = 2, len;
	unsigned opcode;
	uint32_t expected;

	if (size < 2)
		return 0;
	opcode = data[0] & 0x0f;
	len = (uint8_t)data[1];
	require(((uint8_t)data[0] & 0xf0) == 0x80 && len <= 126);
	if (len == 126) {
		if (size < 4)
			return 0;
		len = (size_t)(uint8_t)data[2] << 8 | (uint8_t)data[3];
		head = 4;
		require(len >= 126 && opcode == OPCODE_TEXT);
	}
	if (size < head + len)
		return 0;
	require(opcode == OPCODE_TEXT || opcode == OPCODE_CLOSE || opcode == OPCODE_PING ||
	        opcode == OPCODE_PONG);
	*ret_last = opcode == OPCODE_CLOSE;
	if (*ret_last)
		check_close(data + head, len);
	if (opcode == OPCODE_TEXT) {
		memcpy(&expected, *said, sizeof(expected));
		require(expected == len && memcmp(*said + sizeof(expected), data + head, len) == 0);
		*said += sizeof(expected) + len;
	}
	return head + len;
}

static void check_heard(const struct talk *t)
{
	static const char until[] = "\r\n\r\n";
	const char *data = t->heard.data, *said = t->said.data;
	const char *body = memmem(data, t->heard.len, until, 4);
	size_t left, n;
	bool last = false;

	require(body && strncmp(data, "HTTP/1.1 101 ", 13) == 0);
	body += 4;
	left = t->heard.len - (size_t)(body - data);
	for (; (n = check_frame(body, left, &said, &last)); body += n, left -= n)
		if (last)
			require(n == left);
	require(!said || said <= t->said.data + t->said.len);
}

static void talk_over(struct talk *t, const struct buf *bytes, size_t step, bool early)
{
	int fd = fd_socket(AF_UNIX, SOCK_STREAM, 0);
	size_t at = 0;

	rig.talk = t;
	buf_init(&t->said, TEXT_MAX);
	buf_init(&t->heard, TEXT_MAX);
	require(fd >= 0 && connect(fd, (struct sockaddr *)&rig.address, sizeof(rig.address)) == 0);
	if (early) {
		cleanup_buf struct buf both = BUF_INIT(TEXT_MAX);

		at = bytes->len < 2000 ? bytes->len : 2000;
		require(buf_add_str(&both, handshake) == 0 && buf_add(&both, bytes->data, at) == 0);
		say(t, fd, both.data, both.len);
	} else {
		say(t, fd, handshake, sizeof(handshake) - 1);
	}
	settle(t, fd);
	require(t->accepted == 1);
	for (; at < bytes->len; at += step)
		say(t, fd, bytes->data + at, bytes->len - at < step ? bytes->len - at : step);
	settle(t, fd);
	check_heard(t);
	(void)close(fd);
	for (unsigned turns = 0; http_server_connections(rig.server) > 0; turns++) {
		require(turns < TURNS_MAX);
		loop_run_once(rig.loop, false);
	}
	require(t->closed == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct talk whole = {0}, pieces = {0};
	cleanup_buf struct buf bytes = BUF_INIT(TEXT_MAX);

	if (!rig.loop) {
		rig_make(&rig);
		(void)atexit(rig_end);
	}
	if (size < 1 || size > 4096)
		return 0;
	if (data[0] & 1)
		require(buf_add(&bytes, data + 1, size - 1) == 0);
	else
		make_frames(&bytes, data + 1, size - 1);
	talk_over(&whole, &bytes, bytes.len ? bytes.len : 1, data[0] & 2);
	talk_over(&pieces, &bytes, PIECE, false);
	require(whole.said.len == pieces.said.len);
	require(whole.said.len == 0 ||
	        memcmp(whole.said.data, pieces.said.data, whole.said.len) == 0);
	buf_done(&whole.said);
	buf_done(&whole.heard);
	buf_done(&pieces.said);
	buf_done(&pieces.heard);
	return 0;
}
