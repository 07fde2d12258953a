/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "gateway/gateway.h"
#include "io/timer.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * The life of an outside server. It is started with the gateway. When it fails, its calls in
 * progress fail, as it is unknown what they did; others wait for the next start, which comes later
 * after each failure. After BREAKER failures without an answer in between the circuit is open:
 * calls are refused at once until a start succeeds.
 */

#define START_TIMEOUT_US (30 * USEC_PER_SEC)
#define PING_TIMEOUT_US  (10 * USEC_PER_SEC)
#define BACKOFF_US       (200 * USEC_PER_MS)
#define BACKOFF_MAX_US   (60 * USEC_PER_SEC)
#define BREAKER          5
#define PROTOCOL         "2025-06-18"

static const char *const state_names[] = {
	[GATEWAY_STARTING] = "starting",
	[GATEWAY_READY] = "ready",
	[GATEWAY_WAITING] = "waiting",
	[GATEWAY_BROKEN] = "broken",
};
static_assert(ARRAY_SIZE(state_names) == GATEWAY_STATE_COUNT, "every state has a name");

const char *server_state_name(enum gateway_state state)
{
	return state_names[state];
}

static void set_state(struct server *s, enum gateway_state state)
{
	struct gateway_event event = {.op = GATEWAY_STATE, .state = state, .starts = s->starts};

	s->state = state;
	(void)!str_copy(event.server, sizeof(event.server), s->spec->name);
	memcpy(event.detail, s->detail, sizeof(event.detail));
	control_send(s->gateway, &event, -1);
}

int server_send(struct server *s, uint32_t id, const char *text, size_t len)
{
	return s->stdio ? stdio_send(s->stdio, text, len) : remote_send(s->remote, id, text, len);
}

static void start_server(struct server *s)
{
	s->starts++;
	s->is_starting = true;
	/* An open circuit closes when the start has succeeded. */
	if (s->state != GATEWAY_BROKEN)
		set_state(s, GATEWAY_STARTING);
	timer_start(s->timer, START_TIMEOUT_US);
	if (s->stdio)
		stdio_start(s->stdio);
	else
		remote_start(s->remote);
}

static void stop_transport(struct server *s)
{
	s->is_open = false;
	if (s->stdio)
		stdio_stop(s->stdio);
	else
		remote_stop(s->remote);
}

static uint64_t backoff_of(const struct server *s)
{
	uint64_t wait = BACKOFF_US << (s->failures < 16 ? s->failures : 16);

	return wait < BACKOFF_MAX_US ? wait : BACKOFF_MAX_US;
}

void server_fail(struct server *s, const char *fmt, ...)
{
	char text[GATEWAY_DETAIL_LEN + 256];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(s->detail, sizeof(s->detail), fmt, args);
	va_end(args);
	stop_transport(s);
	s->is_starting = s->is_pinged = s->is_doubted = false;
	s->is_listing = s->is_list_due = false;
	s->failures++;
	log_warn("MCP server %s %s, restarting it in %.1f s", s->spec->name, s->detail,
	         (double)backoff_of(s) / (double)USEC_PER_SEC);
	set_state(s, s->failures >= BREAKER ? GATEWAY_BROKEN : GATEWAY_WAITING);
	timer_start(s->timer, backoff_of(s));
	(void)snprintf(text, sizeof(text),
	               "Cannot connect: MCP server '%s' %s while it worked on the call; it is "
	               "started again, the call is not repeated",
	               s->spec->name, s->detail);
	call_fail_active(s, text);
	if (s->state != GATEWAY_BROKEN)
		return;
	(void)snprintf(text, sizeof(text),
	               "Cannot connect: MCP server '%s' failed %u times and is not called until it "
	               "starts again: %s",
	               s->spec->name, s->failures, s->detail);
	call_fail_waiting(s, text);
}

static void on_server_timer(void *ctx)
{
	struct server *s = ctx;

	if (s->is_starting)
		server_fail(s, "did not start within %llu s",
		            (unsigned long long)(START_TIMEOUT_US / USEC_PER_SEC));
	else if (TAKE(s->is_list_due, false))
		tools_request(s);
	else
		start_server(s);
}

