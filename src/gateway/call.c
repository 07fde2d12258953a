/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "gateway/gateway.h"
#include "gateway/lines.h"
#include "io/timer.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * Calls of a server: those of boxes wait until it is ready and has a place free; those of the
 * protocol itself go at once. Messages are JSON-RPC; arguments and results are passed on as text.
 */

#define METHOD_CALL "tools/call"
#define TEXT_LEN    1024       /* of an error, for the caller */
#define ID_TEXT_MAX 200        /* of a request of the server */
#define ID_MAX      999999999u /* what scan_number takes */

struct call {
	struct server *server;
	struct list node;
	const char *method; /* literal; NULL: waits for the server only */
	char *params;       /* owned, JSON; NULL once sent */
	uint32_t id;        /* 0: not sent */
	uint32_t tenant;    /* of the box; 0: none */
	uint64_t timeout_us;
	struct timer *timer;
	bool is_own;            /* of the protocol */
	char refusal[TEXT_LEN]; /* not "": refused at once */
	call_fn *fn;
	void *ctx;
};

static void free_call(struct call *c)
{
	list_remove(&c->node);
	if (c->id && !c->is_own)
		c->server->active_count--;
	timer_free(c->timer);
	free(c->params);
	free(c);
}

static void end_call(struct call *c, const struct call_result *result)
{
	call_fn *fn = c->fn;
	void *ctx = c->ctx;

	free_call(c);
	fn(ctx, result);
}

/* Its place is free for another. */
static void finish_call(struct call *c, const struct call_result *result)
{
	struct server *s = c->server;

	end_call(c, result);
	call_pump(s);
}

static void finish_failed(struct call *c, enum gateway_outcome outcome, const char *text)
{
	const struct call_result result = {.outcome = outcome, .text = text};

	finish_call(c, &result);
}

static void notify_cancelled(struct server *s, uint32_t id)
{
	char params[80];

	(void)snprintf(params, sizeof(params), "{\"requestId\":%u,\"reason\":\"cancelled\"}", id);
	call_notify(s, "notifications/cancelled", params);
	if (s->remote)
		remote_cancel(s->remote, id);
}

static void on_call_timer(void *ctx)
{
	struct call *c = ctx;
	struct server *s = c->server;
	bool is_own = c->is_own, is_sent = c->id != 0;
	char text[TEXT_LEN];

	if (c->refusal[0]) {
		memcpy(text, c->refusal, sizeof(text));
		finish_failed(c, GATEWAY_UNAVAILABLE, text);
		return;
	}
	(void)snprintf(text, sizeof(text), "Timeout: MCP server '%s' did not answer within %.3gs",
	               s->spec->name, (double)c->timeout_us / (double)USEC_PER_SEC);
	if (!is_sent)
		(void)snprintf(text, sizeof(text),
		               "Timeout: MCP server '%s' was not ready within %.3gs (%s)%s%s",
		               s->spec->name, (double)c->timeout_us / (double)USEC_PER_SEC,
		               server_state_name(s->state), s->detail[0] ? ": " : "", s->detail);
	else if (!is_own)
		notify_cancelled(s, c->id);
	finish_failed(c, GATEWAY_TIMEOUT, text);
	if (is_sent && !is_own)
		server_suspect(s);
}

static struct call *new_call(struct server *s, const char *method, uint64_t timeout_us, call_fn *fn,
                             void *ctx)
{
	struct call *c = NEW(struct call);

	*c = (struct call){
		.server = s, .method = method, .timeout_us = timeout_us, .fn = fn, .ctx = ctx};
	list_init(&c->node);
	c->timer = timer_new(s->gateway->loop, on_call_timer, c);
	timer_start(c->timer, timeout_us);
	return c;
}

