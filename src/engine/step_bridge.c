/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "bridge/order.h"
#include "engine/netns_pool.h"
#include "engine/step_bridge.h"
#include "netlink/netlink.h"

/*
 * millibox-bridge makes the pair of interfaces, because one end is on the host. The end in the box
 * is configured here: its namespace belongs to the engine, so nothing in the box can change it.
 */

static_assert(ENGINE_RANGES_ALL == BRIDGE_RANGES_ALL && ENGINE_RANGES_NAMED == BRIDGE_RANGES_NAMED,
              "passed through");
/* The daemon looks for the name. */
static_assert(sizeof(ENGINE_INTERFACE BRIDGE_BOX_NAME) == 2 * sizeof(ENGINE_INTERFACE) - 1,
              "the same length");

/* Answers to requests that were given up come first. */
static int receive_reply(int sock, uint32_t seq, struct bridge_reply *ret)
{
	ssize_t n;

	do {
		n = fd_recv(sock, ret, sizeof(*ret), NULL, NULL);
		if (n != sizeof(*ret))
			return n < 0 ? (int)n : -EPIPE;
	} while (ret->seq != seq);
	return 0;
}

static int talk_to_bridge(struct netns_pool *nets, struct bridge_request *request, const int *fds,
                          size_t count, struct bridge_reply *ret)
{
	int r;

	request->seq = ++nets->bridge_seq;
	r = nets->bridge < 0 ? -EPIPE
	                     : fd_send(nets->bridge, request, sizeof(*request), fds, count);
	if (r >= 0)
		r = receive_reply(nets->bridge, request->seq, ret);
	nets->bridge_hangs = r == -EAGAIN;
	return r;
}

/* @reader: where it sends what the box is refused. */
static int ask_bridge(const struct build *b, int reader, struct bridge_reply *ret,
                      struct error *err)
{
	struct bridge_request request = {.op = BRIDGE_CONNECT, .ranges = b->ranges};
	const int fds[] = {b->net, reader};
	int r = talk_to_bridge(b->nets, &request, fds, ARRAY_SIZE(fds), ret);

	/* Its socket stays open: the loop waits for the end of it. */
	if (r == -EPIPE || r == -ECONNRESET)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "millibox-bridge has ended: restart the daemon, or use network "
		                 "mode allowlist");
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "wait for millibox-bridge");
	if (!error_is_set(&ret->error))
		return 0;
	*err = ret->error;
	err->msg[sizeof(err->msg) - 1] = '\0';
	err->field[sizeof(err->field) - 1] = '\0';
	return error_wrap(err, "millibox-bridge");
}

static int add_address(int sock, const struct bridge_reply *reply)
{
	const struct ifaddrmsg address = {
		.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = BRIDGE_BOX_INDEX};
	struct netlink_message m;

	netlink_begin(&m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &address, sizeof(address));
	netlink_add_u32(&m, IFA_LOCAL, reply->address);
	netlink_add_u32(&m, IFA_ADDRESS, reply->gateway);
	return netlink_talk(sock, &m);
}

static int add_default_route(int sock, uint32_t gateway)
{
	const struct rtmsg route = {
		.rtm_family = AF_INET,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_BOOT,
		.rtm_type = RTN_UNICAST,
	};
	struct netlink_message m;

	netlink_begin(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &route, sizeof(route));
	netlink_add_u32(&m, RTA_GATEWAY, gateway);
	netlink_add_u32(&m, RTA_OIF, BRIDGE_BOX_INDEX);
	return netlink_talk(sock, &m);
}

/* In the namespace of the box. */
static int configure(const struct bridge_reply *reply)
{
	cleanup_close int sock = netlink_open(NETLINK_ROUTE);
	int r = sock;

	if (r >= 0)
		netlink_forbid_ipv6(sock, BRIDGE_BOX_INDEX);
	if (r >= 0)
		r = add_address(sock, reply);
	if (r >= 0)
		r = netlink_set_up(sock, BRIDGE_BOX_INDEX);
	return r < 0 ? r : add_default_route(sock, reply->gateway);
}

int step_bridge(struct build *b, struct error *err)
{
	cleanup_close int reader = -1;
	struct bridge_reply reply;
	int pair[2], r = fd_socketpair(SOCK_SEQPACKET, pair);

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "socketpair");
	b->refusals = pair[0];
	reader = pair[1];
	if (ask_bridge(b, reader, &reply, err) < 0)
		return -1;
	b->address = reply.address;
	r = netns_pool_visit(b->net);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "enter the network namespace");
	r = configure(&reply);
	/* The file shows this namespace wherever it is read. */
	if (r >= 0)
		r = b->network = fd_open("/proc/thread-self/net/dev", O_RDONLY, 0);
	netns_pool_return(b->nets);
	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "configure the interface") : 0;
}

int bridge_change(struct build *b, uint32_t ranges)
{
	struct bridge_request request = {
		.op = BRIDGE_CHANGE, .ranges = ranges, .address = b->address};
	struct bridge_reply reply;
	int r;

	/* A change cuts open connections. */
	if (ranges == b->ranges)
		return 0;
	/* A change of policies comes for all boxes at once: wait for a program that hangs once. */
	r = b->nets->bridge_hangs ? -EAGAIN : talk_to_bridge(b->nets, &request, NULL, 0, &reply);

	/* Without the program no interface stays: see boxes_disconnect. */
	if (r == -EPIPE || r == -ECONNRESET || r == -EAGAIN)
		return bridge_disconnect(b);
	if (r >= 0 && error_is_set(&reply.error))
		r = reply.error.sys ? -reply.error.sys : -EPROTO;
	if (r >= 0)
		b->ranges = ranges;
	return r;
}

int bridge_disconnect(struct build *b)
{
	const struct ifinfomsg link = {.ifi_family = AF_UNSPEC, .ifi_index = BRIDGE_BOX_INDEX};
	cleanup_close int sock = -1;
	struct netlink_message m;
	int r = netns_pool_visit(b->net);

	if (r < 0)
		return r;
	sock = netlink_open(NETLINK_ROUTE);
	netns_pool_return(b->nets);
	if (sock < 0)
		return sock;
	netlink_begin(&m, RTM_DELLINK, 0, &link, sizeof(link));
	r = netlink_talk(sock, &m);
	if (r < 0 && r != -ENODEV)
		return r;
	b->address = 0;
	return 0;
}

/* In the child, in the tree of the box; read-only like their source. */
int step_resolver(struct build *b attr_unused, struct error *err)
{
	if (mount(ROOT_RESOLVER "/resolv.conf", "etc/resolv.conf", NULL, MS_BIND, NULL) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "name servers of the box");
	/* An image may lack it. */
	if (mount(ROOT_RESOLVER "/nsswitch.conf", "etc/nsswitch.conf", NULL, MS_BIND, NULL) < 0 &&
	    errno != ENOENT)
		return error_set(err, ERR_BOX_FAILED, errno, "name services of the box");
	return 0;
}
