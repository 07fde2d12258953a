/* SPDX-License-Identifier: Apache-2.0 */
#include "http/internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/str.h"
#include "http/intercept.h"
#include "io/loop.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>

/*
 * Theory of operation. microhttpd's own timeout restarts with every byte, so a client that sends
 * one per second never times out. Ours is absolute: while something is expected of the client, its
 * connection is on one of two lists (enum conn_wait); one timer checks the heads. A late connection
 * is shut down, which microhttpd sees as its end.
 *
 * A full server makes room: the connection that has waited longest for a client that never
 * authenticated gives way to a new one, or else the one that has been idle longest. So connections
 * that are idle do not keep others out, however many there are. The limits are those of all TCP
 * connections, of all of the Unix socket, and of each peer. Connections whose callers authenticated
 * do not count for their peer but for their account at it, with the same limit: callers behind one
 * proxy do not use up each other's connections.
 *
 * If none can give way, the new connection is crowded: a few are kept for the time that a client
 * needs to send a request, so that it can be a health check; the oldest of these gives way too.
 *
 * A connection that gives way is turned away, not closed. Closing a socket with unread input resets
 * it, and the client, which may have sent a request meanwhile, would not know whether that was run.
 * So it gets an answer that says it was not, even before it asks; our side of the connection is
 * closed; and what it sends is discarded (intercept.c, then linger.c). Over TLS the answer waits
 * for the handshake. All of this is bounded in number and time.
 *
 * microhttpd does not watch a suspended connection, but an execution must end when its client
 * disconnects. So every connection is also in our epoll set, which reports only the hang-up, once:
 * no system call per request, no wake-up per byte.
 */

/* Beyond the limit, for a health check or an error response. */
#define CROWD_RESERVE 32
/* At most, for the request of one of these, and then for its client to read the answer. */
#define CROWD_TIME_US (2 * USEC_PER_SEC)

void room_init(struct conn_room *room)
{
	room->count = 0;
	for (int spare = 0; spare < SPARE_COUNT; spare++)
		list_init(&room->spares[spare]);
}

static struct conn_room *room_of(const struct http_conn *c)
{
	return c->listener->is_unix ? &c->server->local : &c->server->tcp;
}

static void leave_spares(struct http_conn *c)
{
	list_remove(&c->spare);
	list_remove(&c->peer_spare);
}

/* @c waits for its client. */
static void enter_spares(struct http_conn *c, enum conn_wait wait)
{
	enum conn_spare spare = SPARE_STRANGER;

	leave_spares(c);
	if (c->evicted || (c->known && wait != WAIT_IDLE))
		return;
	if (c->crowded)
		spare = SPARE_CROWDED;
	else if (c->known)
		spare = SPARE_IDLE;
	list_append(&room_of(c)->spares[spare], &c->spare);
	list_append(&c->peer->room.spares[spare], &c->peer_spare);
}

static void enter_wait(struct http_conn *c, enum conn_wait wait);

/* A body may have reached a handler; a response ends the request anyway. */
static bool can_turn_away(const struct http_conn *c)
{
	return !c->ws &&
	       (!c->req || c->req->phase == REQUEST_HEAD || c->req->phase >= REQUEST_ANSWERED);
}

static void stop_leaving(struct http_conn *c)
{
	c->server->leaving_count -= c->leaving;
	c->leaving = false;
}

static void leave_waits(struct http_conn *c)
{
	list_remove(&c->wait);
	leave_spares(c);
	stop_leaving(c);
}

/* It is not counted from now on. */
static void turn_away(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct http_conn *oldest = LIST_FIRST(&s->waits[WAIT_LEAVE], struct http_conn, wait);

	c->evicted = true;
	room_of(c)->count--;
	c->peer->room.count--;
	leave_spares(c);
	if (!can_turn_away(c)) {
		conn_cut(c);
		return;
	}
	if (oldest && s->leaving_count >= s->refused_max)
		conn_cut(oldest);
	c->leaving = true;
	s->leaving_count++;
	enter_wait(c, WAIT_LEAVE);
	server_refuse_crowd(c);
}

