/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/resolve.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "egress/address.h"
#include "io/loop.h"
#include "io/timer.h"
#include "io/watch.h"
#include <ares.h>
#include <netdb.h>

/* Boxes bound their own connections, and each has one lookup; this bounds those that were left. */
#define LOOKUPS_MAX    4096
#define TIMEOUT_MS     2000 /* of the first try; c-ares doubles it */
#define TRIES          2
#define SOCKETS_MAX    64
#define TICK_US        (250 * USEC_PER_MS)
#define NAME_TIMED_OUT "the name server did not answer"

struct socket {
	struct resolver *resolver;
	ares_socket_t fd;
	struct watch *watch; /* NULL: a free slot */
};

struct resolver {
	struct loop *loop;
	ares_channel channel;
	struct timer *tick; /* runs while lookups are under way */
	struct socket sockets[SOCKETS_MAX];
	size_t lookups;
};

struct lookup {
	struct resolver *resolver;
	lookup_fn *fn; /* NULL: cancelled */
	void *ctx;
	bool is_over; /* deliver() is deferred */
	struct in6_addr addresses[RESOLVE_MAX];
	size_t count;
	const char *reason;
};

static void on_tick(void *ctx)
{
	struct resolver *r = ctx;

	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	if (r->lookups > 0)
		timer_start(r->tick, TICK_US);
}

static void on_ready(void *ctx, int events)
{
	const struct socket *s = ctx;

	ares_process_fd(s->resolver->channel, events & WATCH_READ ? s->fd : ARES_SOCKET_BAD,
	                events & WATCH_WRITE ? s->fd : ARES_SOCKET_BAD);
}

static struct socket *find_socket(struct resolver *r, ares_socket_t fd)
{
	struct socket *unused = NULL;

	for (size_t i = 0; i < SOCKETS_MAX; i++) {
		struct socket *s = &r->sockets[i];

		if (s->watch && s->fd == fd)
			return s;
		if (!s->watch && !unused)
			unused = s;
	}
	return unused;
}

/* c-ares calls this before it closes a socket, with neither direction. A socket without a slot is
 * only seen by its time-out. */
static void on_socket(void *ctx, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = ctx;
	struct socket *s = find_socket(r, fd);

	if (!s)
		return;
	if (!readable && !writable) {
		watch_free(s->watch);
		s->watch = NULL;
		return;
	}
	if (!s->watch) {
		*s = (struct socket){.resolver = r, .fd = fd};
		s->watch = watch_new(r->loop, fd, on_ready, s);
	}
	watch_set(s->watch, (readable ? WATCH_READ : 0) | (writable ? WATCH_WRITE : 0));
}

static void destroy(struct resolver *r)
{
	if (r->channel)
		ares_destroy(r->channel);
	timer_free(r->tick);
	free(r);
}

struct resolver *resolver_new(struct loop *loop, const char *servers, struct error *err)
{
	struct resolver *r = NEW(struct resolver);
	char lookups[] = "fb"; /* /etc/hosts, then DNS */
	/* Without domains of the host to search: a rule for "db" is not one for "db.example.org".
	 */
	struct ares_options options = {
		.timeout = TIMEOUT_MS,
		.tries = TRIES,
		.lookups = lookups,
		.sock_state_cb = on_socket,
		.sock_state_cb_data = r,
	};
	int status;

	r->loop = loop;
	r->tick = timer_new(loop, on_tick, r);
	status = ares_library_init(ARES_LIB_INIT_ALL);
	if (status == ARES_SUCCESS)
		status = ares_init_options(&r->channel, &options,
		                           ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
		                                   ARES_OPT_DOMAINS | ARES_OPT_SOCK_STATE_CB);
	if (status == ARES_SUCCESS && servers)
		status = ares_set_servers_ports_csv(r->channel, servers);
	if (status == ARES_SUCCESS)
		return r;
	error_set(err, ERR_CONFIG, 0, "name servers %s: %s", servers ? servers : "of this host",
	          ares_strerror(status));
	destroy(r);
	return NULL;
}

void resolver_free(struct resolver *r)
{
	if (r)
		destroy(r);
}

static void deliver(void *arg)
{
	struct lookup *l = arg;

	l->resolver->lookups--;
	if (l->fn)
		l->fn(l->ctx, l->addresses, l->count, l->reason);
	free(l);
}

static const char *reason_of(int status)
{
	switch (status) {
	case ARES_ENODATA:
	case ARES_ENOTFOUND:
	case ARES_ENONAME:
		return "the name does not exist";
	case ARES_ETIMEOUT:
	case ARES_ECONNREFUSED:
		return NAME_TIMED_OUT;
	default:
		return ares_strerror(status);
	}
}

/*
 * An IPv4 address in an AAAA record would pass for the answer of an A record. As a compatible
 * address it is refused.
 */
static int take_address(const struct sockaddr *from, struct in6_addr *ret)
{
	int r = address_from(from, ret);

	if (r == 0 && from->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(ret))
		ret->s6_addr[10] = ret->s6_addr[11] = 0;
	return r;
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *found)
{
	struct lookup *l = arg;

	(void)timeouts;
	for (const struct ares_addrinfo_node *node = found ? found->nodes : NULL;
	     node && l->count < RESOLVE_MAX; node = node->ai_next)
		if (take_address(node->ai_addr, &l->addresses[l->count]) == 0)
			l->count++;
	l->reason = l->count > 0 ? NULL : reason_of(status == ARES_SUCCESS ? ARES_ENODATA : status);
	ares_freeaddrinfo(found);
	if (status == ARES_EDESTRUCTION) {
		free(l);
		return;
	}
	l->is_over = true;
	loop_defer(l->resolver->loop, deliver, l);
}

struct lookup *lookup_start(struct resolver *r, const char *name, lookup_fn *fn, void *ctx)
{
	/* ARES_AI_NOSORT: sorting would connect sockets to every address. */
	const struct ares_addrinfo_hints hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = ARES_AI_NOSORT,
	};
	struct lookup *l = r->lookups < LOOKUPS_MAX ? calloc(1, sizeof(*l)) : NULL;

	if (!l)
		return NULL;
	if (r->lookups++ == 0)
		timer_start(r->tick, TICK_US);
	*l = (struct lookup){.resolver = r, .fn = fn, .ctx = ctx};
	ares_getaddrinfo(r->channel, name, NULL, &hints, on_answer, l);
	return l;
}

void lookup_cancel(struct lookup *l)
{
	if (l)
		l->fn = NULL;
}
