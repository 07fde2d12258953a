/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/ports.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "guest/agent.h"

/* Found after decoding the message. */
#define VIOLATION (-EPROTO)
/* Not a message for every few bytes. */
#define ROOM_STEP (WIRE_PORT_WINDOW / 4)
/* The windows count whole frames of PORT_SEND and PORT_BYTES. */
#define DATA_EXTRA (FRAME_HEADER_LEN + 4)

static void stream_clear(struct port_stream *s)
{
	*s = (struct port_stream){.fd = -1};
	buf_init(&s->pending, WIRE_PORT_WINDOW);
}

void ports_init(struct agent *a)
{
	for (size_t i = 0; i < WIRE_PORTS_MAX; i++)
		stream_clear(&a->ports.streams[i]);
}

static void stream_forget(struct port_stream *s)
{
	(void)fd_close(s->fd);
	buf_done(&s->pending);
	stream_clear(s);
}

/* The program sees a reset, not the end of a complete input. */
static void stream_abort(struct port_stream *s)
{
	const struct sockaddr none = {.sa_family = AF_UNSPEC};

	(void)connect(s->fd, &none, sizeof(none));
	stream_forget(s);
}

static struct port_stream *find_stream(struct agent *a, uint32_t id)
{
	for (size_t i = 0; i < WIRE_PORTS_MAX; i++)
		if (a->ports.streams[i].id == id)
			return &a->ports.streams[i];
	return NULL;
}

void ports_drop(struct agent *a)
{
	for (size_t i = 0; i < WIRE_PORTS_MAX; i++)
		if (a->ports.streams[i].id != 0)
			stream_abort(&a->ports.streams[i]);
}

static int send_closed(struct agent *a, uint32_t id, int sys)
{
	return msg_port_closed_encode(&a->ch.out, id, &(struct msg_port_closed){.sys = sys});
}

static int close_stream(struct agent *a, struct port_stream *s, int sys)
{
	uint32_t id = s->id;

	if (sys)
		stream_abort(s);
	else
		stream_forget(s);
	return send_closed(a, id, sys);
}

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static socklen_t fill_address(union address *address, int family, uint16_t port)
{
	*address = (union address){.any.sa_family = (sa_family_t)family};
	if (family == AF_INET) {
		address->in.sin_port = htons(port);
		address->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(address->in);
	}
	address->in6.sin6_port = htons(port);
	address->in6.sin6_addr = in6addr_loopback;
	return sizeof(address->in6);
}

/* The kernel may choose the port itself as the connection's own, which then meets itself. */
static bool meets_itself(const struct port_stream *s)
{
	union address own = {0};
	socklen_t len = sizeof(own);

	if (getsockname(s->fd, &own.any, &len) < 0)
		return true;
	return ntohs(own.any.sa_family == AF_INET ? own.in.sin_port : own.in6.sin6_port) == s->port;
}

/* Return: 0: connected or under way, or a negative errno. */
static int try_family(struct port_stream *s, int family)
{
	union address address;
	socklen_t len = fill_address(&address, family, s->port);

	s->family = family;
	s->fd = fd_close(s->fd);
	s->fd = fd_socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return s->fd;
	return connect(s->fd, &address.any, len) < 0 && errno != EINPROGRESS ? -errno : 0;
}

static int try_next(struct port_stream *s, int r)
{
	if (r < 0 && s->family == AF_INET)
		r = try_family(s, AF_INET6);
	/* A kernel without IPv6: the first answer counts. */
	return r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL ? -ECONNREFUSED : r;
}

int ports_open(struct agent *a, const struct frame *frame)
{
	struct port_stream *s = find_stream(a, 0);
	struct msg_port_open msg;
	int r = 0;

	if (msg_port_open_decode(frame, &msg) < 0 || msg.port == 0 || find_stream(a, frame->id))
		return VIOLATION;
	if (!s)
		return send_closed(a, frame->id, EMFILE);
	s->id = frame->id;
	s->port = msg.port;
	s->granted = WIRE_PORT_WINDOW;
	r = try_next(s, try_family(s, AF_INET));
	return r < 0 ? close_stream(a, s, -r) : 0;
}

/* The attempt has ended, one way or the other. */
static int end_attempt(struct agent *a, struct port_stream *s)
{
	const int yes = 1;
	int sys = 0;
	socklen_t len = sizeof(sys);
	int r = 0;

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &sys, &len) < 0)
		sys = errno;
	if (sys == 0 && meets_itself(s))
		sys = ECONNREFUSED;
	if (sys != 0) {
		r = try_next(s, -sys);
		return r < 0 ? close_stream(a, s, -r) : 0;
	}
	/* What one side writes must not wait for the other's acknowledgement. */
	(void)setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	s->opened = true;
	return msg_port_opened_encode(&a->ch.out, s->id, &(struct msg_port_opened){0});
}

/* Return: 0; 1: the connection is over; or the channel's negative errno. */
static int write_some(struct agent *a, struct port_stream *s)
{
	ssize_t n = 0;
	int r = 0;

	if (s->pending.len > 0)
		n = send(s->fd, s->pending.data, s->pending.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		r = close_stream(a, s, errno);
		return r < 0 ? r : 1;
	}
	if (n > 0) {
		s->owed += (uint32_t)n;
		buf_consume(&s->pending, (size_t)n);
	}
	if (s->finished && !s->shut && s->pending.len == 0) {
		(void)shutdown(s->fd, SHUT_WR);
		s->shut = true;
	}
	if (s->finished || s->owed < ROOM_STEP)
		return 0;
	r = msg_port_room_encode(&a->ch.out, s->id, &(struct msg_port_room){.bytes = s->owed});
	s->owed = 0;
	return r;
}

