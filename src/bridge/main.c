/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "bridge/bridge.h"
#include "bridge/order.h"
#include "netlink/netlink.h"

/*
 * millibox-bridge connects boxes to the host's network. It is the only program that keeps a
 * privilege on the host: CAP_NET_ADMIN. The engine starts it, before it gives up its own
 * privileges, and sends its requests (order.h). Phases of the start:
 *
 *   lock      another program of this kind in the same network namespace is an error
 *   sweep     what a killed one left
 *   check     forwarding is on, the subnet is free
 *   install   rules before the first interface
 *   confine
 *   serve     until the engine closes its end
 *
 * If other programs remove or change the rules ("nft flush ruleset"), all interfaces go, and this
 * program ends: boxes without rules could reach the host.
 */

#define RULESET_MAX 65536
#define EVENTS_MAX  64
#define FORWARDING  "/proc/sys/net/ipv4/ip_forward"

/* Values of epoll; below them are numbers of boxes. */
enum watch {
	WATCH_ENGINE = 1 << 16,
	WATCH_RULES,
	WATCH_LINKS,
	WATCH_REFUSALS,
};

struct bridge {
	struct bridge_options options;
	int engine; /* BRIDGE_SOCKET_FD */
	int routes; /* NETLINK_ROUTE */
	int lock;
	int watch;    /* changes of rules */
	int links;    /* changes of interfaces */
	int refusals; /* what the rules refused */
	int epoll;
	int *readers;     /* by number of a box: the socket for its refusals, owned; -1: none */
	uint64_t rules;   /* fingerprint of ours */
	struct stat home; /* the user namespace of the host */
	uint32_t next;    /* number to try for the next box */
	bool is_again;    /* all numbers were used */
};

static int usage(FILE *to)
{
	(void)fprintf(to, "usage: millibox-bridge --subnet RANGE [--allow RANGE]... "
	                  "[--resolver ADDRESS]... [--log-level L] [--log-format F]\n"
	                  "Connects boxes to the host's network. Started by millibox-engine.\n"
	                  "  --subnet X\taddresses of boxes\n"
	                  "  --allow X\taddresses that are not public and that boxes may reach\n"
	                  "  --resolver X\tname server that boxes may ask\n"
	                  "  --help\tthis text\n");
	return to == stdout ? 0 : 2;
}

static int add_range(const char *text, struct cidr *list, size_t *count,
                     int (*parse)(const char *text, struct cidr *ret, struct error *err),
                     struct error *err)
{
	if (*count == BRIDGE_RANGES_MAX)
		return error_set(err, ERR_CONFIG, 0, "more than %d ranges", BRIDGE_RANGES_MAX);
	if (parse(text, &list[*count], err) < 0)
		return -1;
	++*count;
	return 0;
}

static int store_option(struct bridge_options *o, int c, const char *text, struct error *err)
{
	if (c == 's')
		return bridge_parse_subnet(text, &o->subnet, err);
	if (c == 'a')
		return add_range(text, o->allow, &o->allow_count, bridge_parse_range, err);
	return add_range(text, o->resolvers, &o->resolver_count, bridge_parse_resolver, err);
}

/* Return: an exit status, or -1 to continue; a range that is wrong is in *err. */
static int parse_options(int argc, char **argv, struct bridge_options *ret, struct error *err)
{
	static const struct option options[] = {
		{"subnet", required_argument, NULL, 's'},
		{"allow", required_argument, NULL, 'a'},
		{"resolver", required_argument, NULL, 'r'},
		{"log-level", required_argument, NULL, 'l'},
		{"log-format", required_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int level = LOG_LEVEL_INFO, format = LOG_FORMAT_TEXT, c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'l')
			level = log_level_parse(optarg);
		else if (c == 'f')
			format = log_format_parse(optarg);
		else if (c == 'h' || c == '?')
			return usage(c == 'h' ? stdout : stderr);
		else if (!error_is_set(err))
			(void)!store_option(ret, c, optarg, err);
	}
	if (optind < argc || level < 0 || format < 0 ||
	    (ret->subnet.bits == 0 && !error_is_set(err)))
		return usage(stderr);
	log_setup("millibox-bridge", (enum log_level)level, (enum log_format)format);
	return -1;
}