static int send_call(struct call *c)
{
	struct server *s = c->server;
	cleanup_buf struct buf text = BUF_INIT(2 * (size_t)GATEWAY_FRAME_MAX);
	uint32_t id = s->last_id = s->last_id % ID_MAX + 1;
	int r = buf_addf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":", id,
	                 c->method);

	if (r >= 0)
		r = buf_add_str(&text, c->params);
	if (r >= 0)
		r = buf_add(&text, "}", 1);
	if (r >= 0)
		r = server_send(s, id, text.data, text.len);
	if (r < 0)
		return r;
	free(TAKE_PTR(c->params));
	c->id = id;
	list_remove(&c->node);
	list_append(&s->active, &c->node);
	if (!c->is_own) {
		s->active_count++;
		s->last_tenant = c->tenant;
	}
	return 0;
}

static void refuse_later(struct call *c, const char *text)
{
	(void)snprintf(c->refusal, sizeof(c->refusal), "%s", text);
	timer_start(c->timer, 0);
}

static size_t active_of(const struct server *s, uint32_t tenant)
{
	const struct call *c;
	size_t count = 0;

	LIST_FOREACH (c, &s->active, struct call, node)
		count += c->tenant == tenant;
	return count;
}

/* Whether a call of @tenant, with @count in progress, goes before one of @other. Among equals they
 * take turns in the order of their numbers. */
static bool goes_before(const struct server *s, uint32_t tenant, size_t count, uint32_t other,
                        size_t other_count)
{
	if (count != other_count)
		return count < other_count;
	return tenant - s->last_tenant - 1 < other - s->last_tenant - 1; /* wraps around */
}

/* The oldest of the tenant with the fewest calls in progress: one that calls a lot does not keep
 * others from the server. Return: NULL: none waits. */
static struct call *find_next(struct server *s)
{
	struct call *c, *best = NULL;
	size_t fewest = 0;
	uint32_t tenant = 0; /* the latest that was looked at */

	/* NOLINTNEXTLINE: one that was freed has left the list */
	LIST_FOREACH (c, &s->waiting, struct call, node) {
		size_t count;

		if (!c->method || c->refusal[0] || (best && c->tenant == tenant))
			continue;
		tenant = c->tenant;
		count = active_of(s, tenant);
		if (!best || goes_before(s, tenant, count, best->tenant, fewest)) {
			best = c;
			fewest = count;
		}
	}
	return best;
}

static bool may_send(const struct server *s)
{
	return s->state == GATEWAY_READY && !s->is_doubted && s->active_count < s->spec->calls;
}

void call_pump(struct server *s)
{
	const struct call_result ready = {.outcome = GATEWAY_OK};
	struct call *c;

	LIST_FOREACH (c, &s->waiting, struct call, node)
		if (s->state == GATEWAY_READY && !c->method) /* waits for the server only */
			end_call(c, &ready);
	while (may_send(s) && (c = find_next(s)))
		if (send_call(c) < 0)
			refuse_later(c, "MCP server does not read its requests: try again later");
}

static void add_waiting(struct call *c)
{
	struct server *s = c->server;
	char text[TEXT_LEN];

	list_append(&s->waiting, &c->node);
	if (s->spec->problem[0]) {
		(void)snprintf(text, sizeof(text), "Cannot connect: MCP server '%s' %s",
		               s->spec->name, s->detail);
		refuse_later(c, text);
	} else if (s->state == GATEWAY_BROKEN) {
		(void)snprintf(text, sizeof(text),
		               "Cannot connect: MCP server '%s' failed %u times and is not called "
		               "until it starts again: %s",
		               s->spec->name, s->failures, s->detail);
		refuse_later(c, text);
	}
}

/* A line is a message, so none may have a line break; outside strings one is as good as a space.
 * Return: owned; NULL: memory is out. */
