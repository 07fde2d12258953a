/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "gateway/allow.h"
#include "gateway/answer.h"
#include "gateway/gateway.h"
#include "io/loop.h"
#include "io/timer.h"
#include "io/watch.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/*
 * One connection of a box is one call: a frame with the request, a frame with the answer. Who calls
 * is known from the socket; nothing in the request can change it.
 *
 *   READ ──▶ CALL ──▶ WRITE ──▶ closed          every state ends when the box or its program ends
 *     └────────────────▶ WRITE ──▶ DRAIN          a refusal before the end of the request
 */

/* A program that sends its request slowly, or does not read its answer, keeps a place that it could
 * use itself. */
#define READ_TIMEOUT_US  (30 * USEC_PER_SEC)
#define WRITE_TIMEOUT_US (30 * USEC_PER_SEC)
#define READ_SIZE        (64 * 1024)
#define ERROR_LEN        4096
/* What a box asks the gateway itself. */
#define OWN_URL   "millibox:tools"
#define TEXT_BUSY "Too many bytes in calls of this box, its tenant or all: try again later"
enum client_state {
	CLIENT_READ,
	CLIENT_CALL,
	CLIENT_WRITE,
	CLIENT_DRAIN, /* the rest of a request is dropped, so that the answer can be read */
};

struct client {
	struct box *box;
	struct list node;
	enum client_state state;
	bool is_early; /* answered before the end of the request */
	int fd;
	struct watch *watch;
	struct timer *timer;
	struct buf input, output;
	size_t sent;
	size_t counted; /* bytes that the limits know of */
	size_t asked;   /* length of a request that is no longer in @input */
	uint64_t start_us;
	struct call *call;
	struct server *server; /* of the request; NULL: none, or the gateway itself */
	char tool[GATEWAY_TOOL_LEN];
	size_t listed;                 /* OWN_URL: servers that need not be waited for */
	char only[GATEWAY_SERVER_LEN]; /* OWN_URL: of one server; "": of all */
};

static void shed(void *gateway);

static void count_bytes(struct client *c, size_t bytes)
{
	struct gateway *g = c->box->gateway;

	c->box->bytes = c->box->bytes - c->counted + bytes;
	budget_set(&g->memory, &c->box->tenant->memory, &c->counted, bytes);
	/* Not now: the calls may be in use by whoever called this. */
	if (budget_is_full(&g->memory) && !TAKE(g->is_shedding, true))
		loop_defer(g->loop, shed, g);
}

bool client_has_memory(const struct box *box)
{
	return !budget_must_wait(&box->gateway->memory, &box->tenant->memory);
}

static bool is_within_limits(const struct client *c, size_t more)
{
	const struct box *box = c->box;
	const struct gateway *g = box->gateway;

	return box->bytes + more <= box->limits.bytes &&
	       box->tenant->memory.used + more <= box->tenant->limits.bytes &&
	       g->memory.used + more <= g->memory.bytes;
}

void client_free(struct client *c)
{
	struct box *box = c->box;

	if (c->call)
		call_cancel(c->call);
	count_bytes(c, 0);
	list_remove(&c->node);
	box->calls--;
	box->tenant->calls--;
	box->gateway->clients--;
	watch_free(c->watch);
	timer_free(c->timer);
	(void)fd_close(c->fd);
	buf_done(&c->input);
	buf_done(&c->output);
	free(c);
}

void client_free_all(struct box *box)
{
	struct client *c;

	LIST_FOREACH (c, &box->clients, struct client, node)
		client_free(c);
}

static void end_client(struct client *c)
{
	struct gateway *g = c->box->gateway;

	client_free(c);
	box_resume_all(g);
}

static void report_call(const struct client *c, enum gateway_outcome outcome, const char *rule)
{
	struct gateway_event event = {
		.op = GATEWAY_CALLED,
		.box = c->box->id,
		.outcome = outcome,
		.duration_us = clock_us() - c->start_us,
		.sent = c->asked + c->input.len,
		.received = c->output.len,
	};

	(void)!str_copy(event.server, sizeof(event.server), c->server ? c->server->spec->name : "");
	(void)!str_copy(event.tool, sizeof(event.tool), c->tool);
	(void)snprintf(event.detail, sizeof(event.detail), "%s", rule);
	control_send(c->box->gateway, &event, -1);
}