static void evict(struct http_conn *c)
{
	c->server->evicted_count++;
	turn_away(c);
}

void conn_make_way(struct http_listener *l)
{
	struct http_conn *c, *idle = NULL;

	LIST_FOREACH (c, &l->server->conns, struct http_conn, node) {
		if (c->listener != l)
			continue;
		if (c->evicted)
			return; /* one is on its way out */
		if (!c->req && !c->ws && !idle)
			idle = c;
	}
	if (idle)
		evict(idle);
}

static struct http_conn *find_spare(const struct conn_room *room, bool of_peer, bool crowded)
{
	enum conn_spare last = crowded ? SPARE_CROWDED : SPARE_IDLE;

	for (enum conn_spare i = crowded ? SPARE_CROWDED : SPARE_STRANGER; i <= last; i++) {
		const struct list *head = &room->spares[i];

		if (!list_is_empty(head))
			return of_peer ? LIST_ENTRY(head->next, struct http_conn, peer_spare)
			               : LIST_ENTRY(head->next, struct http_conn, spare);
	}
	return NULL;
}

/*
 * For @c, which is counted already and not yet spare. Return: whether it is within the limits; with
 * @crowded, whether it fits into what is reserved beyond them.
 */
static bool make_room(struct http_conn *c, bool crowded)
{
	const struct http_server_config *config = &c->server->config;
	struct conn_room *const rooms[] = {&c->peer->room, room_of(c)};
	const size_t limits[] = {c->peer->is_local ? config->max_connections_per_local_peer
	                                           : config->max_connections_per_peer,
	                         config->max_connections};

	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		struct http_conn *spare;

		if (rooms[i]->count <= limits[i] + (crowded ? CROWD_RESERVE : 0))
			continue;
		spare = find_spare(rooms[i], i == 0, crowded);
		if (!spare)
			return false;
		evict(spare);
	}
	return true;
}

/* One customer usually has a /64, so its addresses are one peer. */
static int ipv6_key(const struct in6_addr *addr, char *ret_key, size_t size)
{
	struct in6_addr prefix = *addr;
	char text[INET6_ADDRSTRLEN] = "";
	bool single = IN6_IS_ADDR_LOOPBACK(addr);

	if (IN6_IS_ADDR_V4MAPPED(addr)) {
		(void)inet_ntop(AF_INET, &addr->s6_addr[12], text, sizeof(text));
		return str_copy(ret_key, size, text);
	}
	if (!single)
		memset(&prefix.s6_addr[8], 0, 8);
	(void)inet_ntop(AF_INET6, &prefix, text, sizeof(text));
	return str_format(ret_key, size, "%s%s", text, single ? "" : "/64");
}

int conn_peer_key(const struct sockaddr *addr, char *ret_key, size_t size)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (addr->sa_family == AF_INET6)
		return ipv6_key(&((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr,
		                ret_key, size);
	if (addr->sa_family != AF_INET)
		return -EAFNOSUPPORT;
	(void)inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, text,
	                sizeof(text));
	return str_copy(ret_key, size, text);
}

static bool is_loopback(const struct sockaddr *addr)
{
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr;
	const struct in_addr *in = &((const struct sockaddr_in *)(const void *)addr)->sin_addr;

	if (addr->sa_family == AF_INET)
		return ntohl(in->s_addr) >> 24 == IN_LOOPBACKNET;
	return addr->sa_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(in6) ||
	        (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == IN_LOOPBACKNET));
}

/* Its name, and whether it is on this host. */
static int name_peer(struct http_conn *c, struct http_peer *ret_peer)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *addr = info ? info->client_addr : NULL;
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);

	if (!c->listener->is_unix && !addr)
		return -EINVAL;
	ret_peer->is_local = c->listener->is_unix || is_loopback(addr);
	if (!c->listener->is_unix)
		return conn_peer_key(addr, ret_peer->name, sizeof(ret_peer->name));
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	c->uid = cred.uid;
	c->has_uid = true;
	return str_format(ret_peer->name, sizeof(ret_peer->name), "uid:%u", (unsigned)cred.uid);
}

