/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/bridge.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/str.h"
#include "cli/client/interrupt.h"
#include "cli/client/sse.h"
#include "http/parallel.h"
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/*
 * Theory of operation. Every line is a POST of its own, so that a cancellation overtakes what it
 * cancels. Only initialize is waited for before the next line is read: what follows needs the
 * session that it begins. Each has a connection, and the daemon has only so many for all: no more
 * than CALLS_MAX are under way, others wait in a queue. Notifications do not wait; one that cancels
 * what waits takes it out. A stream that breaks off before the answer was in it is taken up again
 * where it ended; the one of what the daemon says by itself is opened again when it ends.
 *
 * A daemon that does not know the session any more was started anew: then there is nothing to go on
 * with, and the client, which starts this program, has to do that again.
 */

#define MESSAGE_MAX  (256u << 20)
#define HEADER_LEN   160
#define RETRIES_MAX  20
#define CALLS_MAX    16
#define QUEUE_MAX    256
#define RETRY_MS     500
#define STDIN_BLOCK  65536
#define HTTP_MISSING 404
#define HTTP_REFUSED 400

enum kind {
	KIND_POST,
	KIND_RESUME, /* the rest of a POST's stream */
	KIND_LISTEN, /* what the daemon says by itself */
	KIND_DELETE,
};

struct bridge {
	const struct endpoint *endpoint;
	struct http_parallel *http;
	int interrupt_fd;
	struct buf input;
	char session[HEADER_LEN], version[HEADER_LEN]; /* headers; "": none yet */
	char *url;
	struct list calls;
	size_t waiting;    /* POSTs and their rests, and the queue */
	size_t under_way;  /* of them that get an answer and are sent */
	struct list queue; /* the oldest first */
	size_t queued;
	struct list retries;
	bool initializing, listening, ended, stopped;
	struct error failure;
};

/* One request on its way. */
struct call {
	struct list node;
	struct bridge *bridge;
	enum kind kind;
	json_t *id; /* of the question; NULL: none */
	bool is_initialize, is_stream, answered;
	bool counts; /* as under way: it is no notification */
	char *line;  /* owned: while it is in the queue */
	size_t line_len;
	unsigned tries;
	struct sse sse;
	struct buf body;
};

static void fail(struct bridge *b, const struct error *err)
{
	if (!error_is_set(&b->failure))
		b->failure = *err;
	b->stopped = true;
}

static void print(struct bridge *b, const char *text, size_t len)
{
	cleanup_free char *line = xmalloc(len + 1);
	struct error err = {0};
	int r;

	memcpy(line, text, len);
	line[len] = '\n';
	r = interrupt_write(b->interrupt_fd, STDOUT_FILENO, line, len + 1);
	if (r < 0) {
		(void)error_set(&err, ERR_UNAVAILABLE, -r, "write to standard output");
		fail(b, &err);
	}
}

static void call_free(struct call *c)
{
	list_remove(&c->node);
	json_decref(c->id);
	sse_done(&c->sse);
	buf_done(&c->body);
	free(c->line);
	free(c);
}

/* What initialize agreed on. */
static void note_answer(struct call *c, const json_t *message)
{
	struct bridge *b = c->bridge;
	const char *version = json_string_value(
		json_object_get(json_object_get(message, "result"), "protocolVersion"));

	if (c->id && json_equal(json_object_get(message, "id"), c->id))
		c->answered = true;
	if (c->is_initialize && version)
		(void)!str_format(b->version, sizeof(b->version), "Mcp-Protocol-Version: %s",
		                  version);
}

static void pass_on(void *ctx, const char *text, size_t len)
{
	struct call *c = ctx;
	json_t *message = json_loadb(text, len, JSON_ALLOW_NUL, NULL);

	note_answer(c, message);
	json_decref(message);
	print(c->bridge, text, len);
}

