/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "egress/egress.h"
#include "io/timer.h"
#include "io/watch.h"
#include <errno.h>
#include <sys/socket.h>

#define RESUME_US (20 * USEC_PER_MS)
/* What a connection may hold more while memory is full: connections end until it is not. */
#define FULL_BYTES 4096
/* Of what TLS has received and the socket does not show. */
#define TURNS 16

static void on_out(void *ctx, int events)
{
	(void)events;
	relay_pump(ctx);
}

/* The body of a plain request, and no byte behind it: that could be a second request. */
static int64_t filter_body(void *ctx, const char *data, size_t len, bool *ret_done)
{
	struct client *c = ctx;

	if (c->is_chunked)
		return chunks_feed(&c->chunks, data, len, ret_done);
	if (len > c->body_left)
		len = (size_t)c->body_left;
	c->body_left -= len;
	*ret_done = c->body_left == 0;
	return (int64_t)len;
}

/* Return: 0, or -1 if the body is malformed. */
static int queue_request(struct client *c)
{
	const char *body = c->input.data + c->head_len;
	bool done = false;
	int64_t n;

	c->up.filter = filter_body;
	c->up.filter_ctx = c;
	n = filter_body(c, body, c->input.len - c->head_len, &done);
	if (n < 0)
		return -1;
	c->input.len = c->head_len + (size_t)n;
	c->up.ended = done;
	return 0;
}

void relay_start(struct client *c)
{
	struct egress *e = c->box->egress;

	c->state = CLIENT_RELAY;
	flow_init(&c->up, &c->in, &c->out);
	flow_init(&c->down, &c->out, &c->in);
	c->out_watch = watch_new(e->loop, c->out.fd, on_out, c);
	if (c->is_tunnel) {
		flow_set_pipes(&c->up, &e->pipes);
		flow_set_pipes(&c->down, &e->pipes);
	}
	if (!c->is_tunnel && queue_request(c) < 0) {
		control_denied(c, EGRESS_BAD_REQUEST, "malformed chunk");
		client_free(c);
		return;
	}
	account_add(&c->box->account, c->input.len);
	account_add(&c->box->tenant->account, c->input.len);
	c->box->sent += c->input.len;
	c->up.waiting = c->input;
	c->up.is_secret = c->has_secrets;
	if (c->scrub)
		flow_set_scrub(&c->down, TAKE_PTR(c->scrub));
	if (c->up.waiting.max < FLOW_CHUNK)
		c->up.waiting.max = FLOW_CHUNK;
	c->input = BUF_INIT(HEAD_MAX);
	timer_start(c->timer, (uint64_t)c->box->account.limits.idle_ms * USEC_PER_MS);
	relay_pump(c);
}

static size_t room_of(struct client *c)
{
	uint64_t now = clock_us();
	size_t box = account_room(&c->box->account, now);
	size_t tenant = account_room(&c->box->tenant->account, now);
	size_t room = box < tenant ? box : tenant;

	return room > FULL_BYTES && budget_is_full(&c->box->egress->memory) ? FULL_BYTES : room;
}

static void charge(struct client *c, size_t up, size_t down)
{
	struct box *box = c->box;

	if (up + down == 0)
		return;
	account_add(&box->account, up + down);
	account_add(&box->tenant->account, up + down);
	box->sent += up;
	box->received += down;
	box->is_changed = true;
	timer_start(c->timer, (uint64_t)box->account.limits.idle_ms * USEC_PER_MS);
}

static void pause_client(struct client *c)
{
	struct egress *e = c->box->egress;

	watch_set(c->in_watch, 0);
	watch_set(c->out_watch, 0);
	if (list_is_empty(&e->paused))
		timer_start(e->resume, RESUME_US);
	list_remove(&c->paused);
	list_append(&e->paused, &c->paused);
}

void relay_resume_paused(void *egress)
{
	struct egress *e = egress;
	struct list waiting;
	struct client *c;

	/* Those that pause again go onto the emptied list. */
	list_init(&waiting);
	while ((c = LIST_FIRST(&e->paused, struct client, paused))) {
		list_remove(&c->paused);
		list_append(&waiting, &c->paused);
	}
	while ((c = LIST_FIRST(&waiting, struct client, paused))) {
		list_remove(&c->paused);
		relay_pump(c);
	}
	/* From now on: if this took longer than the pause, the timer that the first of them has
	 * started would call it again before anything else is done. */
	if (!list_is_empty(&e->paused))
		timer_start(e->resume, RESUME_US);
}

/* Behind its request a box sends nothing, so what comes is the end. Return: whether it is gone. */
static bool has_left(struct client *c)
{
	char byte;
	ssize_t n;

	if (c->is_tunnel || !c->up.ended || c->is_deaf)
		return false;
	n = recv(c->in.fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
	c->is_deaf = n > 0;
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static bool wants_input(const struct client *c)
{
	return flow_wants_read(&c->up) || (!c->is_tunnel && c->up.ended && !c->is_deaf);
}

static void set_watches(struct client *c)
{
	watch_set(c->in_watch, (wants_input(c) ? WATCH_READ : 0) |
	                               (flow_wants_write(&c->down) ? WATCH_WRITE : 0));
	watch_set(c->out_watch, (flow_wants_read(&c->down) ? WATCH_READ : 0) |
	                                (flow_wants_write(&c->up) ? WATCH_WRITE : 0));
}

static bool is_over(const struct client *c)
{
	return c->down.finished && (!c->is_tunnel || c->up.finished);
}

/* A server may answer before it has all of a request. */
static void finish(struct client *c)
{
	if (!c->is_tunnel && (c->is_deaf || !c->up.ended))
		client_drain(c);
	else
		client_free(c);
}

/* TLS has received more than the socket shows. */
static bool has_more(const struct client *c)
{
	return (flow_wants_read(&c->up) && channel_has_more(&c->in)) ||
	       (flow_wants_read(&c->down) && channel_has_more(&c->out));
}

/* Return: bytes moved both ways, or a negative errno. */
static int64_t pump_both(struct client *c, size_t room)
{
	size_t up = 0, down = 0;
	int r = has_left(c) ? -EPIPE : flow_pump(&c->up, room, &up);

	if (r >= 0)
		r = flow_pump(&c->down, room - up, &down);
	charge(c, up, down);
	return r < 0 ? r : (int64_t)(up + down);
}

static void await_more(struct client *c, bool is_room_used)
{
	/* What stays inside of TLS does not wake us up. */
	if (is_room_used || has_more(c))
		pause_client(c);
	else
		set_watches(c);
	cost_count(c);
}

void relay_pump(struct client *c)
{
	size_t room = room_of(c);
	int64_t moved = 0;

	if (room == 0 && account_is_used_up(&c->box->account)) {
		/* A proxy that follows this one must know it. */
		control_used(c->box, EGRESS_USED);
		control_denied(c, EGRESS_BYTES, "");
		client_free(c);
		return;
	}
	for (int turn = 0; turn < TURNS; turn++) {
		moved = pump_both(c, room);
		if (moved <= 0 || is_over(c) || !has_more(c) || (size_t)moved == room)
			break;
		room -= (size_t)moved;
	}
	if (moved < 0)
		client_free(c);
	else if (is_over(c))
		finish(c);
	else
		await_more(c, room == (size_t)moved);
}