static bool can_read(const struct port_stream *s)
{
	return s->opened && !s->ended && s->granted > DATA_EXTRA;
}

/* Return: as write_some. */
static int read_some(struct agent *a, struct port_stream *s)
{
	size_t max = s->granted - DATA_EXTRA;
	ssize_t n = recv(s->fd, a->ch.scratch,
	                 max < sizeof(a->ch.scratch) ? max : sizeof(a->ch.scratch), MSG_DONTWAIT);
	int r = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0) {
		r = close_stream(a, s, errno);
		return r < 0 ? r : 1;
	}
	if (n == 0) {
		s->ended = true;
		return msg_port_finished_encode(&a->ch.out, s->id, &(struct msg_port_finished){0});
	}
	s->granted -= (uint32_t)n + DATA_EXTRA;
	return msg_port_bytes_encode(
		&a->ch.out, s->id, &(struct msg_port_bytes){.data = {a->ch.scratch, (uint32_t)n}});
}

static int check_over(struct agent *a, struct port_stream *s)
{
	return s->shut && s->ended ? close_stream(a, s, 0) : 0;
}

static int pump_stream(struct agent *a, struct port_stream *s, short events)
{
	int r = 0;

	if (!s->opened)
		return events ? end_attempt(a, s) : 0;
	if (events & (POLLOUT | POLLERR | POLLHUP))
		r = write_some(a, s);
	if (r == 0 && (events & (POLLIN | POLLERR | POLLHUP)) && can_read(s))
		r = read_some(a, s);
	if (r != 0)
		return r < 0 ? r : 0;
	return check_over(a, s);
}

int ports_send(struct agent *a, const struct frame *frame)
{
	struct port_stream *s = find_stream(a, frame->id);
	struct msg_port_send msg;
	int r = 0;

	if (msg_port_send_decode(frame, &msg) < 0 || msg.data.len == 0)
		return VIOLATION;
	/* It may have ended meanwhile. */
	if (!s)
		return 0;
	if (s->finished ||
	    s->pending.len + s->owed + msg.data.len + DATA_EXTRA > WIRE_PORT_WINDOW ||
	    buf_add(&s->pending, msg.data.data, msg.data.len) < 0)
		return VIOLATION;
	s->owed += DATA_EXTRA;
	r = s->opened ? write_some(a, s) : 0;
	return r < 0 ? r : 0;
}

int ports_finish(struct agent *a, const struct frame *frame)
{
	struct port_stream *s = find_stream(a, frame->id);
	struct msg_port_finish msg;
	int r = 0;

	if (msg_port_finish_decode(frame, &msg) < 0)
		return VIOLATION;
	if (!s)
		return 0;
	if (s->finished)
		return VIOLATION;
	s->finished = true;
	if (!s->opened)
		return 0; /* with the first byte that can be written */
	r = write_some(a, s);
	if (r != 0)
		return r < 0 ? r : 0;
	return check_over(a, s);
}

int ports_grant(struct agent *a, const struct frame *frame)
{
	struct port_stream *s = find_stream(a, frame->id);
	struct msg_port_grant msg;

	if (msg_port_grant_decode(frame, &msg) < 0 || msg.bytes > WIRE_PORT_WINDOW)
		return VIOLATION;
	if (!s)
		return 0;
	if (msg.bytes > WIRE_PORT_WINDOW - s->granted)
		return VIOLATION;
	s->granted += msg.bytes;
	return 0;
}

int ports_reset(struct agent *a, const struct frame *frame)
{
	struct port_stream *s = find_stream(a, frame->id);
	struct msg_port_reset msg;

	if (msg_port_reset_decode(frame, &msg) < 0)
		return VIOLATION;
	if (s)
		stream_abort(s);
	return 0;
}

/* 0: nothing is expected; poll reports errors even then, so such a descriptor is not polled. */
static short wanted_events(const struct agent *a, const struct port_stream *s)
{
	if (!s->opened)
		return POLLOUT;
	return (short)((s->pending.len > 0 || (s->finished && !s->shut) ? POLLOUT : 0) |
	               (can_read(s) && !channel_is_full(&a->ch) ? POLLIN : 0));
}

void ports_watch(const struct agent *a, struct pollfd *fds)
{
	for (size_t i = 0; i < WIRE_PORTS_MAX; i++) {
		const struct port_stream *s = &a->ports.streams[i];
		short events = 0;

		if (s->id)
			events = wanted_events(a, s);

		fds[i] = (struct pollfd){.fd = events ? s->fd : -1, .events = events};
	}
}

int ports_pump(struct agent *a, const struct pollfd *fds)
{
	struct ports *p = &a->ports;
	int r = 0;

	for (size_t n = 0; n < WIRE_PORTS_MAX && r >= 0; n++) {
		size_t i = (p->first + n) % WIRE_PORTS_MAX;

		if (!fds[i].revents || p->streams[i].id == 0)
			continue;
		/* The next round begins with the first that found no room. */
		if (channel_is_full(&a->ch)) {
			p->first = i;
			break;
		}
		r = pump_stream(a, &p->streams[i], fds[i].revents);
	}
	return r;
}