static void write_answer(struct client *c)
{
	while (c->sent < c->output.len) {
		ssize_t n = send(c->fd, c->output.data + c->sent, c->output.len - c->sent,
		                 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			watch_set(c->watch, WATCH_WRITE);
			return;
		}
		if (n < 0)
			break;
		c->sent += (size_t)n;
	}
	if (c->is_early && c->sent == c->output.len && shutdown(c->fd, SHUT_WR) == 0) {
		c->state = CLIENT_DRAIN;
		watch_set(c->watch, WATCH_READ);
		return;
	}
	end_client(c);
}

static void drop_input(struct client *c)
{
	c->asked += c->input.len;
	buf_done(&c->input);
	buf_init(&c->input, GATEWAY_FRAME_MAX);
}

/* The answer is in c->output. Frees @c, or later. */
static void send_answer(struct client *c, enum gateway_outcome outcome, const char *rule)
{
	report_call(c, outcome, rule);
	drop_input(c);
	c->state = CLIENT_WRITE;
	count_bytes(c, c->output.len);
	timer_start(c->timer, WRITE_TIMEOUT_US);
	write_answer(c);
}

static void send_error(struct client *c, enum gateway_outcome outcome, const char *text)
{
	buf_done(&c->output);
	buf_init(&c->output, ERROR_LEN * 4);
	answer_error(&c->output, text);
	send_answer(c, outcome, "");
}

static struct client *most_costly_of(const struct box *box, struct client *most)
{
	struct client *c;

	/* NOLINTNEXTLINE: one that was freed has left the list */
	LIST_FOREACH (c, &box->clients, struct client, node)
		if (!most || c->counted > most->counted)
			most = c;
	return most;
}

static struct client *most_costly(const struct gateway *g, const struct tenant *t)
{
	struct client *most = NULL;
	struct box *box;

	LIST_FOREACH (box, &g->boxes, struct box, node)
		if (box->tenant == t)
			most = most_costly_of(box, most);
	return most;
}

/* The tenant that holds most loses its largest calls. */
static void shed(void *gateway)
{
	struct gateway *g = gateway;

	g->is_shedding = false;
	while (budget_is_full(&g->memory)) {
		struct tenant *t = CONTAINER_OF(budget_largest(&g->memory), struct tenant, memory);
		struct client *c = most_costly(g, t);

		assert(c); /* the tenant holds most */
		if (c->call)
			call_cancel(TAKE_PTR(c->call));
		if (c->state >= CLIENT_WRITE) {
			end_client(c);
			continue;
		}
		c->is_early = c->state == CLIENT_READ;
		send_error(c, GATEWAY_BUSY, TEXT_BUSY);
	}
}

static int add_result(struct client *c, const struct scan_value *value)
{
	struct buf *b = &c->output;

	if (answer_begin(b) < 0 || buf_add_str(b, "{\"result\": ") < 0 ||
	    buf_add(b, value->at, value->len) < 0 || buf_add(b, "}", 1) < 0)
		return -ENOBUFS;
	answer_end(b);
	return 0;
}

static void on_result(void *ctx, const struct call_result *result)
{
	struct client *c = ctx;

	c->call = NULL;
	if (result->outcome != GATEWAY_OK && result->outcome != GATEWAY_TOOL_FAILED) {
		send_error(c, result->outcome, result->text);
		return;
	}
	if (!is_within_limits(c, result->value.len))
		send_error(c, GATEWAY_BUSY, TEXT_BUSY);
	else if (add_result(c, &result->value) < 0)
		send_error(c, GATEWAY_TOO_LARGE,
		           "Message too large: the result has more than 10 MiB");
	else
		send_answer(c, result->outcome, "");
}

static int add_urls(const struct client *c, struct buf *b)
{
	const struct gateway *g = c->box->gateway;
	bool is_first = true;
	int r = 0;

	for (size_t i = 0; i < g->servers_count && r >= 0; i++) {
		const struct server *s = g->servers[i];

		if (!allow_server(c->box->allowed, s->spec->name))
			continue;
		r = is_first ? 0 : buf_add_str(b, ", ");
		if (r >= 0)
			r = answer_string(b, s->url);
		is_first = false;
	}
	return r;
}

static void refuse_url(struct client *c, const char *url)
{
	cleanup_free char *text = xasprintf("URL not in allowlist: %s", url);
	struct buf *b = &c->output;

	if (answer_begin(b) < 0 || buf_add_str(b, "{\"error\": ") < 0 ||
	    answer_string(b, text) < 0 || buf_add_str(b, ", \"allowed_urls\": [") < 0 ||
	    add_urls(c, b) < 0 || buf_add_str(b, "]}") < 0) {
		send_error(c, GATEWAY_DENIED, "URL not in allowlist");
		return;
	}
	answer_end(b);
	send_answer(c, GATEWAY_DENIED, "mcp.servers");
}

