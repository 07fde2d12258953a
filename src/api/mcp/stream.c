/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/config/config.h"
#include <inttypes.h>
#include <string.h>

/*
 * Theory of operation. Every message of a stream is an event with the number of its stream and one
 * of its own, "3-17", and is kept for a while: a client that was cut off says the last one it has
 * seen and gets the rest, whether or not the stream has ended meanwhile. What is kept is bounded,
 * and the oldest goes first, of a tenant that has more than its part: nobody loses anything because
 * others are cut off. Who asks for what has gone is told so instead of getting a gap.
 *
 * A stream begins with an event that says nothing, so that a client which is cut off before the
 * first message has a number to come back with (from 2025-11-25 on; older ones do not expect it).
 */

/* Of what is kept in all, the part that one session may have. */
#define SESSION_SHARE 16
#define HEAD_MAX      64

static size_t cost_of(const struct mcp_event *e)
{
	return sizeof(*e) + e->len;
}

static void drop_event(struct mcp_event *e)
{
	struct mcp_stream *t = e->stream;

	t->lost = e->number;
	t->session->bytes -= cost_of(e);
	t->session->of->bytes -= cost_of(e);
	t->session->mcp->bytes -= cost_of(e);
	list_remove(&e->node);
	list_remove(&e->own);
	list_remove(&e->same);
	free(e);
}

/* The oldest there is goes, and with its last event a stream that nobody can come back to. */
static void make_room(struct mcp_event *e)
{
	struct mcp_stream *t = e->stream; // NOLINT: one that was freed has left all lists

	drop_event(e);
	if (t->ended && list_is_empty(&t->events))
		mcp_stream_free(t, true);
}

static void keep_bounds(struct mcp_session *s)
{
	struct mcp *mcp = s->mcp;
	size_t most = mcp->router->config->mcp_buffers_bytes;
	struct mcp_event *e;

	while (s->bytes > most / SESSION_SHARE &&
	       (e = LIST_FIRST(&s->events, struct mcp_event, own)))
		make_room(e);
	while (mcp->bytes > most &&
	       (e = LIST_FIRST(&mcp_tenant_hog(s->of)->events, struct mcp_event, same)))
		make_room(e);
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
	/* Who does not read is cut off, and may come back: on_gone follows. */
	if (t->req)
		(void)!http_stream_write(t->req, text, len);
}

static void prime(struct mcp_stream *t)
{
	char text[HEAD_MAX];
	int len = snprintf(text, sizeof(text), "id: %" PRIu64 "-0\nretry: 1000\ndata: \n\n",
	                   t->number);

	if (t->session->version >= MCP_2025_11_25)
		write_text(t, text, (size_t)len);
}

void mcp_stream_attach(struct mcp_stream *t, struct http_request *req, uint64_t after)
{
	struct mcp_event *e;

	mcp_stream_release(t);
	t->req = req;
	http_set_gone(req, on_gone, t);
	http_add_header(req, "Mcp-Session-Id", t->session->id);
	http_stream_begin(req, 200, "text/event-stream");
	if (after == 0)
		prime(t);
	LIST_FOREACH (e, &t->events, struct mcp_event, node)
		if (e->number > after)
			write_text(t, e->text, e->len);
	if (t->ended)
		mcp_stream_release(t);
}

static struct mcp_event *make_event(struct mcp_stream *t, const char *text, size_t len)
{
	char head[HEAD_MAX];
	int head_len = snprintf(head, sizeof(head),
	                        "id: %" PRIu64 "-%" PRIu64 "\nevent: message\n"
	                        "data: ",
	                        t->number, t->next);
	size_t all = (size_t)head_len + len + 2;
	struct mcp_event *e = xmalloc(sizeof(*e) + all + 1);

	*e = (struct mcp_event){.stream = t, .number = t->next++, .len = all};
	memcpy(e->text, head, (size_t)head_len);
	memcpy(e->text + head_len, text, len);
	memcpy(e->text + head_len + len, "\n\n", 3);
	return e;
}

void mcp_stream_send(struct mcp_stream *t, const char *text, size_t len)
{
	struct mcp_event *e = make_event(t, text, len);

	write_text(t, e->text, e->len);
	list_append(&t->events, &e->node);
	list_append(&t->session->events, &e->own);
	list_append(&t->session->of->events, &e->same);
	t->session->bytes += cost_of(e);
	t->session->of->bytes += cost_of(e);
	t->session->mcp->bytes += cost_of(e);
	keep_bounds(t->session);
}

void mcp_stream_answered(struct mcp_stream *t)
{
	assert(t->open > 0);
	if (--t->open > 0)
		return;
	t->ended = true;
	t->ended_us = clock_us();
	mcp_stream_release(t);
	/* One that said nothing (what it was for was cancelled) has nothing to come back for, and
	 * no bound would count it. */
	if (list_is_empty(&t->events))
		mcp_stream_free(t, true);
}

void mcp_stream_beat(struct mcp_stream *t)
{
	write_text(t, ":\n\n", 3);
}

/* "3-17" */
static int read_id(const char *text, uint64_t *ret_stream, uint64_t *ret_number)
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

	if (read_id(event_id, &stream, ret_number) < 0)
		return NULL;
	LIST_FOREACH (t, &s->streams, struct mcp_stream, node)
		if (t->number == stream)
			return *ret_number < t->lost || *ret_number >= t->next ? NULL : t;
	return NULL;
}
