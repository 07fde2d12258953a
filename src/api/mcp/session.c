/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/json/json.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/observe/metrics.h"
#include "io/timer.h"

/*
 * Theory of operation. Sessions are ordered by last use and end when idle for mcp.session_timeout.
 * At a limit, a new session evicts its tenant's least recently used idle one: clients that crash do
 * not say so. A client whose session has ended gets a 404 and initializes again.
 */

#define BEAT_US (15 * USEC_PER_SEC)
#define KEEP_US (300 * USEC_PER_SEC) /* of a stream that has ended */

static const char *const versions[] = {
	[MCP_2024_11_05] = "2024-11-05",
	[MCP_2025_03_26] = "2025-03-26",
	[MCP_2025_06_18] = "2025-06-18",
	[MCP_2025_11_25] = "2025-11-25",
};
static_assert(ARRAY_SIZE(versions) == MCP_VERSION_COUNT, "every version has its name");

const char *mcp_session_version_name(enum mcp_version version)
{
	return versions[version];
}

enum mcp_version mcp_session_version_find(const char *name)
{
	int i = 0;

	while (i < MCP_VERSION_COUNT && !str_equal(versions[i], name))
		i++;
	return (enum mcp_version)i;
}

void mcp_session_touch(struct mcp_session *s)
{
	s->used_us = clock_us();
	list_remove(&s->node);
	list_append(&s->mcp->sessions, &s->node);
	list_remove(&s->same);
	list_append(&s->of->sessions, &s->same);
}

static bool is_idle(const struct mcp_session *s)
{
	struct mcp_stream *t;

	LIST_FOREACH (t, &s->streams, struct mcp_stream, node)
		if (t->req)
			return false;
	return s->requests_count == 0 && !s->sink.send;
}

/* Least recently used. */
static struct mcp_session *find_idle_session(const struct mcp_tenant *t)
{
	struct mcp_session *s;

	if (t)
		LIST_FOREACH (s, &t->sessions, struct mcp_session, same)
			if (is_idle(s))
				return s;
	return NULL;
}

static int make_room(struct mcp *mcp, const char *tenant, struct error *err)
{
	const struct config *c = mcp->router->config;
	const struct mcp_tenant *t = map_get(mcp->by_tenant, tenant);
	struct mcp_session *idle;

	if (mcp->stopped)
		return error_stopping(err);
	if ((!t || t->count < c->mcp_tenant_sessions) && mcp->count < c->mcp_sessions)
		return 0;
	idle = find_idle_session(t);
	if (!idle)
		return error_set(err, ERR_BUSY, 0, "too many MCP sessions: end one");
	log_ctx(LOG_LEVEL_INFO, NULL, "an idle MCP session of tenant %s is ended to make room",
	        tenant);
	mcp_session_free(idle);
	return 0;
}

struct mcp_session *mcp_session_new(struct mcp *mcp, const char *tenant, struct error *err)
{
	struct mcp_session *s;
	int r;

	if (make_room(mcp, tenant, err) < 0)
		return NULL;
	s = NEW(struct mcp_session);
	s->mcp = mcp;
	(void)snprintf(s->id, sizeof(s->id), "mcp_");
	id_random(s->id + 4, MCP_ID_LEN - 4);
	list_init(&s->requests);
	list_init(&s->streams);
	list_init(&s->events);
	list_init(&s->subscriptions);
	list_init(&s->node);
	list_init(&s->same);
	mcp_tenant_enter(s, tenant);
	mcp_session_touch(s);
	r = map_put(mcp->by_id, s->id, s);
	assert(r == 0); /* 165 random bits */
	(void)r;
	mcp->count++;
	metrics_set(mcp->router->parts.metrics, METRIC_MCP_SESSIONS, (double)mcp->count);
	return s;
}