/* A body that is one message. Where it could not be told whose answer it is, it is here. */
static void pass_body(struct call *c)
{
	json_t *message =
		json_loadb(c->body.data ? c->body.data : "", c->body.len, JSON_ALLOW_NUL, NULL);
	char *text;

	if (!message)
		return;
	if (c->id && json_is_object(message) && !json_object_get(message, "jsonrpc")) {
		/* Refused before it was read: told in words of REST. */
		json_t *error = json_pack("{s:i, s:O?}", "code", -32603, "message",
		                          json_object_get(message, "error_detail"));
		json_t *made = json_pack("{s:s, s:n, s:o}", "jsonrpc", "2.0", "id", "error", error);

		json_decref(message);
		message = made;
	}
	if (c->id && json_is_null(json_object_get(message, "id")))
		(void)json_object_set(message, "id", c->id);
	note_answer(c, message);
	text = json_dumps(message, JSON_COMPACT);
	if (text)
		print(c->bridge, text, strlen(text));
	free(text);
	json_decref(message);
}

static void on_header(void *ctx, const char *line, size_t len)
{
	static const char session[] = "mcp-session-id:", type[] = "content-type:";
	struct call *c = ctx;
	struct bridge *b = c->bridge;

	if (len > sizeof(session) && strncasecmp(line, session, sizeof(session) - 1) == 0 &&
	    !b->session[0])
		(void)!str_format(b->session, sizeof(b->session), "Mcp-Session-Id:%.*s",
		                  (int)(len - sizeof(session) + 1), line + sizeof(session) - 1);
	if (len > sizeof(type) && strncasecmp(line, type, sizeof(type) - 1) == 0)
		c->is_stream = memmem(line, len, "text/event-stream", 17);
}

static void on_data(void *ctx, int status, const char *data, size_t len)
{
	struct call *c = ctx;
	struct error err = {0};

	(void)status;
	if ((c->is_stream ? sse_feed(&c->sse, data, len) : buf_add(&c->body, data, len)) == 0)
		return;
	(void)error_set(&err, ERR_TOO_LARGE, 0, "the daemon's answer is too long");
	fail(c->bridge, &err);
}

static void on_done(void *ctx, int status, const struct error *err);

static int send_call(struct call *c, const char *body, size_t len, struct error *err)
{
	static const char *const methods[] = {[KIND_POST] = "POST",
	                                      [KIND_RESUME] = "GET",
	                                      [KIND_LISTEN] = "GET",
	                                      [KIND_DELETE] = "DELETE"};
	struct bridge *b = c->bridge;
	char last[HEADER_LEN];
	const char *headers[5];
	size_t n = 0;
	struct http_parallel_request request = {
		.method = methods[c->kind],
		.socket_path = b->endpoint->socket,
		.url = b->url,
		.body = body,
		.body_len = len,
		.headers = headers,
		.bearer = b->endpoint->key,
		.ca_file = b->endpoint->ca_file,
		.ctx = c,
		.on_header = on_header,
		.on_data = on_data,
		.on_done = on_done,
	};

	headers[n++] = c->kind == KIND_POST ? "Accept: application/json, text/event-stream"
	                                    : "Accept: text/event-stream";
	if (b->session[0])
		headers[n++] = b->session;
	if (b->version[0])
		headers[n++] = b->version;
	if (c->kind == KIND_RESUME && c->sse.id[0]) {
		(void)snprintf(last, sizeof(last), "Last-Event-ID: %s", c->sse.id);
		headers[n++] = last;
	}
	headers[n] = NULL;
	return http_parallel_add(b->http, &request, err);
}

static struct call *call_new(struct bridge *b, enum kind kind)
{
	struct call *c = NEW(struct call);

	c->bridge = b;
	c->kind = kind;
	sse_init(&c->sse, MESSAGE_MAX, pass_on, c);
	buf_init(&c->body, MESSAGE_MAX);
	list_append(&b->calls, &c->node);
	return c;
}

static void send_queued(struct bridge *b)
{
	struct error err = {0};
	struct call *c = LIST_FIRST(&b->queue, struct call, node);

	if (!c || b->under_way >= CALLS_MAX || b->stopped)
		return;
	list_remove(&c->node);
	list_append(&b->calls, &c->node);
	b->queued--;
	b->under_way++;
	if (send_call(c, c->line, c->line_len, &err) < 0)
		fail(b, &err);
	free(TAKE_PTR(c->line));
}

