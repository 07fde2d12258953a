/* SPDX-License-Identifier: Apache-2.0 */
#include "http/internal.h"

#include "base/buf.h"
#include "base/clock.h"
#include "io/loop.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Theory of operation. A handler responds while microhttpd waits inside on_access, or later, when
 * the connection is suspended. Either way the request keeps the response until on_access, the only
 * place where microhttpd accepts it; a later response resumes the connection.
 */

#define STREAM_PENDING_MAX (16u << 20)
/* One piece may exceed what may wait: a stream's last event repeats all output. The writer bounds
 * it; this prevents overflow. */
#define STREAM_PIECE_MAX (1ul << 30)
/* Status line and headers sent outside microhttpd. */
#define HEADER_BY_HAND_MAX 2048
#define STREAM_BLOCK       32768
#define PROCESS_TIME_LEN   32
/* Moving the rest for each piece takes quadratic time. */
#define STREAM_DROP_STEP (1u << 20)

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
	/* Fails only for values with line breaks. */
	enum MHD_Result r = MHD_add_response_header(response, name, value);

	assert(r == MHD_YES);
	(void)r;
}

/* "0.001234": seconds until the response was ready. */
static void format_process_time(const struct http_request *req, char ret_text[PROCESS_TIME_LEN])
{
	uint64_t us = clock_us() - req->began_us;

	(void)snprintf(ret_text, PROCESS_TIME_LEN, "%llu.%06u",
	               (unsigned long long)(us / USEC_PER_SEC), (unsigned)(us % USEC_PER_SEC));
}

static void set_answer(struct http_request *req, struct MHD_Response *response, int status,
                       const char *content_type)
{
	struct http_conn *c = req->conn;
	char process_time[PROCESS_TIME_LEN];

	assert(response && !req->response && req->phase < REQUEST_ANSWERED);
	/* The body is not read: what follows is not a request. */
	if (req->phase == REQUEST_HEAD && request_has_body(req))
		c->unread = req->close = true;
	/* Nor is it checked where another protocol was asked for and not chosen. */
	if (c->framing.state == FRAMING_UPGRADE && !req->ws)
		req->close = true;
	if (content_type)
		add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
	for (size_t i = 0; i < req->added_count; i++)
		add_header(response, req->added[i].name, req->added[i].value);
	add_header(response, "X-Request-ID", req->id);
	format_process_time(req, process_time);
	add_header(response, "X-Process-Time", process_time);
	add_header(response, "X-Content-Type-Options", "nosniff");
	add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (!req->ws && (req->close || c->crowded || c->server->quiescing))
		add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	req->response = response;
	req->status = status;
	req->phase = REQUEST_ANSWERED;
}

static bool must_bypass_mhd(const struct http_request *req)
{
	return req->phase == REQUEST_REFUSED || req->phase == REQUEST_BODY;
}

static int add_head_by_hand(struct buf *b, const struct http_request *req,
                            const struct http_answer *a)
{
	char process_time[PROCESS_TIME_LEN];
	int r;

	format_process_time(req, process_time);
	r = buf_addf(b,
	             "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
	             "X-Request-ID: %s\r\nX-Process-Time: %s\r\nConnection: close\r\n",
	             a->status, MHD_get_reason_phrase_for((unsigned)a->status), a->content_type,
	             a->len, req->id, process_time);
	for (size_t i = 0; r >= 0 && i < a->headers_count; i++)
		r = buf_addf(b, "%s: %s\r\n", a->headers[i].name, a->headers[i].value);
	for (size_t i = 0; r >= 0 && i < req->added_count; i++)
		r = buf_addf(b, "%s: %s\r\n", req->added[i].name, req->added[i].value);
	return r < 0 ? r : buf_add_str(b, "\r\n");
}

/*
 * microhttpd accepts no response in the middle of a header or body, so we send a rejection. No
 * response is in progress, so the few bytes fit the socket's buffer, or are lost with the
 * connection.
 */
