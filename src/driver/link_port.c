/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/link.h"

#include "base/alloc.h"
#include "driver/internal.h"
#include <errno.h>

/*
 * Theory of operation. As with file operations (link_file.c): ids of their own, never reused in a
 * box; windows that count whole frames; late frames of a reset connection are dropped, within what
 * it had been granted; an id never assigned is a protocol violation.
 *
 * A listing is a connection without bytes: its id is of the same space.
 */

/* Avoids a message per few bytes. */
#define GRANT_STEP (BOX_PORT_WINDOW / 4)
/* Overhead of PORT_SEND and PORT_BYTES. */
#define DATA_EXTRA (FRAME_HEADER_LEN + 4)
/* PORT_OPENED, PORT_ROOM and end of a reset connection. */
#define LAST_WORDS 256
/* PORT_FOUND and PORT_LISTED of a cancelled listing. */
#define LISTING_BYTES ((WIRE_LISTED_MAX + 1) * (FRAME_HEADER_LEN + 3))
#define SYS_MAX       4095

static_assert(BOX_PORT_WINDOW == WIRE_PORT_WINDOW, "one window");
static_assert(BOX_PORTS_MAX == WIRE_PORTS_MAX, "one number of connections");
static_assert(BOX_LISTED_MAX == WIRE_LISTED_MAX, "one length of listings");
static_assert((int)BOX_BOUND_LOOPBACK == (int)WIRE_BOUND_LOOPBACK &&
                      (int)BOX_BOUND_OTHER == (int)WIRE_BOUND_OTHER,
              "the same addresses");

struct box_port {
	struct list node; /* link.ports */
	struct link *link;
	uint32_t id;
	uint16_t port;
	struct box_port_events events;
	bool opened;
	bool finished; /* by us */
	bool ended;    /* by the program */
	uint32_t room; /* bytes of frames the agent accepts */
	bool starved;  /* a write found no room */
	uint32_t granted;
	size_t passed_on; /* granted, not yet reported to the agent */
};

struct box_port_list {
	struct list node; /* link.listings */
	struct link *link;
	uint32_t id;
	uint16_t hidden; /* port to leave out; 0: none */
	box_port_list_fn *on_listed;
	void *ctx;
	struct box_port_row rows[BOX_LISTED_MAX];
	size_t count, received;
};

static void port_forget(struct box_port *port)
{
	list_remove(&port->node);
	port->link->ports_count--;
	free(port);
}

static void listing_forget(struct box_port_list *list)
{
	list_remove(&list->node);
	list->link->ports_count--;
	free(list);
}

void link_ports_free(struct link *l)
{
	struct box_port_list *list;
	struct box_port *port;

	LIST_FOREACH (port, &l->ports, struct box_port, node)
		port_forget(port);
	LIST_FOREACH (list, &l->listings, struct box_port_list, node)
		listing_forget(list);
}

static void close_port(struct box_port *port, const struct error *err)
{
	const struct box_port_events events = port->events;

	port_forget(port);
	events.on_closed(events.ctx, err);
}

static void end_listing(struct box_port_list *list, bool truncated, const struct error *err)
{
	box_port_list_fn *on_listed = list->on_listed;
	void *ctx = list->ctx;
	struct box_port_row rows[BOX_LISTED_MAX];
	const struct box_port_rows found = {rows, err ? 0 : list->count, truncated};

	memcpy(rows, list->rows, sizeof(rows));
	listing_forget(list);
	on_listed(ctx, &found, err);
}

void link_ports_fail(struct link *l, const struct error *err)
{
	struct box_port_list *list;
	struct box_port *port;

	/* The analyzer does not see that removing the first changes the head. */
	while ((port = LIST_FIRST(&l->ports, struct box_port, node)))
		close_port(port, err); // NOLINT
	while ((list = LIST_FIRST(&l->listings, struct box_port_list, node)))
		end_listing(list, false, err); // NOLINT
}

static int check_room(const struct link *l, struct error *err)
{
	if (l->closed)
		return error_set(err, ERR_AGENT_LOST, 0, "box %s has ended", l->box_id);
	if (l->ports_count == BOX_PORTS_MAX || l->last_port == UINT32_MAX)
		return error_set(err, ERR_BUSY, 0, "a box has at most %d connections to its ports",
		                 BOX_PORTS_MAX);
	return 0;
}

static int refuse_stuck(const struct link *l, struct error *err)
{
	return error_set(err, ERR_BUSY, 0, "the agent of box %s does not read commands", l->box_id);
}

int link_port_open(struct link *l, uint16_t number, const struct box_port_events *events,
                   struct box_port **ret_port, struct error *err)
{
	const struct msg_port_open msg = {.port = number};
	struct box_port *port;

	if (check_room(l, err) < 0)
		return -1;
	if (msg_port_open_encode(link_out(l), l->last_port + 1, &msg) < 0)
		return refuse_stuck(l, err);
	port = NEW(struct box_port);
	port->link = l;
	port->id = ++l->last_port;
	port->port = number;
	port->events = *events;
	port->room = port->granted = BOX_PORT_WINDOW;
	list_append(&l->ports, &port->node);
	l->ports_count++;
	link_flush(l);
	*ret_port = port;
	return 0;
}