static void listen_again(struct bridge *b)
{
	struct error err = {0};
	struct call *c;

	if (b->listening || !b->session[0] || b->ended || b->stopped)
		return;
	c = call_new(b, KIND_LISTEN);
	b->listening = true;
	if (send_call(c, NULL, 0, &err) < 0) {
		call_free(c);
		fail(b, &err);
	}
}

/* Later: whoever has just ended may end again at once. */
static void retry_later(struct call *c)
{
	c->kind = KIND_RESUME;
	c->is_stream = false;
	c->tries++;
	list_remove(&c->node);
	list_append(&c->bridge->retries, &c->node);
}

static void give_up(struct call *c, int status, const struct error *err)
{
	struct bridge *b = c->bridge;
	struct error why = {0};

	if (status == HTTP_MISSING && b->session[0] && !c->is_initialize)
		(void)error_set(&why, ERR_UNAVAILABLE, 0,
		                "the daemon does not know this session any more");
	else if (err)
		why = *err;
	if (error_is_set(&why))
		fail(b, &why);
}

static bool can_resume(const struct call *c, int status)
{
	return c->id && !c->answered && c->sse.id[0] && c->tries < RETRIES_MAX &&
	       status != HTTP_MISSING && !c->bridge->stopped;
}

static void on_done(void *ctx, int status, const struct error *err)
{
	struct call *c = ctx;
	struct bridge *b = c->bridge;

	if (c->kind == KIND_LISTEN) {
		b->listening = false;
		if (status == HTTP_MISSING)
			give_up(c, status, err);
		call_free(c);
		return;
	}
	if (c->kind == KIND_DELETE) {
		call_free(c);
		return;
	}
	if (!c->is_stream && !err)
		pass_body(c);
	/* A call that was cancelled ends without an answer, and properly. */
	if (c->is_stream && err && can_resume(c, status)) {
		retry_later(c);
		return;
	}
	if (err || status == HTTP_MISSING)
		give_up(c, status, err);
	if (c->is_initialize)
		b->initializing = false;
	b->waiting--;
	b->under_way -= c->counts;
	call_free(c);
	send_queued(b);
	listen_again(b);
}

static void retry(struct bridge *b)
{
	struct error err = {0};
	struct call *c;

	LIST_FOREACH (c, &b->retries, struct call, node) {
		list_remove(&c->node);
		list_append(&b->calls, &c->node);
		if (send_call(c, NULL, 0, &err) < 0)
			fail(b, &err);
	}
	listen_again(b);
}

/* Standard input. */

/* Return: whether what @params cancels has not been sent yet: then it never was. */
static bool cancel_queued(struct bridge *b, const json_t *params)
{
	json_t *id = json_object_get(params, "requestId");
	struct call *c;

	LIST_FOREACH (c, &b->queue, struct call, node) {
		if (!id || !c->id || !json_equal(c->id, id))
			continue;
		b->queued--;
		b->waiting--;
		call_free(c);
		return true;
	}
	return false;
}

/* @message: NULL: the line is no JSON, which the daemon says better. */
static void take_message(struct bridge *b, json_t *message, const char *line, size_t len)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	json_t *id = json_object_get(message, "id");
	struct call *c = call_new(b, KIND_POST);
	struct error err = {0};

	c->id = method && id ? json_incref(id) : NULL;
	c->is_initialize = method && id && str_equal(method, "initialize") && !b->session[0];
	c->counts = !method || id;
	b->initializing |= c->is_initialize;
	b->waiting++;
	if (c->counts && b->under_way >= CALLS_MAX) {
		c->line = xmemdup0(line, len);
		c->line_len = len;
		list_remove(&c->node);
		list_append(&b->queue, &c->node);
		b->queued++;
		return;
	}
	b->under_way += c->counts;
	if (send_call(c, line, len, &err) < 0)
		fail(b, &err);
}