static void session_free(struct mcp_session *s, bool answer)
{
	struct mcp_subscription *sub;
	struct mcp_request *q;
	struct mcp_stream *t;

	LIST_FOREACH (q, &s->requests, struct mcp_request, node) {
		if (!answer)
			q->http = NULL;
		mcp_request_drop(q);
	}
	LIST_FOREACH (t, &s->streams, struct mcp_stream, node)
		mcp_stream_free(t, answer);
	LIST_FOREACH (sub, &s->subscriptions, struct mcp_subscription, node)
		mcp_subscription_free(sub);
	if (answer && s->sink.close)
		s->sink.close(s->sink.ctx);
	(void)map_remove(s->mcp->by_id, s->id);
	list_remove(&s->node);
	s->mcp->count--;
	metrics_set(s->mcp->router->parts.metrics, METRIC_MCP_SESSIONS, (double)s->mcp->count);
	mcp_tenant_leave(s);
	free(s);
}

void mcp_session_free(struct mcp_session *s)
{
	session_free(s, true);
}

struct mcp_session *mcp_session_find(const struct mcp *mcp, const char *tenant, const char *id)
{
	struct mcp_session *s = map_get(mcp->by_id, id);

	return s && str_equal(s->tenant, tenant) ? s : NULL;
}

void mcp_session_notify(struct mcp_session *s, const char *method, json_t *params)
{
	size_t len;
	cleanup_free char *text = rpc_notification(method, params, &len);

	if (!s->ready)
		return;
	if (s->sink.send)
		s->sink.send(s->sink.ctx, text, len);
	else if (s->standing)
		mcp_stream_send(s->standing, text, len);
}

static void tend_session(struct mcp_session *s, uint64_t now)
{
	struct mcp_stream *t;

	LIST_FOREACH (t, &s->streams, struct mcp_stream, node) {
		if (t->ended && now - t->ended_us > KEEP_US)
			mcp_stream_free(t, true);
		else if (t->req)
			mcp_stream_beat(t);
	}
	if (now - s->used_us <= s->mcp->router->config->mcp_session_us)
		return;
	if (is_idle(s))
		mcp_session_free(s);
	else
		mcp_session_touch(s);
}

static void on_beat(void *ctx)
{
	struct mcp *mcp = ctx;
	uint64_t now = clock_us();
	struct list all;
	struct mcp_session *s;

	mcp_check_keys(mcp);
	/* Touching moves a session to the end. */
	list_init(&all);
	LIST_FOREACH (s, &mcp->sessions, struct mcp_session, node) {
		list_remove(&s->node);
		list_append(&all, &s->node);
	}
	LIST_FOREACH (s, &all, struct mcp_session, node) {
		list_remove(&s->node);
		list_append(&mcp->sessions, &s->node);
		tend_session(s, now);
	}
	timer_start(mcp->timer, BEAT_US);
}

struct mcp *mcp_new(struct router *r)
{
	struct mcp *mcp = NEW(struct mcp);

	mcp->router = r;
	mcp->by_id = map_new();
	mcp->watched = map_new();
	list_init(&mcp->sessions);
	mcp->by_tenant = map_new();
	list_init(&mcp->tenants);
	/* Tests of the router have no loop. */
	if (r->parts.loop) {
		mcp->timer = timer_new(r->parts.loop, on_beat, mcp);
		timer_start(mcp->timer, BEAT_US);
		mcp->changes = timer_new(r->parts.loop, mcp_flush_changes, mcp);
		mcp_watch_begin(mcp);
	}
	return mcp;
}

void mcp_stop(struct mcp *mcp)
{
	struct mcp_session *s;

	mcp->stopped = true;
	LIST_FOREACH (s, &mcp->sessions, struct mcp_session, node)
		if (s->standing)
			mcp_stream_free(s->standing, true);
}

void mcp_free(struct mcp *mcp)
{
	struct mcp_session *s;

	if (!mcp)
		return;
	LIST_FOREACH (s, &mcp->sessions, struct mcp_session, node)
		session_free(s, false);
	if (mcp->changes)
		mcp_watch_end(mcp);
	timer_free(mcp->timer);
	timer_free(mcp->changes);
	map_free(mcp->by_id);
	map_free(mcp->by_tenant);
	map_free(mcp->watched);
	free(mcp);
}