size_t box_port_write(struct box_port *port, const char *data, size_t len)
{
	struct link *l = port->link;
	size_t taken = 0;

	assert(!port->finished);
	while (!l->closed && taken < len && port->room > DATA_EXTRA) {
		size_t n = len - taken;
		struct msg_port_send msg;

		if (n > port->room - DATA_EXTRA)
			n = port->room - DATA_EXTRA;
		if (n > FRAME_CHUNK)
			n = FRAME_CHUNK;
		msg.data = (struct wire_bytes){data + taken, (uint32_t)n};
		if (msg_port_send_encode(link_out(l), port->id, &msg) < 0)
			break;
		port->room -= (uint32_t)n + DATA_EXTRA;
		taken += n;
	}
	port->starved = taken < len;
	if (taken > 0)
		link_flush(l);
	return taken;
}

/* The queue has room for small messages beyond all windows; an agent that still fills it is stuck,
 * and its box will be ended. */
void box_port_finish(struct box_port *port)
{
	const struct msg_port_finish msg = {0};

	assert(!port->finished);
	port->finished = true;
	if (!port->link->closed &&
	    msg_port_finish_encode(link_out(port->link), port->id, &msg) == 0)
		link_flush(port->link);
}

void box_port_grant(struct box_port *port, size_t bytes)
{
	struct msg_port_grant msg;

	port->passed_on += bytes;
	if (port->passed_on < GRANT_STEP || port->link->closed)
		return;
	msg.bytes = (uint32_t)port->passed_on;
	if (msg_port_grant_encode(link_out(port->link), port->id, &msg) < 0)
		return; /* goes with the next grant */
	port->granted += msg.bytes;
	port->passed_on = 0;
	link_flush(port->link);
}

void box_port_reset(struct box_port *port)
{
	const struct msg_port_reset msg = {0};
	struct link *l = port->link;

	if (!l->closed && msg_port_reset_encode(link_out(l), port->id, &msg) == 0)
		link_flush(l);
	l->port_strays += port->granted + LAST_WORDS;
	port_forget(port);
}

int link_port_list(struct link *l, uint16_t hidden, box_port_list_fn *on_listed, void *ctx,
                   struct box_port_list **ret_list, struct error *err)
{
	const struct msg_port_list msg = {0};
	struct box_port_list *list;

	if (check_room(l, err) < 0)
		return -1;
	if (msg_port_list_encode(link_out(l), l->last_port + 1, &msg) < 0)
		return refuse_stuck(l, err);
	list = NEW(struct box_port_list);
	list->link = l;
	list->id = ++l->last_port;
	list->hidden = hidden;
	list->on_listed = on_listed;
	list->ctx = ctx;
	list_append(&l->listings, &list->node);
	l->ports_count++;
	link_flush(l);
	*ret_list = list;
	return 0;
}

void box_port_list_cancel(struct box_port_list *list)
{
	list->link->port_strays += LISTING_BYTES;
	listing_forget(list);
}

/* The agent's messages. */

static int take_opened(struct box_port *port, const struct frame *frame, struct error *err)
{
	struct msg_port_opened msg;

	if (msg_port_opened_decode(frame, &msg) < 0)
		return link_violation(err, frame, "is malformed");
	if (port->opened)
		return link_violation(err, frame, "is repeated");
	port->opened = true;
	port->events.on_opened(port->events.ctx);
	return 0;
}

static int take_room(struct box_port *port, const struct frame *frame, struct error *err)
{
	struct msg_port_room msg;

	if (msg_port_room_decode(frame, &msg) < 0)
		return link_violation(err, frame, "is malformed");
	if (msg.bytes == 0 || msg.bytes > BOX_PORT_WINDOW - port->room)
		return link_violation(err, frame, "grants 0 bytes or more than the window");
	port->room += msg.bytes;
	if (!port->starved || port->finished)
		return 0;
	port->starved = false;
	port->events.on_room(port->events.ctx);
	return 0;
}

static int take_bytes(struct box_port *port, const struct frame *frame, struct error *err)
{
	struct msg_port_bytes msg;

	if (msg_port_bytes_decode(frame, &msg) < 0 || msg.data.len == 0)
		return link_violation(err, frame, "is malformed");
	if (!port->opened || port->ended)
		return link_violation(err, frame, "is sent before PORT_OPENED or after the end");
	if (FRAME_HEADER_LEN + frame->len > port->granted)
		return link_violation(err, frame, "exceeds the grant");
	port->granted -= FRAME_HEADER_LEN + frame->len;
	port->passed_on += DATA_EXTRA;
	port->events.on_data(port->events.ctx, msg.data.data, msg.data.len);
	return 0;
}