static void take_line(struct bridge *b, const char *line, size_t len)
{
	json_t *message = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
	const char *method = json_string_value(json_object_get(message, "method"));

	if (!method || !str_equal(method, "notifications/cancelled") ||
	    !cancel_queued(b, json_object_get(message, "params")))
		take_message(b, message, line, len);
	json_decref(message);
}

static void take_lines(struct bridge *b)
{
	char *end;

	while (!b->initializing && !b->stopped && b->queued < QUEUE_MAX && b->input.len > 0 &&
	       (end = memchr(b->input.data, '\n', b->input.len))) {
		size_t len = (size_t)(end - b->input.data), text = len;

		if (text > 0 && b->input.data[text - 1] == '\r')
			text--;
		if (text > 0)
			take_line(b, b->input.data, text);
		buf_consume(&b->input, len + 1);
	}
}

static void read_input(struct bridge *b)
{
	char data[STDIN_BLOCK];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));
	struct error err = {0};

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		b->ended = true;
		/* A last line need not end. */
		if (b->input.len > 0)
			(void)!buf_add(&b->input, "\n", 1);
		return;
	}
	if (n > 0 && buf_add(&b->input, data, (size_t)n) < 0) {
		(void)error_set(&err, ERR_TOO_LARGE, 0, "a message is longer than %u bytes",
		                MESSAGE_MAX);
		fail(b, &err);
	}
}

static bool is_over(const struct bridge *b)
{
	return b->stopped || (b->ended && b->waiting == 0 && b->input.len == 0);
}

static int turn(struct bridge *b, struct error *err)
{
	/* What cannot be sent yet is not read yet. */
	bool reads = !b->ended && !b->initializing && b->queued < QUEUE_MAX;
	struct pollfd fds[2] = {
		{.fd = b->interrupt_fd, .events = POLLIN},
		{.fd = STDIN_FILENO, .events = POLLIN},
	};
	int wait_ms = list_is_empty(&b->retries) && b->listening ? 60000 : RETRY_MS;

	if (http_parallel_wait(b->http, fds, reads ? 2 : 1, wait_ms, err) < 0)
		return -1;
	if (fds[0].revents)
		b->stopped = true;
	if (reads && fds[1].revents)
		read_input(b);
	take_lines(b);
	if (!fds[1].revents)
		retry(b);
	return 0;
}

/* So that the daemon need not wait for the session to grow old; nobody waits for long. */
static void end_session(struct bridge *b)
{
	struct error ignored = {0};
	struct call *c;

	if (!b->session[0])
		return;
	c = call_new(b, KIND_DELETE);
	if (send_call(c, NULL, 0, &ignored) < 0)
		return;
	for (int i = 0; i < 20; i++) {
		bool there = false;
		struct call *other;

		LIST_FOREACH (other, &b->calls, struct call, node)
			there |= other == c;
		if (!there || http_parallel_wait(b->http, NULL, 0, 100, &ignored) < 0)
			return;
	}
}

int bridge_run(const struct endpoint *endpoint, int interrupt_fd, struct error *err)
{
	struct bridge b = {.endpoint = endpoint, .interrupt_fd = interrupt_fd};
	struct call *c;
	int r = 0;

	b.http = http_parallel_new(err);
	if (!b.http)
		return -1;
	buf_init(&b.input, MESSAGE_MAX);
	b.url = xasprintf("%s/mcp", endpoint->url);
	list_init(&b.calls);
	list_init(&b.retries);
	list_init(&b.queue);
	while (r == 0 && !is_over(&b))
		r = turn(&b, err);
	if (r == 0)
		end_session(&b);
	http_parallel_free(b.http);
	LIST_FOREACH (c, &b.calls, struct call, node)
		call_free(c);
	LIST_FOREACH (c, &b.retries, struct call, node)
		call_free(c);
	LIST_FOREACH (c, &b.queue, struct call, node)
		call_free(c);
	buf_done(&b.input);
	free(b.url);
	if (r == 0 && error_is_set(&b.failure)) {
		*err = b.failure;
		r = -1;
	}
	return r;
}