static char *copy_arguments(const char *tool, const struct scan_value *arguments)
{
	bool is_given = arguments->kind == SCAN_OBJECT;
	char *text = NULL;
	int len = asprintf(&text, "{\"name\":\"%s\",\"arguments\":%.*s}", tool,
	                   is_given ? (int)arguments->len : 2, is_given ? arguments->at : "{}");

	if (len < 0)
		return NULL;
	for (char *at = text; *at; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
	return text;
}

struct call *server_call(struct server *s, uint32_t tenant, const char *tool,
                         const struct scan_value *arguments, call_fn *fn, void *ctx)
{
	struct call *c = new_call(s, METHOD_CALL, s->spec->timeout_us, fn, ctx);

	c->tenant = tenant;
	c->params = copy_arguments(tool, arguments);
	add_waiting(c);
	if (!c->params)
		refuse_later(c, "The gateway is short of memory: try again later");
	else if (may_send(s) && send_call(c) < 0)
		refuse_later(c, "MCP server does not read its requests: try again later");
	return c;
}

struct call *server_wait(struct server *s, call_fn *fn, void *ctx)
{
	struct call *c = new_call(s, NULL, s->spec->timeout_us, fn, ctx);

	add_waiting(c);
	return c;
}

void call_request(struct server *s, const char *method, const char *params, uint64_t timeout_us,
                  call_fn *fn)
{
	struct call *c = new_call(s, method, timeout_us, fn, s);

	c->is_own = true;
	c->params = xstrdup(params);
	if (send_call(c) < 0) {
		list_append(&s->active, &c->node);
		refuse_later(c, "cannot be sent");
	}
}

void call_notify(struct server *s, const char *method, const char *params)
{
	char text[256];
	int r = str_format(text, sizeof(text),
	                   "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":%s}", method, params);

	if (r >= 0 && s->is_open)
		r = server_send(s, 0, text, strlen(text));
	if (r < 0)
		log_debug("%s to %s: %s, ignoring", method, s->spec->name, strerror(-r));
}

void call_cancel(struct call *c)
{
	struct server *s = c->server;
	uint32_t id = c->id;

	free_call(c);
	if (id)
		notify_cancelled(s, id);
	call_pump(s);
}

static void fail_list(struct list *calls, const char *text)
{
	/* A finished call starts others. */
	struct list ended;
	struct call *c;

	list_init(&ended);
	while ((c = LIST_FIRST(calls, struct call, node))) {
		list_remove(&c->node);
		list_append(&ended, &c->node);
	}
	while ((c = LIST_FIRST(&ended, struct call, node)))
		finish_failed(c, GATEWAY_UNAVAILABLE, text);
}

void call_fail_active(struct server *s, const char *text)
{
	fail_list(&s->active, text);
}

void call_fail_waiting(struct server *s, const char *text)
{
	fail_list(&s->waiting, text);
}

static struct call *find_active(const struct server *s, uint32_t id)
{
	struct call *c;

	LIST_FOREACH (c, &s->active, struct call, node)
		if (id != 0 && c->id == id)
			return c;
	return NULL;
}

bool call_is_active(const struct server *s, uint32_t id)
{
	return find_active(s, id) != NULL;
}

bool call_is_own(const struct server *s, uint32_t id)
{
	const struct call *c = find_active(s, id);

	return c && c->is_own;
}

void server_lost_message(struct server *s, uint32_t id)
{
	struct call *c = find_active(s, id);

	if (c)
		finish_failed(c, GATEWAY_TOO_LARGE,
		              "Message too large: the result has more than 10 MiB");
}

void server_lost_call(struct server *s, uint32_t id, enum gateway_outcome outcome, const char *text)
{
	struct call *c = find_active(s, id);

	if (c)
		finish_failed(c, outcome, text);
}

static void take_error(struct call *c, const struct scan_value *error)
{
	static const char *const names[] = {"message"};
	struct scan_value message = {.kind = SCAN_ABSENT};
	char text[TEXT_LEN] = "", reason[TEXT_LEN - 128] = "";

	if (scan_members(error, names, 1, &message) < 0 ||
	    scan_string(&message, reason, sizeof(reason)) < 0)
		(void)snprintf(reason, sizeof(reason), "no reason given");
	(void)snprintf(text, sizeof(text), "MCP server '%s' refused the call: %s",
	               c->server->spec->name, reason);
	finish_failed(c, GATEWAY_REFUSED, text);
}

static void take_result(struct call *c, const struct scan_value *value)
{
	static const char *const names[] = {"isError"};
	struct call_result result = {.outcome = GATEWAY_OK, .value = *value};
	struct scan_value is_error = {.kind = SCAN_ABSENT};

	if (value->kind == SCAN_OBJECT && scan_members(value, names, 1, &is_error) >= 0 &&
	    scan_is_true(&is_error))
		result.outcome = GATEWAY_TOOL_FAILED;
	if (!c->is_own)
		server_well(c->server);
	finish_call(c, &result);
}

/* The server asks something of its client, which offers nothing. */
static void answer_server(struct server *s, const struct scan_value *id,
                          const struct scan_value *method)
{
	char name[64], text[512];
	bool is_ping = scan_string(method, name, sizeof(name)) >= 0 && str_equal(name, "ping");

	if ((id->kind != SCAN_NUMBER && id->kind != SCAN_STRING) || id->len > ID_TEXT_MAX)
		return;
	(void)snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%.*s,%s}", (int)id->len,
	               id->at,
	               is_ping ? "\"result\":{}"
	                       : "\"error\":{\"code\":-32601,\"message\":\"not supported\"}");
	if (server_send(s, 0, text, strlen(text)) < 0)
		log_debug("answer to %s is lost, ignoring", s->spec->name);
}