static int take_finished(struct box_port *port, const struct frame *frame, struct error *err)
{
	struct msg_port_finished msg;

	if (msg_port_finished_decode(frame, &msg) < 0)
		return link_violation(err, frame, "is malformed");
	if (!port->opened || port->ended)
		return link_violation(err, frame, "is sent before PORT_OPENED or repeated");
	port->ended = true;
	port->events.on_finished(port->events.ctx);
	return 0;
}

static int set_failure(const struct box_port *port, int sys, struct error *failure)
{
	static const struct {
		int sys;
		enum error_code code;
		const char *text;
	} codes[] = {
		{ECONNREFUSED, ERR_NOT_FOUND, "nothing listens on it in the box"},
		{ETIMEDOUT, ERR_UNAVAILABLE, "the program does not accept connections"},
		{EMFILE, ERR_BUSY, "too many connections"},
		{ENFILE, ERR_BUSY, "too many connections"},
		{ENOBUFS, ERR_BUSY, "the box has no memory for another connection"},
		{ENOMEM, ERR_BUSY, "the box has no memory for another connection"},
		{ECONNRESET, ERR_AGENT_LOST, "the program reset the connection"},
		{EPIPE, ERR_AGENT_LOST, "the program closed the connection"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].sys == sys)
			return error_set(failure, codes[i].code, sys, "port %u: %s", port->port,
			                 codes[i].text);
	return error_set(failure, ERR_AGENT_LOST, sys, "port %u: %s", port->port, strerror(sys));
}

static int take_closed(struct box_port *port, const struct frame *frame, struct error *err)
{
	struct error failure = {0};
	struct msg_port_closed msg;

	if (msg_port_closed_decode(frame, &msg) < 0 || msg.sys < 0 || msg.sys > SYS_MAX)
		return link_violation(err, frame, "is malformed");
	if (msg.sys == 0 && !(port->finished && port->ended))
		return link_violation(err, frame, "arrives before both ends");
	if (msg.sys != 0)
		(void)set_failure(port, msg.sys, &failure);
	close_port(port, msg.sys ? &failure : NULL);
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	return (int)((const struct box_port_row *)a)->port -
	       (int)((const struct box_port_row *)b)->port;
}

static int take_found(struct box_port_list *list, const struct frame *frame, struct error *err)
{
	struct msg_port_found msg;

	if (msg_port_found_decode(frame, &msg) < 0 || msg.port == 0 || msg.bound == 0 ||
	    (msg.bound & ~WIRE_BOUND_ALL))
		return link_violation(err, frame, "is malformed");
	if (list->received++ == BOX_LISTED_MAX)
		return link_violation(err, frame, "is sent too often");
	if (msg.port != list->hidden)
		list->rows[list->count++] = (struct box_port_row){msg.port, msg.bound};
	return 0;
}

static int take_listed(struct box_port_list *list, const struct frame *frame, struct error *err)
{
	struct msg_port_listed msg;

	if (msg_port_listed_decode(frame, &msg) < 0 || msg.truncated > 1)
		return link_violation(err, frame, "is malformed");
	qsort(list->rows, list->count, sizeof(list->rows[0]), compare_rows);
	for (size_t i = 1; i < list->count; i++)
		if (list->rows[i].port == list->rows[i - 1].port)
			return link_violation(err, frame, "repeats a port");
	end_listing(list, msg.truncated, NULL);
	return 0;
}

static struct box_port *find_port(const struct link *l, uint32_t id)
{
	struct box_port *port;

	LIST_FOREACH (port, &l->ports, struct box_port, node)
		if (port->id == id)
			return port;
	return NULL;
}

static struct box_port_list *find_listing(const struct link *l, uint32_t id)
{
	struct box_port_list *list;

	LIST_FOREACH (list, &l->listings, struct box_port_list, node)
		if (list->id == id)
			return list;
	return NULL;
}

/* Of a connection or listing that was given up. */
static int take_stray(struct link *l, const struct frame *frame, struct error *err)
{
	if (frame->id == 0 || frame->id > l->last_port ||
	    FRAME_HEADER_LEN + frame->len > l->port_strays)
		return link_violation(err, frame, "names an unknown connection");
	l->port_strays -= FRAME_HEADER_LEN + frame->len;
	return 0;
}

int link_port_take(struct link *l, const struct frame *frame, struct error *err)
{
	static int (*const takers[MSG_COUNT])(struct box_port * port, const struct frame *frame,
	                                      struct error *err) = {
		[MSG_PORT_OPENED] = take_opened, [MSG_PORT_ROOM] = take_room,
		[MSG_PORT_BYTES] = take_bytes,   [MSG_PORT_FINISHED] = take_finished,
		[MSG_PORT_CLOSED] = take_closed,
	};
	struct box_port_list *list;
	struct box_port *port;

	if (takers[frame->type]) {
		port = find_port(l, frame->id);
		return port ? takers[frame->type](port, frame, err) : take_stray(l, frame, err);
	}
	list = find_listing(l, frame->id);
	if (!list)
		return take_stray(l, frame, err);
	return frame->type == MSG_PORT_FOUND ? take_found(list, frame, err)
	                                     : take_listed(list, frame, err);
}