static void reply_bypassing_mhd(struct http_request *req, const struct http_answer *a)
{
	cleanup_buf struct buf b = BUF_INIT(a->len + HEADER_BY_HAND_MAX);

	if (add_head_by_hand(&b, req, a) < 0 || buf_add(&b, a->body, a->len) < 0)
		b.len = 0;
	if (req->conn->listener->is_tls)
		tls_send(req->conn, b.data, b.len);
	else
		(void)!send(req->conn->fd, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	req->conn->unread = true;
	req->status = a->status;
	req->sent_bytes = a->len;
	req->phase = REQUEST_SENDING;
	/* A held-back body: microhttpd delivers the rest; the answer is to close. */
	conn_wait(req->conn, WAIT_REQUEST);
	conn_resume(req->conn);
}

static void queue_reply(struct http_request *req, const struct http_answer *a,
                        struct MHD_Response *response)
{
	assert(response);
	for (size_t i = 0; i < a->headers_count; i++)
		add_header(response, a->headers[i].name, a->headers[i].value);
	set_answer(req, response, a->status, a->content_type);
	req->sent_bytes = a->len;
	response_quota_set(req, a->len);
	conn_wait(req->conn, WAIT_REQUEST);
	conn_resume(req->conn);
}

/* microhttpd's prototype lacks the const; it only reads. */
static struct MHD_Response *make_response(const struct http_answer *a,
                                          enum MHD_ResponseMemoryMode mode)
{
	return MHD_create_response_from_buffer(a->len, (void *)(uintptr_t)a->body, mode);
}

void http_reply(struct http_request *req, const struct http_answer *a)
{
	req->gone_fn = NULL;
	if (must_bypass_mhd(req))
		reply_bypassing_mhd(req, a);
	else
		queue_reply(req, a, make_response(a, MHD_RESPMEM_MUST_COPY));
}

void http_reply_owned(struct http_request *req, const struct http_answer *a)
{
	req->gone_fn = NULL;
	if (!must_bypass_mhd(req)) {
		queue_reply(req, a, make_response(a, MHD_RESPMEM_MUST_FREE));
		return;
	}
	reply_bypassing_mhd(req, a);
	free((void *)(uintptr_t)a->body);
}

/*
 * The client is gone. microhttpd closes a chunked response that ends with an error, but cleans it
 * up only with another connection. A failing write closes it for good: shut the socket down, so
 * that nothing that looks like an end is sent, then end. With a Content-Length one more byte forces
 * the write.
 */
static ssize_t abandon_stream(struct http_request *req, char *room)
{
	conn_cut(req->conn);
	if (!req->sized)
		return MHD_CONTENT_READER_END_OF_STREAM;
	room[0] = '\0';
	return 1;
}

/* The client's timeout restarts with every step; without pending data it stops. */
static void note_taken(struct http_request *req, size_t n)
{
	struct http_conn *c = req->conn;

	if (!req->taken_fn)
		return;
	req->step_bytes += n;
	if (req->pending_off == req->pending.len && !req->stream_ended) {
		conn_wait_end(c);
	} else if (req->step_bytes >= HTTP_STEP) {
		req->step_bytes = 0;
		conn_wait(c, WAIT_REQUEST);
	}
	if (!req->stream_ended)
		req->taken_fn(req->taken_ctx, n);
}

static ssize_t read_stream(void *cls, uint64_t pos, char *room, size_t max)
{
	struct http_request *req = cls;
	size_t n = req->pending.len - req->pending_off;

	(void)pos;
	if (req->gone)
		return abandon_stream(req, room);
	if (n > 0) {
		n = n < max ? n : max;
		memcpy(room, req->pending.data + req->pending_off, n);
		req->pending_off += n;
		note_taken(req, n);
		return (ssize_t)n;
	}
	if (req->stream_ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (req->conn->hung_up) {
		request_gone(req);
		return abandon_stream(req, room);
	}
	buf_done(&req->pending);
	req->pending_off = 0;
	response_quota_set(req, 0);
	conn_suspend(req->conn);
	return 0;
}

void http_stream_begin(struct http_request *req, int status, const char *content_type)
{
	struct MHD_Response *response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, req, NULL);

	assert(response);
	req->stream = true;
	buf_init(&req->pending, STREAM_PENDING_MAX + STREAM_DROP_STEP + STREAM_PIECE_MAX);
	set_answer(req, response, status, content_type);
	conn_resume(req->conn);
}

int http_stream_write(struct http_request *req, const char *data, size_t len)
{
	size_t waiting = req->pending.len - req->pending_off;

	assert(req->stream && !req->stream_ended);
	if (req->gone)
		return -EPIPE;
	if (req->cut)
		return -ENOBUFS;
	if (waiting > STREAM_PENDING_MAX || len > STREAM_PIECE_MAX) {
		/* The hang-up informs the handler. */
		conn_cut(req->conn);
		return -ENOBUFS;
	}
	if (req->pending_off >= STREAM_DROP_STEP) {
		buf_consume(&req->pending, req->pending_off);
		req->pending_off = 0;
	}
	if (buf_add(&req->pending, data, len) < 0) {
		/* Out of memory: the maximum was checked above. */
		conn_cut(req->conn);
		return -ENOBUFS;
	}
	req->sent_bytes += len;
	response_quota_set(req, req->pending.len);
	if (req->taken_fn && waiting == 0)
		conn_wait(req->conn, WAIT_REQUEST);
	if (req->phase == REQUEST_SENDING)
		conn_resume(req->conn);
	return 0;
}

void http_stream_start(struct http_request *req, const struct http_stream_head *head)
{
	uint64_t size = head->length == HTTP_LENGTH_UNKNOWN ? MHD_SIZE_UNKNOWN : head->length;
	struct MHD_Response *response =
		MHD_create_response_from_callback(size, STREAM_BLOCK, read_stream, req, NULL);

	assert(response);
	for (size_t i = 0; i < head->headers_count; i++)
		add_header(response, head->headers[i].name, head->headers[i].value);
	req->stream = true;
	req->sized = size != MHD_SIZE_UNKNOWN;
	req->taken_fn = head->on_taken;
	req->taken_ctx = head->ctx;
	buf_init(&req->pending, STREAM_PENDING_MAX + STREAM_DROP_STEP + STREAM_PIECE_MAX);
	set_answer(req, response, head->status, head->content_type);
	conn_resume(req->conn);
}

void http_stream_abort(struct http_request *req)
{
	assert(req->stream && !req->stream_ended);
	req->gone_fn = NULL;
	req->taken_fn = NULL;
	req->gone = true;
	conn_cut(req->conn);
	conn_resume(req->conn);
}

void http_stream_end(struct http_request *req)
{
	assert(req->stream && !req->stream_ended);
	req->gone_fn = NULL;
	req->stream_ended = true;
	conn_wait(req->conn, WAIT_REQUEST);
	conn_resume(req->conn);
}

void response_upgrade(struct http_request *req, MHD_UpgradeHandler handler, void *ctx)
{
	struct MHD_Response *response = MHD_create_response_for_upgrade(handler, ctx);

	assert(response);
	req->gone_fn = NULL;
	set_answer(req, response, MHD_HTTP_SWITCHING_PROTOCOLS, NULL);
	conn_wait(req->conn, WAIT_REQUEST);
	conn_resume(req->conn);
}

enum MHD_Result response_queue(struct http_request *req)
{
	struct MHD_Response *response = TAKE_PTR(req->response);
	enum MHD_Result r = MHD_queue_response(req->conn->mhd, (unsigned)req->status, response);

	MHD_destroy_response(response); /* microhttpd holds a reference of its own */
	req->phase = REQUEST_SENDING;
	return r;
}
