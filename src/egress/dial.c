/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fd.h"
#include "egress/address.h"
#include "egress/egress.h"
#include "io/loop.h"
#include "io/timer.h"
#include "io/watch.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/*
 * Theory of operation. A name is resolved once. Each address is checked right before connect(), and
 * connect() gets that address: no name is resolved twice, so an answer that changes leads nowhere
 * else.
 */

/* An address that does not answer leaves time for the next ones. */
#define ADDRESS_US (3 * USEC_PER_SEC)
/* Kernel memory of a connection to a server; not counted for the box. */
#define SOCKET_BYTES (256 * 1024)

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t make_address(const struct in6_addr *a, uint16_t port, union address *ret)
{
	*ret = (union address){.v6 = {.sin6_family = AF_INET6}};
	if (IN6_IS_ADDR_V4MAPPED(a)) {
		ret->v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
		memcpy(&ret->v4.sin_addr, &a->s6_addr[12], sizeof(ret->v4.sin_addr));
		return sizeof(ret->v4);
	}
	ret->v6.sin6_port = htons(port);
	ret->v6.sin6_addr = *a;
	return sizeof(ret->v6);
}

static bool can_bind(const struct in6_addr *a)
{
	union address own;
	socklen_t len = make_address(a, 0, &own);
	cleanup_close int fd = fd_socket(own.any.sa_family, SOCK_DGRAM, 0);

	return fd < 0 || bind(fd, &own.any, len) == 0;
}

/* Packets to an address of this host would come from it. Sends none. */
static bool is_source_of(const struct in6_addr *a)
{
	union address to, own = {.any = {.sa_family = AF_UNSPEC}};
	socklen_t len = make_address(a, 9, &to), own_len = sizeof(own);
	cleanup_close int fd = fd_socket(to.any.sa_family, SOCK_DGRAM, 0);
	struct in6_addr from;

	return fd < 0 ||
	       (connect(fd, &to.any, len) == 0 && getsockname(fd, &own.any, &own_len) == 0 &&
	        address_from(&own.any, &from) == 0 && memcmp(&from, a, sizeof(from)) == 0);
}

/*
 * Of this host. A second address of an interface is not the source of packets to it, but a socket
 * can be bound to it; where the host lets sockets be bound to any address, that tells nothing.
 */
static bool is_own(const struct in6_addr *a)
{
	static const struct in6_addr nobodys = {
		.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 1}};

	return is_source_of(a) || (can_bind(a) && !can_bind(&nobodys));
}

/* Return: the class of an address that must not be reached, or NULL. */
static const char *refusal_of(const struct client *c, const struct in6_addr *a)
{
	const struct rules *rules = c->box->rules;
	uint16_t port = c->target.port;

	if (is_own(a) && !rules_allow_address(rules, a, port, true))
		return address_refusal(a) ? address_refusal(a) : "own";
	return rules_allow_address(rules, a, port, false) ? NULL : address_refusal(a);
}

static void print_address(const struct in6_addr *a, char *ret_text, size_t size)
{
	const bool is_v4 = IN6_IS_ADDR_V4MAPPED(a);

	if (!inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? &a->s6_addr[12] : a->s6_addr, ret_text,
	               (socklen_t)size))
		ret_text[0] = '\0';
}

static void set_reason(struct client *c, enum egress_reason reason, const char *text,
                       const struct in6_addr *a)
{
	char address[INET6_ADDRSTRLEN] = "";

	/* A refusal says more than a later address that cannot be reached. */
	if (c->dial.reason == EGRESS_ADDRESS)
		return;
	c->dial.reason = reason;
	if (a)
		print_address(a, address, sizeof(address));
	(void)snprintf(c->dial.detail, sizeof(c->dial.detail), "%s%s%s", address, a ? ": " : "",
	               text);
}

static void try_next(struct client *c);

static void on_slow(void *ctx)
{
	struct client *c = ctx;

	watch_free(c->dial.watch);
	c->dial.watch = NULL;
	c->dial.fd = fd_close(c->dial.fd);
	set_reason(c, EGRESS_UNREACHABLE, "no answer in time",
	           &c->dial.addresses[c->dial.next - 1]);
	try_next(c);
}

static void on_connected(void *ctx, int events)
{
	struct client *c = ctx;
	int fd = c->dial.fd, error = 0;
	socklen_t len = sizeof(error);

	(void)events;
	timer_stop(c->dial.timer);
	watch_free(c->dial.watch);
	c->dial.watch = NULL;
	c->dial.fd = -1;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0) {
		client_dialed(c, fd);
		return;
	}
	(void)fd_close(fd);
	set_reason(c, EGRESS_UNREACHABLE, strerror(error), &c->dial.addresses[c->dial.next - 1]);
	try_next(c);
}

/* Return: whether the connection is under way. */
static bool connect_to(struct client *c, const struct in6_addr *a)
{
	union address to;
	socklen_t len = make_address(a, c->target.port, &to);
	const char *why = refusal_of(c, a);
	const int one = 1, bytes = SOCKET_BYTES;
	int fd;

	if (why) {
		set_reason(c, EGRESS_ADDRESS, why, a);
		return false;
	}
	fd = fd_socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		set_reason(c, EGRESS_UNREACHABLE, strerror(-fd), a);
		return false;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (connect(fd, &to.any, len) < 0 && errno != EINPROGRESS) {
		set_reason(c, EGRESS_UNREACHABLE, strerror(errno), a);
		(void)fd_close(fd);
		return false;
	}
	c->dial.fd = fd;
	c->dial.watch = watch_new(c->box->egress->loop, fd, on_connected, c);
	watch_set(c->dial.watch, WATCH_WRITE);
	if (c->dial.next < c->dial.count)
		timer_start(c->dial.timer, ADDRESS_US);
	return true;
}

static void try_next(struct client *c)
{
	while (c->dial.next < c->dial.count)
		if (connect_to(c, &c->dial.addresses[c->dial.next++]))
			return;
	client_dialed(c, -1);
}

static void on_resolved(void *ctx, const struct in6_addr *addresses, size_t count,
                        const char *reason)
{
	struct client *c = ctx;

	c->dial.lookup = NULL;
	if (count == 0)
		set_reason(c, EGRESS_UNRESOLVED, reason, NULL);
	memcpy(c->dial.addresses, addresses, count * sizeof(*addresses));
	c->dial.timer = timer_new(c->box->egress->loop, on_slow, c);
	c->dial.count = count;
	try_next(c);
}

void dial_start(struct client *c)
{
	c->dial = (struct dial){.fd = -1};
	if (c->target.is_address) {
		on_resolved(c, &c->target.address, 1, NULL);
		return;
	}
	c->dial.lookup = lookup_start(c->box->egress->resolver, c->target.host, on_resolved, c);
	if (!c->dial.lookup)
		on_resolved(c, c->dial.addresses, 0, "too many lookups are under way");
}

void dial_stop(struct client *c)
{
	lookup_cancel(c->dial.lookup);
	c->dial.lookup = NULL;
	watch_free(c->dial.watch);
	c->dial.watch = NULL;
	timer_free(c->dial.timer);
	c->dial.timer = NULL;
	c->dial.fd = fd_close(c->dial.fd);
}

const char *dial_refusal(const struct client *c)
{
	return c->dial.next > 0 ? refusal_of(c, &c->dial.addresses[c->dial.next - 1]) : NULL;
}
