/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/bridge.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cancel_io.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/client/daemon.h"
#include "cli/client/interrupt.h"
#include "cli/client/sse.h"
#include "client/transport.h"
#include "http/parallel.h"
#include "http/status.h"
#include "json/json_dump.h"
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/*
 * Theory of operation. Each line is its own POST, so that a cancellation can overtake its request.
 * Only initialize is completed before the next line is read: the others need its session. The
 * daemon limits connections, so at most CALLS_MAX requests are in flight; the rest are queued.
 * Notifications are never queued; one that cancels a queued request removes it. A stream that
 * breaks before its response is resumed with Last-Event-ID. The stream of the daemon's own messages
 * is reopened whenever it ends.
 *
 * A daemon that stops takes the session with it. The bridge then repeats the client's initialize
 * until a daemon answers. Requests that no daemon has seen wait for that, HOLD_MS at most; one that
 * was sent and not answered fails, because it may have taken effect. A daemon that the bridge's own
 * command started does not return: the bridge fails.
 */

#define MESSAGE_MAX (256 * MIB)
#define HEADER_LEN  160
#define RETRIES_MAX 20
#define CALLS_MAX   16
#define QUEUE_MAX   256
#define RETRY_MS    500
#define STDIN_BLOCK 65536
#define HOLD_MS     30000

enum kind {
	KIND_POST,
	KIND_RESUME, /* GET: rest of a POST's stream */
	KIND_LISTEN, /* GET: the daemon's own messages */
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
	size_t pending;    /* unanswered POSTs, sent or queued */
	size_t in_flight;  /* requests among these, sent */
	struct list queue; /* oldest first */
	size_t queued;
	struct list retries;
	bool initializing, listening, eof, stopped;
	char *hello; /* the client's initialize; NULL: not answered yet */
	size_t hello_len;
	bool reconnects; /* to a daemon that returns */
	bool lost;       /* there is no session; an initialize is sent again and again */
	bool asking;     /* such an initialize is in flight */
	uint64_t lost_us, asked_us;
	struct error failure;
};

struct call {
	struct list node;
	struct bridge *bridge;
	enum kind kind;
	json_t *id; /* JSON-RPC id; NULL: none */
	bool is_initialize, is_stream, answered;
	bool counts; /* in flight: not a notification */
	bool reads;  /* changes nothing: it may be sent again */
	bool own;    /* the bridge's, not the client's: its response is not printed */
	char *line;  /* owned; NULL: not the client's */
	size_t line_len;
	unsigned tries;
	struct sse sse;
	struct buf body;
};

static void stop_with_error(struct bridge *b, const struct error *err)
{
	if (!error_is_set(&b->failure))
		b->failure = *err;
	b->stopped = true;
}