static void take_notification(struct server *s, const struct scan_value *method)
{
	char name[64];

	if (scan_string(method, name, sizeof(name)) >= 0 &&
	    str_equal(name, "notifications/tools/list_changed") && s->state == GATEWAY_READY)
		tools_changed(s);
}

/* Nobody can read it: who waits for it learns that. */
static void take_too_deep(struct server *s, const char *text, size_t len)
{
	struct call *c = find_active(s, lines_id(text, len));
	char reason[TEXT_LEN];

	log_warn("%s sent a message of more than %d levels (%s), ignoring", s->spec->name,
	         SCAN_DEPTH_MAX, c ? c->method : "of no call");
	(void)snprintf(reason, sizeof(reason),
	               "Message too deep: the answer of MCP server '%s' has more than %d levels",
	               s->spec->name, SCAN_DEPTH_MAX);
	if (c)
		finish_failed(c, GATEWAY_TOO_LARGE, reason);
}

void server_received(struct server *s, const char *text, size_t len)
{
	enum {
		ID,
		METHOD,
		RESULT,
		ERROR,
		COUNT
	};
	static const char *const names[COUNT] = {"id", "method", "result", "error"};
	struct scan_value whole, part[COUNT];
	struct call *c;
	unsigned id;
	int r = scan_text(text, len, &whole);

	if (r == -E2BIG) {
		take_too_deep(s, text, len);
		return;
	}
	/* Some programs write other things to stdout. */
	if (r < 0 || scan_members(&whole, names, COUNT, part) < 0) {
		log_debug("%s sent something else than a message, ignoring", s->spec->name);
		return;
	}
	s->heard_us = clock_us();
	if (part[METHOD].kind != SCAN_ABSENT && part[ID].kind != SCAN_ABSENT) {
		answer_server(s, &part[ID], &part[METHOD]);
	} else if (part[METHOD].kind != SCAN_ABSENT) {
		take_notification(s, &part[METHOD]);
	} else {
		c = scan_number(&part[ID], &id) < 0 ? NULL : find_active(s, id);
		if (c && part[RESULT].kind != SCAN_ABSENT)
			take_result(c, &part[RESULT]);
		else if (c)
			take_error(c, &part[ERROR]);
	}
}