static int take_lock(struct bridge *b, struct error *err)
{
	/* Else the kernel's answer would look like that of a lock. */
	if (!bridge_is_capable())
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "CAP_NET_ADMIN is missing: add it to CapabilityBoundingSet= of "
		                 "the service, or to the container");
	b->lock = table_lock();
	if (b->lock == -EPERM || b->lock == -EEXIST || b->lock == -EBUSY)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "another daemon has the bridge of this network namespace");
	return b->lock < 0 ? error_set(err, ERR_UNAVAILABLE, -b->lock, "nftables") : 0;
}

static int check_forwarding(struct error *err)
{
	uint64_t on = 0;
	int r = file_read_u64_at(AT_FDCWD, FORWARDING, &on);

	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, FORWARDING);
	return on ? 0
	          : error_set(err, ERR_UNAVAILABLE, 0,
	                      "the host does not forward packets: run sysctl -w "
	                      "net.ipv4.ip_forward=1, or use network mode allowlist");
}

static int open_sockets(struct bridge *b, struct error *err)
{
	b->routes = netlink_open(NETLINK_ROUTE);
	if (b->routes < 0)
		return error_set(err, ERR_SYSTEM, -b->routes, "netlink socket");
	if (take_lock(b, err) < 0)
		return -1;
	b->watch = table_watch();
	if (b->watch < 0)
		return error_set(err, ERR_SYSTEM, -b->watch, "watch the rules of the host");
	b->links = link_watch();
	if (b->links < 0)
		return error_set(err, ERR_SYSTEM, -b->links, "watch the interfaces of the host");
	b->refusals = refusal_open();
	if (b->refusals < 0)
		return error_set(err, ERR_UNAVAILABLE, -b->refusals,
		                 b->refusals == -EBUSY
		                         ? "another program reads group %d of NFLOG"
		                         : "group %d of NFLOG: the kernel needs nfnetlink_log",
		                 BRIDGE_NOTED_GROUP);
	return stat("/proc/self/ns/user", &b->home) < 0
	               ? error_set(err, ERR_SYSTEM, errno, "/proc/self/ns/user")
	               : 0;
}

/* Interrupted if other rules of the host change meanwhile. */
static int read_rules(const struct bridge *b, uint64_t *ret)
{
	int r = -EAGAIN;

	for (int i = 0; i < 8 && (r == -EAGAIN || r == -EBUSY); i++)
		r = table_fingerprint(b->lock, ret);
	return r;
}

static int install(struct bridge *b, struct error *err)
{
	cleanup_buf struct buf ruleset = BUF_INIT(RULESET_MAX);
	int r = link_sweep(b->routes);

	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "remove what an earlier daemon left");
	if (check_forwarding(err) < 0 || link_check_subnet(b->routes, &b->options.subnet, err) < 0)
		return -1;
	r = ruleset_write(&b->options, &ruleset);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "write the rules");
	if (table_install(&ruleset, err) < 0)
		return -1;
	r = link_reserve(b->routes, &b->options.subnet);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "reserve the subnet");
	r = read_rules(b, &b->rules);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "read the rules");
	r = conntrack_forget(b->lock, bridge_v4(&b->options.subnet),
	                     bridge_v4_bits(&b->options.subnet));
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r,
	                         "connections of the host: the kernel needs nf_conntrack_netlink")
	             : 0;
}

static void remove_all(struct bridge *b)
{
	link_remove_all(b->routes);
	if (b->lock >= 0)
		table_remove(b->lock);
}

/* The engine's boxes have a user namespace of their own; nothing else is connected. */
static int check_namespace(const struct bridge *b, int net)
{
	cleanup_close int user = -1;
	struct stat owner;

	if (ioctl(net, NS_GET_NSTYPE) != CLONE_NEWNET)
		return -EINVAL;
	user = ioctl(net, NS_GET_USERNS); /* close-on-exec */
	if (user < 0 || fstat(user, &owner) < 0)
		return -errno;
	return owner.st_ino == b->home.st_ino ? -EPERM : 0;
}

static void close_reader(struct bridge *b, uint32_t number)
{
	if (number < bridge_boxes_max(&b->options.subnet))
		b->readers[number] = fd_close(b->readers[number]);
}