static void print_line(struct bridge *b, const char *text, size_t len)
{
	cleanup_free char *line = xmalloc(len + 1);
	struct error err = {0};
	int r;

	memcpy(line, text, len);
	line[len] = '\n';
	r = cancel_write(b->interrupt_fd, STDOUT_FILENO, line, len + 1);
	if (r < 0) {
		(void)error_set(&err, ERR_UNAVAILABLE, -r, "write to standard output");
		stop_with_error(b, &err);
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

/* Also notes the protocol version of initialize. */
static void note_response(struct call *c, const json_t *message)
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

static void on_message(void *ctx, const char *text, size_t len)
{
	struct call *c = ctx;
	json_auto_t *message = json_loadb(text, len, JSON_ALLOW_NUL, NULL);

	note_response(c, message);
	if (!c->own)
		print_line(c->bridge, text, len);
}

/* A body of one message, with the request's id if the daemon had none. */
static void print_body(struct call *c)
{
	json_auto_t *message =
		json_loadb(c->body.data ? c->body.data : "", c->body.len, JSON_ALLOW_NUL, NULL);
	cleanup_free char *text = NULL;

	if (!message)
		return;
	if (c->id && json_is_object(message) && !json_object_get(message, "jsonrpc")) {
		/* Rejected before MCP: an error object of the REST API. */
		json_t *error = json_pack("{s:i, s:O?}", "code", -32603, "message",
		                          json_object_get(message, "error_detail"));
		json_t *made = json_pack("{s:s, s:n, s:o}", "jsonrpc", "2.0", "id", "error", error);

		json_decref(message);
		message = made;
	}
	if (c->id && json_is_null(json_object_get(message, "id")))
		(void)json_object_set(message, "id", c->id);
	note_response(c, message);
	text = c->own ? NULL : json_dump_text(message, JSON_COMPACT);
	if (text)
		print_line(c->bridge, text, strlen(text));
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
	(void)error_set(&err, ERR_TOO_LARGE, 0, "the daemon's response is too long");
	stop_with_error(c->bridge, &err);
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
	sse_init(&c->sse, MESSAGE_MAX, on_message, c);
	buf_init(&c->body, MESSAGE_MAX);
	list_append(&b->calls, &c->node);
	return c;
}

static void send_next_queued(struct bridge *b)
{
	struct error err = {0};
	struct call *c = LIST_FIRST(&b->queue, struct call, node);

	if (!c || b->in_flight >= CALLS_MAX || b->stopped || b->lost)
		return;
	list_remove(&c->node);
	list_append(&b->calls, &c->node);
	b->queued--;
	b->in_flight += c->counts;
	if (send_call(c, c->line, c->line_len, &err) < 0)
		stop_with_error(b, &err);
}

static void open_listen_stream(struct bridge *b)
{
	struct error err = {0};
	struct call *c;

	if (b->listening || !b->session[0] || b->eof || b->stopped)
		return;
	c = call_new(b, KIND_LISTEN);
	b->listening = true;
	if (send_call(c, NULL, 0, &err) < 0) {
		call_free(c);
		stop_with_error(b, &err);
	}
}

static void lose_session(struct bridge *b)
{
	if (!b->lost)
		b->lost_us = clock_us();
	b->lost = true;
	b->session[0] = b->version[0] = '\0';
}

/* A request that no daemon has seen waits for the next one. */
static void hold_call(struct call *c)
{
	struct bridge *b = c->bridge;

	sse_done(&c->sse);
	sse_init(&c->sse, MESSAGE_MAX, on_message, c);
	c->body.len = 0;
	c->is_stream = false;
	b->in_flight -= c->counts;
	list_remove(&c->node);
	list_append(&b->queue, &c->node);
	b->queued++;
}

static void answer_failure(struct call *c, const char *why)
{
	cleanup_free char *text = NULL;
	json_auto_t *message = json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", c->id,
	                                 "error", "code", -32603, "message", why);

	text = message ? json_dump_text(message, JSON_COMPACT) : NULL;
	if (text)
		print_line(c->bridge, text, strlen(text));
	c->answered = true;
}

/*
 * The daemon is gone, or does not know the session. Return: whether the call is dealt with; else it
 * is to be freed.
 */
static bool lose_call(struct call *c, int status, const struct error *err)
{
	bool unseen = status == HTTP_NOT_FOUND || (err && err->sys == ECONNREFUSED) ||
	              (c->reads && !c->is_stream && c->body.len == 0);

	lose_session(c->bridge);
	if (unseen && c->id && c->line && c->kind == KIND_POST) {
		hold_call(c);
		return true;
	}
	if (c->id && !c->answered && !c->own)
		answer_failure(c, "The daemon stopped before it answered. The call may have taken "
		                  "effect: check before you repeat it.");
	return false;
}

/* An initialize of the client's that fails ends the bridge: nothing works yet. */
static bool can_reconnect(const struct call *c, int status, const struct error *err)
{
	return c->bridge->reconnects && c->bridge->hello && !c->bridge->stopped &&
	       (err || status == HTTP_NOT_FOUND);
}

static void stop_on_failure(struct call *c, int status, const struct error *err)
{
	struct bridge *b = c->bridge;
	struct error why = {0};

	if (status == HTTP_NOT_FOUND && b->session[0] && !c->is_initialize)
		(void)error_set(&why, ERR_UNAVAILABLE, 0,
		                "the daemon no longer knows this session");
	else if (err && err->sys == ECONNREFUSED)
		(void)error_set(&why, ERR_UNAVAILABLE, 0, "cannot connect to %s; %s",
		                b->endpoint->socket ? b->endpoint->socket : b->endpoint->url,
		                endpoint_words(b->endpoint)->unreached);
	else if (err)
		why = *err;
	if (error_is_set(&why))
		stop_with_error(b, &why);
}

static bool can_resume(const struct call *c, int status)
{
	return c->id && !c->answered && c->sse.id[0] && c->tries < RETRIES_MAX &&
	       status != HTTP_NOT_FOUND && !c->bridge->stopped;
}

/* Of the client. */
static void end_initialize(struct call *c)
{
	struct bridge *b = c->bridge;

	b->initializing = false;
	if (!b->session[0] || b->hello)
		return;
	b->hello_len = c->line_len;
	b->hello = TAKE_PTR(c->line);
}

/* A message of the bridge's own. */
static void send_own(struct bridge *b, const char *text, size_t len, bool is_initialize)
{
	struct call *c = call_new(b, KIND_POST);
	struct error err = {0};

	c->own = true;
	c->is_initialize = is_initialize;
	if (send_call(c, text, len, &err) < 0) {
		call_free(c);
		stop_with_error(b, &err);
	}
}

static void end_own_call(struct call *c, int status, const struct error *err)
{
	static const char ready[] =
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
	static const char changed[] =
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}";
	struct bridge *b = c->bridge;

	if (!c->is_initialize)
		return;
	b->asking = false;
	if (!c->is_stream && !err)
		print_body(c); /* notes the version */
	if (err || status != HTTP_OK || !b->session[0]) {
		b->session[0] = '\0';
		return;
	}
	b->lost = false;
	send_own(b, ready, sizeof(ready) - 1, false);
	print_line(b, changed, sizeof(changed) - 1);
	for (size_t i = 0; i < CALLS_MAX; i++)
		send_next_queued(b);
	open_listen_stream(b);
}