static void format_key(struct http_peer *peer, const char *account)
{
	int len = snprintf(peer->key, sizeof(peer->key), "%s%s%.*s", peer->name, account ? " " : "",
	                   HTTP_ACCOUNT_MAX - 1, account ? account : "");

	assert(len >= 0 && (size_t)len < sizeof(peer->key));
	(void)len;
}

/* Of the server; @wanted has name and key. */
static struct http_peer *peer_take(struct http_server *s, const struct http_peer *wanted)
{
	struct http_peer *peer = map_get(s->peers, wanted->key);

	if (!peer) {
		int r;

		peer = NEW(struct http_peer);
		*peer = *wanted;
		room_init(&peer->room);
		r = map_put(s->peers, peer->key, peer);
		assert(r == 0);
		(void)r;
	}
	peer->count++;
	peer->room.count++;
	return peer;
}

static struct http_peer *peer_of(struct http_conn *c)
{
	struct http_peer wanted = {0};

	/* Peers without an address share one limit. */
	if (name_peer(c, &wanted) < 0)
		wanted.name[0] = '\0';
	format_key(&wanted, NULL);
	return peer_take(c->server, &wanted);
}

static void peer_release(struct http_server *s, struct http_peer *peer)
{
	if (--peer->count > 0)
		return;
	(void)map_remove(s->peers, peer->key);
	free(peer);
}

struct http_conn *conn_opened(struct http_listener *l, struct MHD_Connection *mhd)
{
	struct http_conn *c = NEW(struct http_conn);
	struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = c};
	bool fits;

	c->server = l->server;
	c->listener = l;
	c->mhd = mhd;
	c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	list_init(&c->wait);
	list_init(&c->spare);
	list_init(&c->peer_spare);
	intercept_start(c);
	list_append(&c->server->conns, &c->node);
	c->server->conns_count++;
	l->conns_count++;
	c->peer = peer_of(c);
	room_of(c)->count++;
	c->crowded = !make_room(c, false);
	fits = !c->crowded || make_room(c, true);
	conn_wait(c, c->crowded ? WAIT_CROWD : WAIT_REQUEST);
	/* Unwatched, it would keep its box after a disconnect. */
	if (epoll_ctl(c->server->hangup_fd, EPOLL_CTL_ADD, c->fd, &event) < 0)
		conn_cut(c);
	else if (!fits)
		turn_away(c);
	return c;
}

void conn_closed(struct http_conn *c)
{
	intercept_stop(c);
	loop_cancel(c->server->config.loop, server_refuse_framing, c);
	loop_cancel(c->server->config.loop, server_refuse_crowd, c);
	/* A lingering duplicate of the socket would keep it in the set. */
	(void)epoll_ctl(c->server->hangup_fd, EPOLL_CTL_DEL, c->fd, NULL);
	if (c->unread)
		linger_start(c->server, c->fd);
	leave_waits(c);
	if (!c->evicted) {
		room_of(c)->count--;
		c->peer->room.count--;
	}
	peer_release(c->server, c->peer);
	c->server->conns_count--;
	c->listener->conns_count--;
	list_remove(&c->node);
	/* microhttpd watches its socket again when it runs the next time. */
	if (c->listener->starved)
		listener_run_soon(c->listener);
	c->listener->starved = false;
	listener_check_retired(c->listener);
	server_check_quiet(c->server);
	free(c);
}

static void arm_timer(struct http_server *s, uint64_t at_us, uint64_t now)
{
	/* A timer that fires early checks and sleeps again: never stop it, seldom move it. */
	if (s->timer_at_us && s->timer_at_us <= at_us)
		return;
	s->timer_at_us = at_us;
	timer_start(s->timer, at_us > now ? at_us - now : 0);
}

static uint64_t length_of(const struct http_server_config *config, enum conn_wait wait)
{
	if (wait == WAIT_IDLE)
		return config->idle_timeout_us;
	if (wait == WAIT_REQUEST || config->request_timeout_us < CROWD_TIME_US)
		return config->request_timeout_us;
	return CROWD_TIME_US;
}