static void refuse_tool(struct client *c, const char *rule)
{
	struct buf *b = &c->output;

	if (answer_begin(b) < 0 ||
	    buf_addf(b, "{\"error\": \"Tool not in allowlist: %s/%s (rule %s)\", \"rule\": \"%s\"}",
	             c->server->spec->name, c->tool, rule, rule) < 0) {
		send_error(c, GATEWAY_DENIED, "Tool not in allowlist");
		return;
	}
	answer_end(b);
	send_answer(c, GATEWAY_DENIED, rule);
}

static void step_list(struct client *c);

static void on_waited(void *ctx, const struct call_result *result)
{
	struct client *c = ctx;

	(void)result; /* the list says how each server is */
	c->call = NULL;
	c->listed++;
	step_list(c);
}

static bool is_listed(const struct client *c, const struct server *s)
{
	return allow_server(c->box->allowed, s->spec->name) &&
	       (!c->only[0] || str_equal(c->only, s->spec->name));
}

static int add_server(const struct client *c, const struct server *s, struct buf *b)
{
	int r = buf_addf(b, "{\"name\": \"%s\", \"state\": \"%s\", \"url\": ", s->spec->name,
	                 server_state_name(s->state));

	if (r >= 0)
		r = answer_string(b, s->url);
	if (r >= 0)
		r = buf_add_str(b, ", \"tools\": [");
	if (r >= 0)
		r = tools_add(s, c->box->allowed, b);
	return r < 0 ? r : buf_add_str(b, "]}");
}

static int add_servers(struct client *c)
{
	const struct gateway *g = c->box->gateway;
	struct buf *b = &c->output;
	bool is_first = true;
	int r = answer_begin(b);

	if (r >= 0)
		r = buf_add_str(b, "{\"result\": {\"servers\": [");
	for (size_t i = 0; i < g->servers_count && r >= 0; i++) {
		if (!is_listed(c, g->servers[i]))
			continue;
		r = is_first ? 0 : buf_add_str(b, ", ");
		if (r >= 0)
			r = add_server(c, g->servers[i], b);
		is_first = false;
	}
	return r < 0 ? r : buf_add_str(b, "]}}");
}

/* Servers that are about to be ready are waited for, one after the other. */
static void step_list(struct client *c)
{
	struct gateway *g = c->box->gateway;

	for (; c->listed < g->servers_count; c->listed++) {
		struct server *s = g->servers[c->listed];

		if (is_listed(c, s) && s->state != GATEWAY_READY && s->state != GATEWAY_BROKEN) {
			c->call = server_wait(s, on_waited, c);
			return;
		}
	}
	if (add_servers(c) < 0) {
		send_error(c, GATEWAY_TOO_LARGE, "Message too large: name one server");
		return;
	}
	answer_end(&c->output);
	send_answer(c, GATEWAY_OK, "");
}

static void start_list(struct client *c, const struct request *request)
{
	static const char *const names[] = {"server"};
	struct scan_value server = {.kind = SCAN_ABSENT};

	if (!str_equal(request->tool, "list")) {
		send_error(c, GATEWAY_INVALID, "Missing 'tool' in request: " OWN_URL " has 'list'");
		return;
	}
	if (request->arguments.kind == SCAN_OBJECT &&
	    scan_members(&request->arguments, names, 1, &server) >= 0 &&
	    server.kind != SCAN_ABSENT && scan_string(&server, c->only, sizeof(c->only)) < 0) {
		send_error(c, GATEWAY_INVALID,
		           "Invalid 'arguments' in request: 'server' is a name");
		return;
	}
	step_list(c);
}

/* What was meant, for the list of denials. */
static void note_server(struct client *c, const char *url)
{
	static const char scheme[] = "mcp://";
	const char *name = str_has_prefix(url, scheme) ? url + sizeof(scheme) - 1 : url;

	if (tools_is_name(name))
		(void)!str_copy(c->tool, sizeof(c->tool), name);
}