static void fail_held(struct bridge *b)
{
	struct call *c;

	LIST_FOREACH (c, &b->queue, struct call, node) {
		if (c->id)
			answer_failure(c, "No daemon answers. Nothing was run; try again later.");
		b->queued--;
		b->pending--;
		call_free(c);
	}
}

/* Every RETRY_MS. */
static void reconnect(struct bridge *b)
{
	if (b->eof || clock_us() - b->lost_us > HOLD_MS * 1000ULL)
		fail_held(b);
	if (b->asking || b->stopped || clock_us() - b->asked_us < RETRY_MS * 1000ULL)
		return;
	b->asking = true;
	b->asked_us = clock_us();
	send_own(b, b->hello, b->hello_len, true);
}

static void end_listen(struct call *c, int status, const struct error *err)
{
	struct bridge *b = c->bridge;

	b->listening = false;
	if (can_reconnect(c, status, err) && (status == HTTP_NOT_FOUND || err->sys == ECONNREFUSED))
		lose_session(b);
	else if (status == HTTP_NOT_FOUND)
		stop_on_failure(c, status, err);
}

/* Return: whether the call goes on: it is resumed, or held for another daemon. */
static bool continue_post(struct call *c, int status, const struct error *err)
{
	struct bridge *b = c->bridge;

	/* A cancelled call's stream ends without response or error. */
	if (c->is_stream && err && can_resume(c, status)) {
		/* Later: the daemon may still be failing. */
		c->kind = KIND_RESUME;
		c->is_stream = false;
		c->tries++;
		list_remove(&c->node);
		list_append(&b->retries, &c->node);
		return true;
	}
	if (can_reconnect(c, status, err))
		return lose_call(c, status, err);
	if (err || status == HTTP_NOT_FOUND)
		stop_on_failure(c, status, err);
	return false;
}

static void end_post(struct call *c, int status, const struct error *err)
{
	struct bridge *b = c->bridge;

	if (!c->is_stream && !err && !can_reconnect(c, status, err))
		print_body(c);
	if (continue_post(c, status, err))
		return;
	if (c->is_initialize)
		end_initialize(c);
	b->pending--;
	b->in_flight -= c->counts;
	call_free(c);
	send_next_queued(b);
	open_listen_stream(b);
}

static void on_done(void *ctx, int status, const struct error *err)
{
	struct call *c = ctx;

	if (!c->own && (c->kind == KIND_POST || c->kind == KIND_RESUME)) {
		end_post(c, status, err);
		return;
	}
	if (c->kind == KIND_LISTEN)
		end_listen(c, status, err);
	else if (c->own)
		end_own_call(c, status, err);
	call_free(c);
}

static void send_retries(struct bridge *b)
{
	struct error err = {0};
	struct call *c;

	LIST_FOREACH (c, &b->retries, struct call, node) {
		list_remove(&c->node);
		list_append(&b->calls, &c->node);
		if (send_call(c, NULL, 0, &err) < 0)
			stop_with_error(b, &err);
	}
	open_listen_stream(b);
}

/* Return: whether it was queued. */
static bool cancel_queued(struct bridge *b, const json_t *params)
{
	json_t *id = json_object_get(params, "requestId");
	struct call *c;

	LIST_FOREACH (c, &b->queue, struct call, node) {
		if (!id || !c->id || !json_equal(c->id, id))
			continue;
		b->queued--;
		b->pending--;
		call_free(c);
		return true;
	}
	return false;
}

