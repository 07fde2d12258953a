/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/str.h"
#include "gateway/gateway.h"
#include "gateway/lines.h"
#include "http/fetch.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/*
 * A server that is a URL: MCP's streamable HTTP. Every message is a POST; its answer is a JSON
 * text, or a stream of events of which each is a message.
 */

#define SESSION_LEN    256
#define STATUS_MISSING 404
#define STATUS_BAD     400
#define POSTS_OVER_MAX 16 /* open beyond the calls in progress */

struct remote {
	struct server *server;
	uint32_t generation; /* of the present start */
	bool has_protocol;   /* initialize was answered */
	char session[SESSION_LEN];
	struct list posts; /* struct post, the oldest first */
	size_t posts_count;
};

struct post {
	struct remote *remote;
	struct list node;
	uint32_t id; /* of the call, or 0 */
	struct fetch *fetch;
	bool is_stream, is_typed;
	bool is_busy;       /* its function is being called */
	struct lines lines; /* a stream */
	struct buf body;    /* a JSON text, or the data of an event */
};

static void free_post(struct post *p)
{
	p->remote->posts_count--;
	list_remove(&p->node);
	lines_done(&p->lines);
	buf_done(&p->body);
	free(p);
}

static void receive_body(struct post *p)
{
	struct remote *t = p->remote;
	size_t len;
	/* The message may end the server, and with it the post. */
	cleanup_free char *text = buf_take(&p->body, &len);

	if (len > 0)
		server_received(t->server, text, len);
}

static void take_line(struct post *p, const struct line *line)
{
	static const char key[] = "data:";
	size_t skip = sizeof(key) - 1;

	if (line->len >= skip && memcmp(line->text, key, skip) == 0) {
		if (line->len > skip && line->text[skip] == ' ')
			skip++;
		if (p->body.len > 0)
			(void)buf_add_some(&p->body, " ", 1);
		(void)buf_add_some(&p->body, line->text + skip, line->len - skip);
	}
}

static bool is_blank(const struct line *line)
{
	return line->len == 0 || (line->len == 1 && line->text[0] == '\r');
}

/* Return: 0, or -1: too long, or the post is gone. */
static int take_events(struct post *p)
{
	const struct remote *t = p->remote;
	uint32_t generation = t->generation;
	struct line line;

	while (lines_next(&p->lines, &line)) {
		if (line.is_cut)
			return -1;
		if (!is_blank(&line)) {
			take_line(p, &line);
			continue;
		}
		receive_body(p);
		if (t->generation != generation)
			return -1;
	}
	return 0;
}

static int take_stream(struct post *p, const char *data, size_t len)
{
	while (len > 0) {
		size_t n = len < LINES_EDGE * 256 ? len : LINES_EDGE * 256;

		lines_add(&p->lines, data, n);
		if (take_events(p) < 0)
			return -1;
		data += n;
		len -= n;
	}
	return 0;
}

static void keep_session(struct remote *t, const struct fetch *f)
{
	const char *session = fetch_header(f, "mcp-session-id");

	t->has_protocol = true;
	/* One that does not fit, or could add a header, is refused by the next answer. */
	if (!session || strpbrk(session, "\r\n") ||
	    str_format(t->session, sizeof(t->session), "Mcp-Session-Id: %s", session) < 0)
		t->session[0] = '\0';
}

static int on_data(void *ctx, struct fetch *f, const char *data, size_t len)
{
	struct post *p = ctx;
	const char *type = p->is_typed ? NULL : fetch_header(f, "content-type");
	int r;

	if (type)
		p->is_stream = strncasecmp(type, "text/event-stream", 17) == 0;
	p->is_typed = true;
	if (fetch_status(f) >= STATUS_BAD) /* what it says is for no program */
		return 0;
	/* Before the first message, which leads to others. */
	if (!p->remote->has_protocol)
		keep_session(p->remote, f);
	p->is_busy = true;
	r = p->is_stream ? take_stream(p, data, len) : buf_add(&p->body, data, len);
	if (r >= 0) /* else it is gone, or will be */
		p->is_busy = false;
	return r;
}