static void start_call(struct client *c, const struct request *request)
{
	struct gateway *g = c->box->gateway;
	const char *rule;

	if (str_equal(request->url, OWN_URL)) {
		start_list(c, request);
		return;
	}
	c->server = server_find(g, request->url);
	if (!c->server || !allow_server(c->box->allowed, c->server->spec->name)) {
		/* What is configured and not allowed looks like what is not there. */
		c->server = NULL;
		note_server(c, request->url);
		refuse_url(c, request->url);
		return;
	}
	/* Names that no server can have are not repeated in messages. */
	if (!tools_is_name(request->tool) ||
	    str_copy(c->tool, sizeof(c->tool), request->tool) < 0) {
		send_error(c, GATEWAY_INVALID, "Invalid 'tool' in request: not the name of a tool");
		return;
	}
	rule = allow_tool(c->box->allowed, c->server->spec->name, c->tool);
	if (rule) {
		refuse_tool(c, rule);
		return;
	}
	c->call = server_call(c->server, c->box->tenant->id, c->tool, &request->arguments,
	                      on_result, c);
	drop_input(c); /* the call has a copy */
}

/* All of the request is there. */
static void take_request(struct client *c, size_t len)
{
	struct request *request = NEW(struct request);
	const char *wrong = request_read(c->input.data + FRAME_HEAD, len, request);

	c->state = CLIENT_CALL;
	timer_stop(c->timer);
	if (wrong)
		send_error(c, GATEWAY_INVALID, wrong);
	else
		start_call(c, request);
	free(request);
}

/* Return: the length of the request, or 0: not known yet, or refused and @c is gone. */
static size_t announced_length(struct client *c, bool *ret_refused)
{
	unsigned char head[FRAME_HEAD];
	size_t len;

	*ret_refused = false;
	if (c->input.len < FRAME_HEAD)
		return 0;
	memcpy(head, c->input.data, sizeof(head));
	len = frame_length(head);
	if (len > 0 && len <= GATEWAY_FRAME_MAX && is_within_limits(c, len) &&
	    client_has_memory(c->box))
		return len;
	*ret_refused = c->is_early = true;
	if (len > GATEWAY_FRAME_MAX)
		send_error(c, GATEWAY_TOO_LARGE, "Message too large: at most 10485760 bytes");
	else if (len == 0)
		send_error(c, GATEWAY_INVALID, "Invalid JSON: the message is empty");
	else
		send_error(c, GATEWAY_BUSY, TEXT_BUSY);
	return 0;
}

static void take_input(struct client *c)
{
	bool is_refused = false;
	size_t len = c->counted ? c->counted : announced_length(c, &is_refused);

	if (is_refused || len == 0)
		return;
	/* Counted once, before its bytes come: so a request that was begun can be completed. */
	if (!c->counted)
		count_bytes(c, len);
	if (c->input.len >= FRAME_HEAD + len)
		take_request(c, len);
}

static void take_end(struct client *c)
{
	struct pollfd fd = {.fd = c->fd};

	if (c->state == CLIENT_DRAIN) {
		end_client(c);
		return;
	}
	if (c->state == CLIENT_READ) {
		send_error(c, GATEWAY_INVALID, "Incomplete message: the connection was closed");
		return;
	}
	/* A program may close its half and wait for the answer. */
	if (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLHUP | POLLERR))) {
		report_call(c, GATEWAY_CANCELLED, "");
		end_client(c);
		return;
	}
	watch_set(c->watch, 0);
}

static void read_input(struct client *c)
{
	char data[READ_SIZE];
	ssize_t n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		take_end(c);
		return;
	}
	/* There is one request per connection: what follows it is dropped. */
	if (c->state != CLIENT_READ)
		return;
	(void)buf_add_some(&c->input, data, (size_t)n);
	take_input(c);
}

static void on_event(void *ctx, int events)
{
	struct client *c = ctx;

	(void)events;
	if (c->state == CLIENT_WRITE)
		write_answer(c);
	else
		read_input(c);
}

static void on_client_timer(void *ctx)
{
	struct client *c = ctx;

	if (c->state == CLIENT_READ)
		send_error(c, GATEWAY_TIMEOUT, "Timeout: the request was not complete within 30s");
	else
		end_client(c);
}

void client_start(struct box *box, int fd)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c) {
		(void)fd_close(fd);
		return;
	}
	*c = (struct client){.box = box, .fd = fd, .start_us = clock_us()};
	buf_init(&c->input, FRAME_HEAD + (size_t)GATEWAY_FRAME_MAX);
	buf_init(&c->output, FRAME_HEAD + (size_t)GATEWAY_FRAME_MAX);
	list_append(&box->clients, &c->node);
	box->calls++;
	box->tenant->calls++;
	box->gateway->clients++;
	c->watch = watch_new(box->gateway->loop, fd, on_event, c);
	c->timer = timer_new(box->gateway->loop, on_client_timer, c);
	timer_start(c->timer, READ_TIMEOUT_US);
	watch_set(c->watch, WATCH_READ);
}