static void on_initialized(void *ctx, const struct call_result *result)
{
	struct server *s = ctx;

	if (!s->is_open)
		return;
	if (result->outcome != GATEWAY_OK) {
		server_fail(s, "refused to start: %s", result->text ? result->text : "an error");
		return;
	}
	call_notify(s, "notifications/initialized", "{}");
	tools_request(s);
}

void server_opened(struct server *s)
{
	s->is_open = true;
	call_request(s, "initialize",
	             "{\"protocolVersion\":\"" PROTOCOL "\",\"capabilities\":{},"
	             "\"clientInfo\":{\"name\":\"millibox-gateway\",\"version\":\"" MILLIBOX_VERSION
	             "\"}}",
	             START_TIMEOUT_US, on_initialized);
}

void server_ready(struct server *s)
{
	timer_stop(s->timer);
	s->is_starting = false;
	if (s->state != GATEWAY_READY) {
		log_info("MCP server %s is ready, %zu tools", s->spec->name, s->tools_count);
		set_state(s, GATEWAY_READY);
	}
	call_pump(s);
}

void server_well(struct server *s)
{
	s->failures = 0;
}

static void on_pong(void *ctx, const struct call_result *result)
{
	struct server *s = ctx;

	s->is_pinged = s->is_doubted = false;
	if (s->is_open && result->outcome == GATEWAY_TIMEOUT &&
	    clock_us() - s->heard_us >= PING_TIMEOUT_US)
		server_fail(s, "does not respond");
	else
		call_pump(s);
}

/* A long call is no reason to end a server that others use; silence is. */
void server_suspect(struct server *s)
{
	if (!s->is_open || s->is_pinged || s->state != GATEWAY_READY)
		return;
	s->is_pinged = true;
	call_request(s, "ping", "{}", PING_TIMEOUT_US, on_pong);
}

/* A single call may be to blame, as one that the server finds too long: the others wait for the
 * answer to a ping. */
void server_doubt(struct server *s, uint32_t id, const char *reason)
{
	char text[GATEWAY_DETAIL_LEN + 256];

	if (s->state != GATEWAY_READY || call_is_own(s, id)) {
		server_fail(s, "cannot be reached: %s", reason);
		return;
	}
	if (id && !call_is_active(s, id)) /* it has its answer */
		return;
	s->is_doubted = true;
	(void)snprintf(text, sizeof(text),
	               "Cannot connect: MCP server '%s' cannot be reached: %s; the call is not "
	               "repeated",
	               s->spec->name, reason);
	server_suspect(s);
	server_lost_call(s, id, GATEWAY_UNAVAILABLE, text);
}

struct server *server_new(struct gateway *g, struct server_spec *spec, size_t index)
{
	struct server *s = NEW(struct server);

	*s = (struct server){.gateway = g, .spec = spec, .index = index, .url = spec_url(spec)};
	list_init(&s->waiting);
	list_init(&s->active);
	s->timer = timer_new(g->loop, on_server_timer, s);
	if (spec->url[0])
		s->remote = remote_new(s);
	else
		s->stdio = stdio_new(s);
	if (spec->problem[0]) {
		/* The daemon sends all servers anew when it is solved. */
		(void)snprintf(s->detail, sizeof(s->detail), "%s", spec->problem);
		set_state(s, GATEWAY_BROKEN);
	} else {
		start_server(s);
	}
	return s;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	stop_transport(s);
	timer_stop(s->timer);
	s->state = GATEWAY_BROKEN;
	call_fail_active(s, "the gateway ends");
	call_fail_waiting(s, "the gateway ends");
	stdio_free(s->stdio);
	remote_free(s->remote);
	timer_free(s->timer);
	tools_free(s->tools, s->tools_count);
	tools_free(s->listed, s->listed_count);
	spec_free(s->spec);
	free(s->url);
	free(s);
}

struct server *server_find(struct gateway *g, const char *url)
{
	for (size_t i = 0; i < g->servers_count; i++) {
		struct server *s = g->servers[i];

		if (str_equal(s->url, url) || str_equal(s->spec->name, url))
			return s;
	}
	return NULL;
}