/* If its reader is slow, the box's own refusals are lost. */
static void pass_on(const struct bridge *b, uint32_t number, const struct bridge_refusal *refusal)
{
	if (b->readers[number] >= 0)
		(void)!send(b->readers[number], refusal, sizeof(*refusal),
		            MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void pass_refusals(const struct bridge *b)
{
	struct bridge_refusal refusal;
	uint32_t source = 0, number = 0;
	int r;

	while ((r = refusal_read(b->refusals, &b->options.subnet, &source, &refusal)) >= 0)
		if (r > 0 && link_number(&b->options.subnet, source, &number) == 0)
			pass_on(b, number, &refusal);
}

/* A question of the daemon; what it says does not matter. */
static void answer_reader(struct bridge *b, uint32_t number)
{
	static const struct bridge_refusal all = {.why = BRIDGE_NOTED_ALL};
	char question;
	ssize_t n = b->readers[number] < 0
	                    ? -1
	                    : recv(b->readers[number], &question, sizeof(question), MSG_DONTWAIT);

	if (n < 0)
		return;
	if (n == 0) {
		close_reader(b, number);
		return;
	}
	pass_refusals(b);
	pass_on(b, number, &all);
}

/* Frees the host's table of connections at once. */
static void forget_ended(struct bridge *b)
{
	uint32_t number = 0;
	int r;

	/* Theirs, and not of the next box with the number. */
	pass_refusals(b);
	while ((r = link_read_ended(b->links, &number)) >= 0)
		if (r > 0) {
			close_reader(b, number);
			(void)!conntrack_forget(b->lock, link_address(&b->options.subnet, number),
			                        32);
		}
}

static int watch(const struct bridge *b, int fd, uint64_t value)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = value};

	return epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int add_reader(struct bridge *b, uint32_t number, int sock)
{
	int r = watch(b, sock, number);

	if (r < 0)
		return r;
	close_reader(b, number);
	b->readers[number] = sock;
	return 0;
}

/* A number is used again only after all others. @fds: the namespace, the reader of refusals, which
 * is taken. */
static int connect_box(struct bridge *b, int fds[2], uint32_t ranges, struct bridge_reply *reply)
{
	struct link_box box = {.net = fds[0], .ranges = ranges};
	uint32_t most = bridge_boxes_max(&b->options.subnet);
	int r = ranges & ~BRIDGE_RANGES_MASK ? -EINVAL : check_namespace(b, fds[0]);

	if (r < 0)
		return r;
	forget_ended(b); /* before a number of theirs is used again */
	r = -EEXIST;
	for (uint32_t i = 0; i < most && r == -EEXIST; i++) {
		box.number = b->next;
		box.netfilter = b->is_again ? b->lock : -1;
		b->next = (b->next + 1) % most;
		r = link_add(b->routes, &b->options, &box);
		b->is_again = b->is_again || b->next == 0;
	}
	reply->address = htonl(link_address(&b->options.subnet, box.number));
	reply->gateway = htonl(bridge_v4(&b->options.subnet) + 1);
	/* The engine drops the namespace of a box that fails, and the pair with it. */
	if (r >= 0)
		r = add_reader(b, box.number, fds[1]);
	if (r >= 0)
		fds[1] = -1;
	return r;
}

static int change_box(const struct bridge *b, const struct bridge_request *request)
{
	uint32_t number = 0;
	int r = request->ranges & ~BRIDGE_RANGES_MASK
	                ? -EINVAL
	                : link_number(&b->options.subnet, ntohl(request->address), &number);

	if (r >= 0)
		r = link_change(b->routes, number, request->ranges);
	/* Else what comes in on an open connection would still be accepted. */
	return r < 0 ? r : conntrack_forget(b->lock, link_address(&b->options.subnet, number), 32);
}

/* Return: false: the engine is gone. */
static bool serve_request(struct bridge *b)
{
	struct bridge_request request = {0};
	struct bridge_reply reply;
	int fds[FD_PASS_MAX];
	size_t count = 0;
	ssize_t n = fd_recv(b->engine, &request, sizeof(request), fds, &count);
	int r = -EPROTO;

	memset(&reply, 0, sizeof(reply));
	reply.seq = request.seq;
	if (n == sizeof(request) && request.seq != 0 && request.op == BRIDGE_CONNECT && count == 2)
		r = connect_box(b, fds, request.ranges, &reply);
	if (n == sizeof(request) && request.seq != 0 && request.op == BRIDGE_CHANGE && count == 0)
		r = change_box(b, &request);
	for (size_t i = 0; i < count; i++)
		(void)fd_close(fds[i]);
	if (n == -EINTR)
		return true;
	if (n <= 0)
		return false;
	if (r < 0)
		(void)error_set(&reply.error, ERR_BOX_FAILED, -r, "%s the box",
		                request.op == BRIDGE_CHANGE ? "change the ranges of" : "connect");
	return fd_send(b->engine, &reply, sizeof(reply), NULL, 0) >= 0;
}

/* Return: whether ours are still as they were. Messages of other changes are dropped unread. */
static bool check_rules(struct bridge *b)
{
	char message[4096];
	uint64_t now = 0;
	int r;

	while (recv(b->watch, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC) > 0)
		;
	r = read_rules(b, &now);
	/* What interrupted it has a message of its own. */
	if (r == -EAGAIN || r == -EBUSY || (r >= 0 && now == b->rules))
		return true;
	log_err("another program removed or changed the rules of boxes' network: disconnecting "
	        "all boxes with network bridge until a restart");
	return false;
}

/* Return: whether to go on. */
static bool serve_event(struct bridge *b, uint64_t value)
{
	if (value == WATCH_ENGINE)
		return serve_request(b);
	if (value == WATCH_RULES)
		return check_rules(b);
	if (value == WATCH_LINKS)
		forget_ended(b);
	else if (value == WATCH_REFUSALS)
		pass_refusals(b);
	else
		answer_reader(b, (uint32_t)value);
	return true;
}

/* Rules first: a box must not be connected while they are wrong. */
static bool serve_events(struct bridge *b, const struct epoll_event *events, int count)
{
	bool go_on = true;

	for (int i = 0; i < count && go_on; i++)
		if (events[i].data.u64 == WATCH_RULES)
			go_on = serve_event(b, WATCH_RULES);
	for (int i = 0; i < count && go_on; i++)
		if (events[i].data.u64 != WATCH_RULES)
			go_on = serve_event(b, events[i].data.u64);
	return go_on;
}

static void serve(struct bridge *b)
{
	struct epoll_event events[EVENTS_MAX];
	bool go_on = true;

	while (go_on) {
		int n = epoll_wait(b->epoll, events, EVENTS_MAX, -1);

		go_on = n < 0 ? errno == EINTR : serve_events(b, events, n);
	}
}

static int watch_all(struct bridge *b, struct error *err)
{
	uint32_t most = bridge_boxes_max(&b->options.subnet);
	int r = b->epoll = fd_epoll();

	b->readers = xcalloc(most, sizeof(*b->readers));
	for (uint32_t i = 0; i < most; i++)
		b->readers[i] = -1;
	if (r >= 0)
		r = watch(b, b->engine, WATCH_ENGINE);
	if (r >= 0)
		r = watch(b, b->watch, WATCH_RULES);
	if (r >= 0)
		r = watch(b, b->links, WATCH_LINKS);
	if (r >= 0)
		r = watch(b, b->refusals, WATCH_REFUSALS);
	return r < 0 ? error_set(err, ERR_SYSTEM, -r, "event loop") : 0;
}

static void report(const struct error *err)
{
	struct bridge_reply reply;

	memset(&reply, 0, sizeof(reply));
	reply.error = *err;
	(void)!fd_send(BRIDGE_SOCKET_FD, &reply, sizeof(reply), NULL, 0);
}

int main(int argc, char **argv)
{
	struct bridge b = {.engine = BRIDGE_SOCKET_FD,
	                   .routes = -1,
	                   .lock = -1,
	                   .watch = -1,
	                   .links = -1,
	                   .refusals = -1,
	                   .epoll = -1};
	struct error err = {0};
	int status = parse_options(argc, argv, &b.options, &err);

	if (status >= 0)
		return status;
	(void)signal(SIGPIPE, SIG_IGN);
	if (error_is_set(&err) || open_sockets(&b, &err) < 0) {
		report(&err);
		return 1;
	}
	if (install(&b, &err) < 0 || watch_all(&b, &err) < 0 || bridge_confine(&err) < 0) {
		remove_all(&b);
		report(&err);
		return 1;
	}
	report(&err);
	serve(&b);
	remove_all(&b);
	free(b.readers);
	return 0;
}