static void on_done(void *ctx, struct fetch *f, const struct error *err)
{
	struct post *p = ctx;
	struct remote *t = p->remote;
	struct server *s = t->server;
	uint32_t id = p->id, generation = t->generation;
	int status = fetch_status(f);
	char text[GATEWAY_DETAIL_LEN];

	p->is_busy = true;
	if (!err && status < STATUS_BAD && !p->is_stream)
		receive_body(p);
	if (t->generation != generation)
		return;
	free_post(p);
	if (err && err->code == ERR_TOO_LARGE) {
		server_lost_message(s, id);
	} else if (err) {
		server_doubt(s, id, err->msg);
	} else if (status == STATUS_MISSING && t->session[0]) {
		server_fail(s, "has ended its session");
	} else if (id) {
		(void)snprintf(text, sizeof(text), "MCP server '%s' answered with HTTP %d%s",
		               s->spec->name, status,
		               status < STATUS_BAD ? " and without a result" : "");
		server_lost_call(s, id, GATEWAY_REFUSED, text);
	}
}

/* A server may leave streams open after the answers to their calls, each with a connection. */
static void end_old_posts(struct remote *t)
{
	size_t most = t->server->active_count + POSTS_OVER_MAX;
	struct post *p;

	LIST_FOREACH (p, &t->posts, struct post, node) {
		if (t->posts_count <= most)
			return;
		if (!p->fetch || p->is_busy || call_is_active(t->server, p->id))
			continue;
		fetch_cancel(p->fetch);
		free_post(p);
	}
}

int remote_send(struct remote *t, uint32_t id, const char *text, size_t len)
{
	const struct server_spec *spec = t->server->spec;
	size_t count = str_list_count(spec->headers), n = 0;
	const char **headers = xcalloc(count + 6, sizeof(*headers));
	struct post *p = NEW(struct post);

	headers[n++] = "Content-Type: application/json";
	headers[n++] = "Accept: application/json, text/event-stream";
	headers[n++] = "Expect:";
	if (t->has_protocol)
		headers[n++] = "MCP-Protocol-Version: 2025-06-18";
	if (t->session[0])
		headers[n++] = t->session;
	for (size_t i = 0; i < count; i++)
		headers[n++] = spec->headers[i];
	*p = (struct post){.remote = t, .id = id};
	lines_init(&p->lines, GATEWAY_FRAME_MAX);
	buf_init(&p->body, GATEWAY_FRAME_MAX);
	list_append(&t->posts, &p->node);
	t->posts_count++;
	end_old_posts(t);
	p->fetch = fetch_start(t->server->gateway->fetcher, &(struct fetch_request){
								    .method = "POST",
								    .url = spec->url,
								    .body = text,
								    .body_len = len,
								    .headers = headers,
								    .on_data = on_data,
								    .on_done = on_done,
								    .ctx = p,
							    });
	free(headers);
	return 0;
}

void remote_cancel(struct remote *t, uint32_t id)
{
	struct post *p;

	LIST_FOREACH (p, &t->posts, struct post, node) {
		if (p->id != id)
			continue;
		fetch_cancel(p->fetch);
		free_post(p);
	}
}

void remote_start(struct remote *t)
{
	t->generation++;
	t->has_protocol = false;
	t->session[0] = '\0';
	server_opened(t->server);
}

void remote_stop(struct remote *t)
{
	struct post *p;

	t->generation++;
	LIST_FOREACH (p, &t->posts, struct post, node) {
		fetch_cancel(p->fetch);
		free_post(p);
	}
}

struct remote *remote_new(struct server *s)
{
	struct remote *t = NEW(struct remote);

	t->server = s;
	list_init(&t->posts);
	return t;
}

void remote_free(struct remote *t)
{
	if (!t)
		return;
	remote_stop(t);
	free(t);
}