/* @method NULL: none. */
static bool only_reads(const char *method)
{
	static const char *const methods[] = {"ping",           "prompts/get",
	                                      "prompts/list",   "resources/list",
	                                      "resources/read", "resources/templates/list",
	                                      "tools/list"};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (method && str_equal(method, methods[i]))
			return true;
	return false;
}

static void handle_line(struct bridge *b, const char *line, size_t len)
{
	/* NULL: not JSON; the daemon reports that. */
	json_auto_t *message = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
	const char *method = json_string_value(json_object_get(message, "method"));
	json_t *id = json_object_get(message, "id");
	struct error err = {0};
	struct call *c;

	if (method && str_equal(method, "notifications/cancelled") &&
	    cancel_queued(b, json_object_get(message, "params")))
		return;
	c = call_new(b, KIND_POST);
	c->id = method && id ? json_incref(id) : NULL;
	c->is_initialize =
		method && id && str_equal(method, "initialize") && !b->session[0] && !b->lost;
	c->counts = !method || id;
	c->reads = only_reads(method);
	c->line = xmemdup0(line, len);
	c->line_len = len;
	b->initializing |= c->is_initialize;
	b->pending++;
	if ((c->counts && b->in_flight >= CALLS_MAX) || b->lost) {
		list_remove(&c->node);
		list_append(&b->queue, &c->node);
		b->queued++;
		return;
	}
	b->in_flight += c->counts;
	if (send_call(c, line, len, &err) < 0)
		stop_with_error(b, &err);
}

static void handle_lines(struct bridge *b)
{
	char *end;

	while (!b->initializing && !b->stopped && b->queued < QUEUE_MAX && b->input.len > 0 &&
	       (end = memchr(b->input.data, '\n', b->input.len))) {
		size_t len = (size_t)(end - b->input.data), text = len;

		if (text > 0 && b->input.data[text - 1] == '\r')
			text--;
		if (text > 0)
			handle_line(b, b->input.data, text);
		buf_consume(&b->input, len + 1);
	}
}

static void read_input(struct bridge *b)
{
	char data[STDIN_BLOCK];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));
	struct error err = {0};

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		b->eof = true;
		/* The last line may lack its newline. */
		if (b->input.len > 0)
			(void)!buf_add(&b->input, "\n", 1);
		return;
	}
	if (n > 0 && buf_add(&b->input, data, (size_t)n) < 0) {
		(void)error_set(&err, ERR_TOO_LARGE, 0, "a message is longer than %llu bytes",
		                (unsigned long long)MESSAGE_MAX);
		stop_with_error(b, &err);
	}
}

static int run_once(struct bridge *b, struct error *err)
{
	/* Read only what can be sent or queued. */
	bool reads = !b->eof && !b->initializing && b->queued < QUEUE_MAX;
	struct pollfd fds[2] = {
		{.fd = b->interrupt_fd, .events = POLLIN},
		{.fd = STDIN_FILENO, .events = POLLIN},
	};
	int wait_ms = list_is_empty(&b->retries) && b->listening && !b->lost ? 60000 : RETRY_MS;

	if (http_parallel_wait(b->http, fds, reads ? 2 : 1, wait_ms, err) < 0)
		return -1;
	if (fds[0].revents)
		b->stopped = true;
	if (reads && fds[1].revents)
		read_input(b);
	handle_lines(b);
	if (!fds[1].revents)
		send_retries(b);
	if (b->lost)
		reconnect(b);
	return 0;
}

/* Spares the daemon the session's time-out. Waits 2 s. */
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

int bridge_run(struct millibox_client *client, bool reconnects, int interrupt_fd, struct error *err)
{
	const struct endpoint *endpoint = transport_endpoint(client);
	struct bridge b = {
		.endpoint = endpoint, .interrupt_fd = interrupt_fd, .reconnects = reconnects};
	struct call *c;
	int r = 0;

	if (!endpoint)
		return daemon_fail(client, err);
	b.http = http_parallel_new(err);
	if (!b.http)
		return -1;
	buf_init(&b.input, MESSAGE_MAX);
	b.url = xasprintf("%s/mcp", endpoint->url);
	list_init(&b.calls);
	list_init(&b.retries);
	list_init(&b.queue);
	while (r == 0 && !b.stopped && !(b.eof && b.pending == 0 && b.input.len == 0))
		r = run_once(&b, err);
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
	free(b.hello);
	free(b.url);
	if (r == 0 && error_is_set(&b.failure)) {
		*err = b.failure;
		r = -1;
	}
	return r;
}