static void enter_wait(struct http_conn *c, enum conn_wait wait)
{
	uint64_t now = clock_us();

	list_remove(&c->wait);
	c->deadline_us = now + length_of(&c->server->config, wait);
	list_append(&c->server->waits[wait], &c->wait);
	arm_timer(c->server, c->deadline_us, now);
}

void conn_wait(struct http_conn *c, enum conn_wait wait)
{
	/* One that leaves waits for nothing else. */
	if (c->leaving)
		return;
	enter_wait(c, wait);
	enter_spares(c, wait);
}

void conn_wait_end(struct http_conn *c)
{
	/* Nobody counts one that leaves: nothing may keep it. */
	if (!c->leaving)
		leave_waits(c);
}

void conn_can_answer(struct http_conn *c)
{
	/* microhttpd is on the stack. */
	loop_cancel(c->server->config.loop, server_refuse_crowd, c);
	loop_defer(c->server->config.loop, server_refuse_crowd, c);
}

void conn_set_known(struct http_conn *c, const char *account)
{
	struct http_peer wanted = {0}, *old = c->peer;

	c->known = true;
	leave_spares(c);
	(void)!str_copy(wanted.name, sizeof(wanted.name), old->name); /* as long */
	wanted.is_local = old->is_local;
	format_key(&wanted, account);
	/* A proxy may send requests of several callers over one connection. */
	if (c->evicted || str_equal(wanted.key, old->key))
		return;
	c->peer = peer_take(c->server, &wanted);
	old->room.count--;
	peer_release(c->server, old);
	c->crowded = !make_room(c, false);
}

void conn_cut(struct http_conn *c)
{
	leave_waits(c);
	(void)shutdown(c->fd, SHUT_RDWR); /* fails only if the client closed first */
}

void conn_bad_framing(struct http_conn *c)
{
	/* microhttpd is on the stack. */
	loop_cancel(c->server->config.loop, server_refuse_framing, c);
	loop_defer(c->server->config.loop, server_refuse_framing, c);
}

static void expire(struct http_conn *c, enum conn_wait wait)
{
	if (wait == WAIT_CROWD) {
		turn_away(c);
	} else if (wait == WAIT_LEAVE && server_can_refuse(c)) {
		/* Its client has sent nothing: it reads first. */
		enter_wait(c, WAIT_LEAVE);
		server_refuse_crowd(c);
	} else {
		conn_cut(c);
	}
}

void conn_expire(void *server)
{
	struct http_server *s = server;
	uint64_t now = clock_us();

	s->timer_at_us = 0;
	for (enum conn_wait wait = 0; wait < WAIT_COUNT; wait++) {
		struct http_conn *c;

		while ((c = LIST_FIRST(&s->waits[wait], struct http_conn, wait)) &&
		       c->deadline_us <= now)
			expire(c, wait);
		if (c)
			arm_timer(s, c->deadline_us, now);
	}
}

void conn_suspend(struct http_conn *c)
{
	assert(!c->suspended);
	c->suspended = true;
	MHD_suspend_connection(c->mhd);
}

void conn_resume(struct http_conn *c)
{
	if (!c->suspended)
		return;
	c->suspended = false;
	MHD_resume_connection(c->mhd);
	/* Do not wait for microhttpd's wake-up. */
	listener_run_soon(c->listener);
}

static void handle_hangup(struct http_conn *c)
{
	c->hung_up = true;
	/* Over TLS microhttpd may not report the end. */
	if (c->ws && c->listener->is_tls)
		ws_hung_up(c->ws);
	/* Not suspended: microhttpd reads the EOF itself. */
	if (!c->suspended)
		return;
	request_gone(c->req);
	conn_resume(c);
}

void conn_hangups(void *server, int events)
{
	struct http_server *s = server;
	struct epoll_event ready[64];
	int n;

	(void)events;
	/* Nothing here runs microhttpd, so no connection of the batch is freed. */
	do {
		n = epoll_wait(s->hangup_fd, ready, ARRAY_SIZE(ready), 0);
		for (int i = 0; i < n; i++)
			handle_hangup(ready[i].data.ptr);
	} while (n == ARRAY_SIZE(ready));
}
