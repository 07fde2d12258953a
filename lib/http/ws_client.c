/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws_client.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "http/ws_proof.h"
#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <wslay/wslay.h>

/*
 * Theory of operation. libcurl's own WebSockets are missing in the builds of distributions, so it
 * only connects (CURLOPT_CONNECT_ONLY), and the request for the upgrade is written here. Bytes that
 * came after the response's head are kept for wslay.
 *
 * The server's proof (Sec-WebSocket-Accept) shows that it has read this request's key, and is no
 * cache or proxy that repeats another response.
 */

#define HEAD_MAX  16384
#define BODY_MAX  65536
#define NONCE_LEN 16
#define PIECE     16384

struct ws_client {
	CURL *easy;
	curl_socket_t fd;
	struct ws_client_events events;
	wslay_event_context_ptr wslay;
	struct buf early; /* bytes after the head */
	bool held, ended, broken;
	char detail[CURL_ERROR_SIZE];
};

void ws_client_free(struct ws_client *c)
{
	if (!c)
		return;
	if (c->wslay)
		wslay_event_context_free(c->wslay);
	curl_easy_cleanup(c->easy);
	buf_done(&c->early);
	free(c);
}

/* Frames. */

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *room, size_t len, int flags,
                       void *user)
{
	struct ws_client *c = user;
	size_t n = 0;
	CURLcode code = CURLE_AGAIN;

	(void)flags;
	if (!c->held && c->early.len > 0) {
		n = c->early.len < len ? c->early.len : len;
		memcpy(room, c->early.data, n);
		buf_consume(&c->early, n);
		return (ssize_t)n;
	}
	if (!c->held)
		code = curl_easy_recv(c->easy, room, len, &n);
	if (code == CURLE_OK && n > 0)
		return (ssize_t)n;
	c->ended = c->ended || code != CURLE_AGAIN;
	wslay_event_set_error(ctx, code == CURLE_AGAIN ? WSLAY_ERR_WOULDBLOCK
	                                               : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t len, int flags,
                       void *user)
{
	struct ws_client *c = user;
	size_t n = 0;
	CURLcode code = curl_easy_send(c->easy, data, len, &n);

	(void)flags;
	if (code == CURLE_OK)
		return (ssize_t)n;
	c->broken = c->broken || code != CURLE_AGAIN;
	wslay_event_set_error(ctx, code == CURLE_AGAIN ? WSLAY_ERR_WOULDBLOCK
	                                               : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static int on_mask(wslay_event_context_ptr ctx, uint8_t *room, size_t len, void *user)
{
	(void)ctx;
	(void)user;
	return getrandom(room, len, 0) == (ssize_t)len ? 0 : -1;
}

static void on_msg(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *arg,
                   void *user)
{
	struct ws_client *c = user;
	const char *data = (const char *)arg->msg;

	(void)ctx;
	if (arg->opcode == WSLAY_TEXT_FRAME && c->events.on_text)
		c->events.on_text(c->events.ctx, data, arg->msg_length);
	else if (arg->opcode == WSLAY_BINARY_FRAME && c->events.on_binary)
		c->events.on_binary(c->events.ctx, data, arg->msg_length);
}

int ws_client_fd(const struct ws_client *c)
{
	return c->fd;
}

short ws_client_wants(const struct ws_client *c)
{
	return (short)((!c->held && wslay_event_want_read(c->wslay) ? POLLIN : 0) |
	               (wslay_event_want_write(c->wslay) ? POLLOUT : 0));
}

int ws_client_pump(struct ws_client *c)
{
	int r = 0;

	if (wslay_event_want_read(c->wslay) && !c->held)
		r = wslay_event_recv(c->wslay);
	/* Also the close that wslay queues for a malformed frame. */
	if (wslay_event_want_write(c->wslay) && !c->broken)
		(void)wslay_event_send(c->wslay);
	if (!wslay_event_want_read(c->wslay) && !wslay_event_want_write(c->wslay))
		return 1;
	if (c->broken || r < 0)
		return c->ended && wslay_event_get_close_received(c->wslay) ? 1 : -ECONNRESET;
	return 0;
}

static void queue_message(struct ws_client *c, uint8_t opcode, const char *data, size_t len)
{
	const struct wslay_event_msg msg = {
		.opcode = opcode, .msg = (const uint8_t *)data, .msg_length = len};

	/* Fails after a close: nothing is expected any more. */
	(void)wslay_event_queue_msg(c->wslay, &msg);
}

void ws_client_send_text(struct ws_client *c, const char *text, size_t len)
{
	queue_message(c, WSLAY_TEXT_FRAME, text, len);
}

void ws_client_send_binary(struct ws_client *c, const char *data, size_t len)
{
	queue_message(c, WSLAY_BINARY_FRAME, data, len);
}

size_t ws_client_waiting(const struct ws_client *c)
{
	return wslay_event_get_queued_msg_length(c->wslay);
}

void ws_client_hold(struct ws_client *c, bool hold)
{
	c->held = hold;
}

void ws_client_close(struct ws_client *c, unsigned code)
{
	(void)wslay_event_queue_close(c->wslay, (uint16_t)code, NULL, 0);
}

unsigned ws_client_code(const struct ws_client *c)
{
	unsigned code = wslay_event_get_status_code_received(c->wslay);

	return code == WSLAY_CODE_ABNORMAL_CLOSURE || code == WSLAY_CODE_NO_STATUS_RCVD ? 0 : code;
}

/* Connection and upgrade. */

struct opening {
	const struct ws_client_request *request;
	struct ws_client *client;
	uint64_t deadline_us; /* 0: none */
	struct buf head;      /* of the response, then what follows */
	char *key;            /* owned: Sec-WebSocket-Key */
};

static const char *where_of(const struct ws_client_request *request)
{
	return request->socket_path ? request->socket_path : request->url;
}

static int report_failure(const struct opening *o, CURLcode code, struct error *err)
{
	const struct ws_client_request *request = o->request;
	const char *where = where_of(request);
	long sys = 0;

	(void)curl_easy_getinfo(o->client->easy, CURLINFO_OS_ERRNO, &sys);
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return error_set(err, ERR_UNTRUSTED, 0,
		                 "the certificate of %s is not trusted%s%s (%s)", where,
		                 request->untrusted ? "; " : "",
		                 request->untrusted ? request->untrusted : "", o->client->detail);
	if (code == CURLE_SSL_CACERT_BADFILE)
		return error_set(err, ERR_INVALID, 0, "cannot read certificates from '%s'",
		                 request->ca_file);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return error_set(err, ERR_TIMEOUT, 0, "timed out waiting for %s", where);
	if (code == CURLE_COULDNT_CONNECT && request->unreached)
		return error_set(err, ERR_UNAVAILABLE, (int)sys, "cannot connect to %s; %s", where,
		                 request->unreached);
	return error_set(err, ERR_UNAVAILABLE, (int)sys, "%s: %s", where,
	                 o->client->detail[0] ? o->client->detail : curl_easy_strerror(code));
}

static int connect_curl(const struct opening *o, struct error *err)
{
	const struct ws_client_request *request = o->request;
	struct ws_client *c = o->client;
	CURLcode code;

	(void)curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, c->detail);
	(void)curl_easy_setopt(c->easy, CURLOPT_URL, request->url);
	(void)curl_easy_setopt(c->easy, CURLOPT_CONNECT_ONLY, 1L);
	(void)curl_easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(c->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	/* The request is written here, in HTTP/1.1. */
	(void)curl_easy_setopt(c->easy, CURLOPT_SSL_ENABLE_ALPN, 0L);
	(void)curl_easy_setopt(c->easy, CURLOPT_PROXY, ""); /* ignore the environment's */
	if (request->socket_path)
		(void)curl_easy_setopt(c->easy, CURLOPT_UNIX_SOCKET_PATH, request->socket_path);
	if (request->ca_file)
		(void)curl_easy_setopt(c->easy, CURLOPT_CAINFO, request->ca_file);
	if (request->timeout_us)
		(void)curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS,
		                       (long)(request->timeout_us / 1000 + 1));
	code = curl_easy_perform(c->easy);
	if (code == CURLE_OK)
		code = curl_easy_getinfo(c->easy, CURLINFO_ACTIVESOCKET, &c->fd);
	return code == CURLE_OK ? 0 : report_failure(o, code, err);
}

/* Wait for the socket. Return: 0, or -1 with *err. */
static int wait_for(const struct opening *o, short events, struct error *err)
{
	const struct ws_client_request *request = o->request;
	struct pollfd fds[] = {
		{.fd = o->client->fd, .events = events},
		{.fd = request->cancel_fd > 0 ? request->cancel_fd : -1, .events = POLLIN},
	};
	uint64_t now = clock_us();
	int ms = o->deadline_us == 0    ? -1
	         : o->deadline_us > now ? (int)((o->deadline_us - now) / USEC_PER_MS + 1)
	                                : 0;
	int r = poll(fds, ARRAY_SIZE(fds), ms);

	if (r < 0 && errno != EINTR)
		return error_set(err, ERR_SYSTEM, errno, "wait for %s", where_of(request));
	if (r == 0)
		return error_set(err, ERR_TIMEOUT, 0, "timed out waiting for %s",
		                 where_of(request));
	if (fds[1].revents)
		return error_set(err, ERR_UNAVAILABLE, ECANCELED, "stopped");
	return 0;
}

static int send_all(const struct opening *o, const char *text, struct error *err)
{
	size_t len = strlen(text);

	while (len > 0) {
		size_t n = 0;
		CURLcode code = curl_easy_send(o->client->easy, text, len, &n);

		if (code != CURLE_OK && code != CURLE_AGAIN)
			return report_failure(o, code, err);
		text += n;
		len -= n;
		if (code == CURLE_AGAIN && wait_for(o, POLLOUT, err) < 0)
			return -1;
	}
	return 0;
}

/* "localhost:8000" of "https://localhost:8000". Return: owned. */
static char *host_of(const char *url)
{
	const char *host = strstr(url, "://");

	host = host ? host + 3 : url;
	return xstrndup(host, strcspn(host, "/"));
}

static int send_request(struct opening *o, struct error *err)
{
	const struct ws_client_request *request = o->request;
	uint8_t nonce[NONCE_LEN] = {0};
	cleanup_free char *text = NULL, *host = host_of(request->url);

	if (getrandom(nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
		return error_set(err, ERR_SYSTEM, EIO, "get random bytes");
	o->key = base64_encode(nonce, sizeof(nonce));
	text = xasprintf("GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\n"
	                 "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
	                 "Sec-WebSocket-Key: %s\r\n%s%s%s\r\n",
	                 request->path, host, o->key,
	                 request->bearer ? "Authorization: Bearer " : "",
	                 request->bearer ? request->bearer : "", request->bearer ? "\r\n" : "");
	return send_all(o, text, err);
}

/* Return: 1; 0 at EOF; or -1 with *err. */
static int read_more(struct opening *o, struct error *err)
{
	char piece[PIECE];
	size_t n = 0;
	CURLcode code = curl_easy_recv(o->client->easy, piece, sizeof(piece), &n);

	if (code == CURLE_AGAIN)
		return wait_for(o, POLLIN, err) < 0 ? -1 : 1;
	if (code != CURLE_OK)
		return report_failure(o, code, err);
	if (n > 0 && buf_add(&o->head, piece, n) < 0)
		return error_set(err, ERR_PROTOCOL, 0, "%s: the response is too long",
		                 where_of(o->request));
	return n > 0;
}

/* Return: length of the head with its empty line, or -1 with *err. */
static ssize_t read_head(struct opening *o, struct error *err)
{
	for (;;) {
		const char *end =
			o->head.len ? memmem(o->head.data, o->head.len, "\r\n\r\n", 4) : NULL;
		int r;

		if (end)
			return end - o->head.data + 4;
		r = o->head.len > HEAD_MAX ? 0 : read_more(o, err);
		if (r < 0)
			return -1;
		if (r == 0)
			return error_set(err, ERR_UNAVAILABLE, 0, "%s does not answer with HTTP",
			                 where_of(o->request));
	}
}

/* The value of a header in a NUL-terminated head, up to the end of its line; NULL: none. */
static const char *find_header(const char *head, const char *name, size_t *ret_len)
{
	size_t len = strlen(name);

	for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, len) != 0 || line[len] != ':')
			continue;
		line += len + 1;
		line += strspn(line, " \t");
		*ret_len = strcspn(line, "\r");
		return line;
	}
	return NULL;
}

static bool is_upgrade(const char *head, int status)
{
	size_t len = 0;
	const char *value = find_header(head, "Upgrade", &len);

	return status == 101 && value && len == 9 && strncasecmp(value, "websocket", 9) == 0;
}

static bool is_proof(const char *head, const char *key)
{
	size_t len = 0;
	const char *value = find_header(head, "Sec-WebSocket-Accept", &len);
	cleanup_free char *expected = ws_proof(key);

	while (value && len > 0 && strchr(" \t", value[len - 1]))
		len--;
	return value && len == strlen(expected) && memcmp(value, expected, len) == 0;
}

/* As much of the body as fits and comes. */
static void read_body(struct opening *o, const char *head, struct ws_client_refusal *ret_refusal)
{
	size_t len = 0, digits = 0;
	const char *value = find_header(head, "Content-Length", &digits);
	cleanup_free char *text = value ? xstrndup(value, digits) : NULL;
	struct error ignored = {0};
	uint64_t size = 0;

	if (!text || parse_u64(text, &size) < 0)
		return;
	len = size < BODY_MAX ? (size_t)size : BODY_MAX;
	while (o->head.len < len && read_more(o, &ignored) > 0)
		;
	ret_refusal->body_len = o->head.len < len ? o->head.len : len;
	ret_refusal->body = xmemdup0(o->head.data ? o->head.data : "", ret_refusal->body_len);
}

/* Return: the status in a head, or -1: not HTTP/1.1. */
static int parse_status(const char *head)
{
	static const char version[] = "HTTP/1.1 ";
	cleanup_free char *digits = NULL;
	uint64_t status = 0;

	if (!str_has_prefix(head, version))
		return -1;
	head += sizeof(version) - 1;
	digits = xstrndup(head, strspn(head, "0123456789"));
	return parse_u64(digits, &status) < 0 || status > 999 ? -1 : (int)status;
}

static int read_answer(struct opening *o, struct ws_client_refusal *ret_refusal, struct error *err)
{
	ssize_t len = read_head(o, err);
	cleanup_free char *head = NULL;
	int status;

	if (len < 0)
		return -1;
	head = xmemdup0(o->head.data, (size_t)len);
	buf_consume(&o->head, (size_t)len);
	status = parse_status(head);
	if (status < 0)
		return error_set(err, ERR_UNAVAILABLE, 0, "%s does not answer with HTTP/1.1",
		                 where_of(o->request));
	if (is_upgrade(head, status) && is_proof(head, o->key))
		return 0;
	if (is_upgrade(head, status))
		return error_set(err, ERR_PROTOCOL, 0,
		                 "%s answers another WebSocket's request "
		                 "(Sec-WebSocket-Accept is wrong)",
		                 where_of(o->request));
	ret_refusal->status = status;
	read_body(o, head, ret_refusal);
	return error_set(err, ERR_UNAVAILABLE, 0, "%s answers with status %d, not a WebSocket",
	                 where_of(o->request), status);
}

static int open_client(struct opening *o, struct ws_client_refusal *ret_refusal, struct error *err)
{
	static const struct wslay_event_callbacks callbacks = {.recv_callback = on_recv,
	                                                       .send_callback = on_send,
	                                                       .genmask_callback = on_mask,
	                                                       .on_msg_recv_callback = on_msg};
	struct ws_client *c = o->client;

	if (connect_curl(o, err) < 0 || send_request(o, err) < 0 ||
	    read_answer(o, ret_refusal, err) < 0)
		return -1;
	if (wslay_event_context_client_init(&c->wslay, &callbacks, c) != 0)
		return error_set(err, ERR_SYSTEM, ENOMEM, "start a WebSocket");
	wslay_event_config_set_max_recv_msg_length(c->wslay, o->request->max_message);
	return buf_add(&c->early, o->head.data, o->head.len) < 0
	               ? error_set(err, ERR_PROTOCOL, 0, "too many bytes with the upgrade")
	               : 0;
}

struct ws_client *ws_client_open(const struct ws_client_request *request,
                                 const struct ws_client_events *events,
                                 struct ws_client_refusal *ret_refusal, struct error *err)
{
	struct ws_client *c = NEW(struct ws_client);
	struct opening o = {
		.request = request,
		.client = c,
		.deadline_us = request->timeout_us ? clock_us() + request->timeout_us : 0,
		.head = BUF_INIT(HEAD_MAX + BODY_MAX + PIECE),
	};
	int r;

	*ret_refusal = (struct ws_client_refusal){0};
	buf_init(&c->early, HEAD_MAX + BODY_MAX + PIECE);
	c->events = *events;
	/* Idempotent; the program has one thread. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		c->easy = curl_easy_init();
	r = c->easy ? open_client(&o, ret_refusal, err)
	            : error_set(err, ERR_SYSTEM, ENOMEM, "start libcurl");
	buf_done(&o.head);
	free(o.key);
	if (r == 0)
		return c;
	ws_client_free(c);
	return NULL;
}
