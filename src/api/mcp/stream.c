/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/config/config.h"
#include "http/sse.h"
#include "http/status.h"
#include <inttypes.h>
#include <string.h>

/*
 * Theory of operation. Every message is an event with the id STREAM-NUMBER, as "3-17". Events are
 * kept for a while: a client that reconnects sends the last id it has seen and gets the rest, even
 * if the stream has ended. Kept events are limited in bytes; the oldest go first, those of tenants
 * above their share before others', so no tenant loses events because of another. Who asks for
 * dropped events gets an error, never a gap.
 *
 * A stream begins with an empty event, so that a client can resume before the first message (since
 * 2025-11-25; older clients do not expect it).
 */

/* 1/16 of all bytes for one session */
#define SESSION_SHARE 16
#define FRAME_MAX     96 /* of an event, without its data */
#define ID_LEN        48
#define RETRY_MS      1000

static void drop_event(struct mcp_event *e)
{
	struct mcp_stream *t = e->stream;

	t->lost = e->number;
	t->session->bytes -= e->cost;
	t->session->of->bytes -= e->cost;
	t->session->mcp->bytes -= e->cost;
	list_remove(&e->node);
	list_remove(&e->own);
	list_remove(&e->same);
	free(e);
}

/* And a stream that has ended, with its last event. */
static void evict_event(struct mcp_event *e)
{
	struct mcp_stream *t = e->stream; // NOLINT: one that was freed has left all lists

	drop_event(e);
	if (t->ended && list_is_empty(&t->events))
		mcp_stream_free(t, true);
}

struct mcp_stream *mcp_stream_new(struct mcp_session *s)
{
	struct mcp_stream *t = NEW(struct mcp_stream);

	t->session = s;
	t->number = ++s->last_stream;
	t->next = 1;
	list_init(&t->events);
	list_append(&s->streams, &t->node);
	return t;
}

void mcp_stream_release(struct mcp_stream *t)
{
	struct http_request *req = TAKE_PTR(t->req);

	if (!req)
		return;
	http_set_gone(req, NULL, NULL);
	http_stream_end(req);
}

void mcp_stream_free(struct mcp_stream *t, bool answer)
{
	struct mcp_event *e;

	if (answer)
		mcp_stream_release(t);
	LIST_FOREACH (e, &t->events, struct mcp_event, node)
		drop_event(e);
	if (t->session->standing == t)
		t->session->standing = NULL;
	list_remove(&t->node);
	free(t);
}

static void on_gone(void *ctx)
{
	struct mcp_stream *t = ctx;

	t->req = NULL;
	mcp_session_touch(t->session);
}

static void write_text(struct mcp_stream *t, const char *text, size_t len)
{
	/* The server disconnects a client that does not read; it may resume. */
	if (t->req)
		(void)!http_stream_write(t->req, text, len);
}

/* @data NULL: only the id and the retry time. */
static void add_frame(struct buf *b, const struct mcp_stream *t, uint64_t number, const char *data,
                      size_t len)
{
	char id[ID_LEN];
	int r;

	(void)snprintf(id, sizeof(id), "%" PRIu64 "-%" PRIu64, t->number, number);
	r = sse_open(b, data ? &(struct sse){.id = id, .name = "message"}
	                     : &(struct sse){.id = id, .retry_ms = RETRY_MS});
	if (r == 0 && data)
		r = buf_add(b, data, len);
	r = r == 0 ? sse_close(b) : r;
	assert(r == 0); /* sized for it */
	(void)r;
}

void mcp_stream_attach(struct mcp_stream *t, struct http_request *req, uint64_t after)
{
	cleanup_buf struct buf first = BUF_INIT(FRAME_MAX);
	struct mcp_event *e;

	mcp_stream_release(t);
	t->req = req;
	http_set_gone(req, on_gone, t);
	http_add_header(req, "Mcp-Session-Id", t->session->id);
	http_stream_begin(req, HTTP_OK, SSE_TYPE);
	if (after == 0 && t->session->version >= MCP_2025_11_25) {
		add_frame(&first, t, 0, NULL, 0);
		write_text(t, first.data, first.len);
	}
	LIST_FOREACH (e, &t->events, struct mcp_event, node)
		if (e->number > after)
			write_text(t, e->text, e->len);
	if (t->ended)
		mcp_stream_release(t);
}

void mcp_stream_send(struct mcp_stream *t, const char *text, size_t len)
{
	cleanup_buf struct buf frame = BUF_INIT(len + FRAME_MAX);
	struct mcp_session *s = t->session;
	size_t most = s->mcp->router->config->mcp_buffers_bytes;
	struct mcp_event *e;

	add_frame(&frame, t, t->next, text, len);
	e = xmalloc(sizeof(*e) + frame.len + 1);
	*e = (struct mcp_event){
		.stream = t, .number = t->next++, .len = frame.len, .cost = sizeof(*e) + frame.len};
	memcpy(e->text, frame.data, frame.len + 1);
	write_text(t, e->text, e->len);
	list_append(&t->events, &e->node);
	list_append(&s->events, &e->own);
	list_append(&s->of->events, &e->same);
	s->bytes += e->cost;
	s->of->bytes += e->cost;
	s->mcp->bytes += e->cost;
	while (s->bytes > most / SESSION_SHARE &&
	       (e = LIST_FIRST(&s->events, struct mcp_event, own)))
		evict_event(e);
	while (s->mcp->bytes > most &&
	       (e = LIST_FIRST(&mcp_tenant_hog(s->of)->events, struct mcp_event, same)))
		evict_event(e);
}

void mcp_stream_answered(struct mcp_stream *t)
{
	assert(t->open > 0);
	if (--t->open > 0)
		return;
	t->ended = true;
	t->ended_us = clock_us();
	mcp_stream_release(t);
	/* Cancelled: nothing to resume. */
	if (list_is_empty(&t->events))
		mcp_stream_free(t, true);
}

void mcp_stream_beat(struct mcp_stream *t)
{
	write_text(t, ":\n\n", 3);
}

/* "3-17" */
static int parse_event_id(const char *text, uint64_t *ret_stream, uint64_t *ret_number)
{
	char first[24];
	const char *dash = strchr(text, '-');
	size_t len = dash ? (size_t)(dash - text) : sizeof(first);

	if (len >= sizeof(first))
		return -1;
	memcpy(first, text, len);
	first[len] = '\0';
	return parse_u64(first, ret_stream) < 0 || parse_u64(dash + 1, ret_number) < 0 ? -1 : 0;
}

struct mcp_stream *mcp_stream_find(struct mcp_session *s, const char *event_id,
                                   uint64_t *ret_number)
{
	struct mcp_stream *t;
	uint64_t stream;

	if (parse_event_id(event_id, &stream, ret_number) < 0)
		return NULL;
	LIST_FOREACH (t, &s->streams, struct mcp_stream, node)
		if (t->number == stream)
			return *ret_number < t->lost || *ret_number >= t->next ? NULL : t;
	return NULL;
}
