/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bridge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/str.h"
#include "bridge/order.h"
#include "netlink/netlink.h"

/*
 * One pair of interfaces for each box, no bridge device: packets between boxes cannot exist below
 * IP, and the route of a box says which interface its address belongs to. The host's ends all have
 * the gateway's address.
 */

#define NUMBERS_BEFORE 2          /* the network, the gateway */
#define NUMBERS_MAX    65536      /* of the largest subnet */
#define LISTS_MAX      64         /* tries of a list that other changes interrupt */
#define INDEX_FIRST    0x6d620000 /* of the host's ends; far above those of other interfaces */

static uint32_t gateway_of(const struct cidr *subnet)
{
	return htonl(bridge_v4(subnet) + 1);
}

uint32_t link_address(const struct cidr *subnet, uint32_t number)
{
	return bridge_v4(subnet) + NUMBERS_BEFORE + number;
}

int link_number(const struct cidr *subnet, uint32_t address, uint32_t *ret)
{
	uint32_t first = link_address(subnet, 0);

	if (address < first || address - first >= bridge_boxes_max(subnet))
		return -ERANGE;
	*ret = address - first;
	return 0;
}

static void name_of(uint32_t number, char ret_name[IFNAMSIZ])
{
	(void)!str_format(ret_name, IFNAMSIZ, BRIDGE_PREFIX "%u", number); /* fits: five digits */
}

static void add_peer(struct netlink_message *m, int net)
{
	const struct ifinfomsg peer = {.ifi_index = BRIDGE_BOX_INDEX};
	size_t info = netlink_nest(m, IFLA_LINKINFO, NULL, 0), data, end;

	netlink_add_text(m, IFLA_INFO_KIND, "veth");
	data = netlink_nest(m, IFLA_INFO_DATA, NULL, 0);
	end = netlink_nest(m, VETH_INFO_PEER, &peer, sizeof(peer));
	netlink_add_text(m, IFLA_IFNAME, BRIDGE_BOX_NAME);
	netlink_add_u32(m, IFLA_NET_NS_FD, (uint32_t)net);
	netlink_unnest(m, end);
	netlink_unnest(m, data);
	netlink_unnest(m, info);
}

/* The kernel accepts a number for the box's end only with one for this end. */
static int make_pair(int sock, const char *name, int index, const struct link_box *box)
{
	const struct ifinfomsg own = {.ifi_family = AF_UNSPEC, .ifi_index = index};
	struct netlink_message m;

	netlink_begin(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &own, sizeof(own));
	netlink_add_text(&m, IFLA_IFNAME, name);
	netlink_add_u32(&m, IFLA_GROUP, BRIDGE_GROUP | box->ranges);
	add_peer(&m, box->net);
	return netlink_talk(sock, &m);
}

/* The kernel adds the route to the peer. */
static int add_address(int sock, int index, uint32_t own, uint32_t peer)
{
	const struct ifaddrmsg address = {
		.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = (uint32_t)index};
	struct netlink_message m;

	netlink_begin(&m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &address, sizeof(address));
	netlink_add_u32(&m, IFA_LOCAL, own);
	netlink_add_u32(&m, IFA_ADDRESS, peer);
	return netlink_talk(sock, &m);
}

static bool exists(int sock, const char *name)
{
	const struct ifinfomsg any = {.ifi_family = AF_UNSPEC};
	struct netlink_message m;

	netlink_begin(&m, RTM_GETLINK, 0, &any, sizeof(any));
	netlink_add_text(&m, IFLA_IFNAME, name);
	return netlink_talk(sock, &m) >= 0;
}

static void remove_pair(int sock, const char *name)
{
	const struct ifinfomsg own = {.ifi_family = AF_UNSPEC};
	struct netlink_message m;

	netlink_begin(&m, RTM_DELLINK, 0, &own, sizeof(own));
	netlink_add_text(&m, IFLA_IFNAME, name);
	(void)!netlink_talk(sock, &m);
}

int link_add(int sock, const struct bridge_options *options, const struct link_box *box)
{
	const struct cidr *subnet = &options->subnet;
	int index = INDEX_FIRST + (int)box->number, r;
	char name[IFNAMSIZ];

	name_of(box->number, name);
	/* The kernel would make the box's end first and needs milliseconds to remove it. */
	r = exists(sock, name) ? -EEXIST : make_pair(sock, name, index, box);
	if (r < 0)
		return r;
	netlink_forbid_ipv6(sock, index);
	/* The number is ours now, and no route leads to it: late answers to an ended box reach no
	 * new one. The event of its end may have been lost. */
	if (box->netfilter >= 0)
		r = conntrack_forget(box->netfilter, link_address(subnet, box->number), 32);
	if (r >= 0)
		r = add_address(sock, index, gateway_of(subnet),
		                htonl(link_address(subnet, box->number)));
	if (r >= 0)
		r = netlink_set_up(sock, index);
	if (r < 0)
		remove_pair(sock, name);
	return r;
}

int link_change(int sock, uint32_t number, uint32_t ranges)
{
	const struct ifinfomsg own = {.ifi_family = AF_UNSPEC,
	                              .ifi_index = INDEX_FIRST + (int)number};
	struct netlink_message m;

	netlink_begin(&m, RTM_SETLINK, 0, &own, sizeof(own));
	netlink_add_u32(&m, IFLA_GROUP, BRIDGE_GROUP | ranges);
	return netlink_talk(sock, &m);
}

static int remove_group(int sock, uint32_t group)
{
	const struct ifinfomsg all = {.ifi_family = AF_UNSPEC};
	struct netlink_message m;
	int r;

	netlink_begin(&m, RTM_DELLINK, 0, &all, sizeof(all));
	netlink_add_u32(&m, IFLA_GROUP, group);
	r = netlink_talk(sock, &m);
	return r == -ENODEV ? 0 : r;
}

struct found {
	uint32_t group;
	bool is_found;
};

static int find_group(void *ctx, const struct nlmsghdr *head)
{
	struct found *f = ctx;
	const uint32_t *group =
		netlink_find(head, sizeof(struct ifinfomsg), IFLA_GROUP, sizeof(*group));

	if (head->nlmsg_type == RTM_NEWLINK && group && BRIDGE_IS_GROUP(*group))
		*f = (struct found){.group = *group, .is_found = true};
	return 0;
}

/* One list for each group in use, and one that finds none. */
static int remove_groups(int sock)
{
	/* Most boxes are of this one. */
	int r = remove_group(sock, BRIDGE_GROUP | BRIDGE_RANGES_ALL);
	struct found f = {.is_found = true};

	for (int tries = 0; r >= 0 && f.is_found;) {
		const struct ifinfomsg all = {.ifi_family = AF_UNSPEC};
		struct netlink_message m;

		f.is_found = false;
		netlink_begin(&m, RTM_GETLINK, 0, &all, sizeof(all));
		r = netlink_list(sock, &m, find_group, &f);
		/* Interrupted if other interfaces change meanwhile. */
		if (r == -EAGAIN && ++tries < LISTS_MAX) {
			f.is_found = true;
			r = 0;
		} else if (r >= 0 && f.is_found) {
			r = remove_group(sock, f.group);
		}
	}
	return r;
}

static void write_route(struct netlink_message *m, uint16_t type, uint16_t flags, uint32_t base,
                        unsigned bits)
{
	const struct rtmsg route = {
		.rtm_family = AF_INET,
		.rtm_dst_len = (uint8_t)bits,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = BRIDGE_PROTO,
		.rtm_type = RTN_BLACKHOLE,
	};

	netlink_begin(m, type, flags, &route, sizeof(route));
	netlink_add_u32(m, RTA_DST, htonl(base));
}

int link_reserve(int sock, const struct cidr *subnet)
{
	struct netlink_message m;

	write_route(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, bridge_v4(subnet),
	            bridge_v4_bits(subnet));
	return netlink_talk(sock, &m);
}

/* One route of the host. */
struct route {
	uint32_t base;
	unsigned bits;
	bool is_ours, is_default;
};

static int read_route(const struct nlmsghdr *head, struct route *ret)
{
	const struct rtmsg *route = NLMSG_DATA(head);
	const uint32_t *to;

	if (head->nlmsg_type != RTM_NEWROUTE || head->nlmsg_len < NLMSG_LENGTH(sizeof(*route)))
		return -EPROTO;
	to = netlink_find(head, sizeof(*route), RTA_DST, sizeof(*to));
	*ret = (struct route){
		.base = to ? ntohl(*to) : 0,
		.bits = route->rtm_dst_len,
		.is_ours = route->rtm_protocol == BRIDGE_PROTO,
		.is_default = route->rtm_dst_len == 0,
	};
	return ret->bits > 32 ? -EPROTO : 0;
}

static int list_routes(int sock, netlink_visit visit, void *ctx)
{
	const struct rtmsg all = {.rtm_family = AF_INET};
	struct netlink_message m;
	int r;

	/* Interrupted if the host's routes change meanwhile. */
	for (int i = 0; i < 8; i++) {
		netlink_begin(&m, RTM_GETROUTE, 0, &all, sizeof(all));
		r = netlink_list(sock, &m, visit, ctx);
		if (r != -EAGAIN)
			break;
	}
	return r;
}

#define SWEEP_MAX 16

struct swept {
	struct route routes[SWEEP_MAX];
	size_t count;
};

static int find_ours(void *ctx, const struct nlmsghdr *head)
{
	struct swept *s = ctx;
	struct route route;
	int r = read_route(head, &route);

	if (r >= 0 && route.is_ours && s->count < SWEEP_MAX)
		s->routes[s->count++] = route;
	return r;
}

static int remove_routes(int sock)
{
	struct swept s = {.count = 0};
	int r = list_routes(sock, find_ours, &s);

	for (size_t i = 0; i < s.count && r >= 0; i++) {
		struct netlink_message m;

		write_route(&m, RTM_DELROUTE, 0, s.routes[i].base, s.routes[i].bits);
		r = netlink_talk(sock, &m);
	}
	return r;
}

int link_sweep(int sock)
{
	int r = remove_groups(sock);

	return r < 0 ? r : remove_routes(sock);
}

void link_remove_all(int sock)
{
	/* Interfaces first: while one exists, its rules must. */
	(void)!remove_groups(sock);
	(void)!remove_routes(sock);
}

int link_watch(void)
{
	cleanup_close int sock = netlink_open(NETLINK_ROUTE);
	const struct sockaddr_nl own = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};

	if (sock < 0)
		return sock;
	return bind(sock, (const struct sockaddr *)&own, sizeof(own)) < 0 ? -errno : TAKE_FD(sock);
}

int link_read_ended(int watch, uint32_t *ret_number)
{
	union {
		struct nlmsghdr head;
		char bytes[8192];
	} event;
	const struct ifinfomsg *link = NLMSG_DATA(&event.head);
	ssize_t n = recv(watch, &event, sizeof(event), MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(*link)) || event.head.nlmsg_type != RTM_DELLINK ||
	    link->ifi_family != AF_UNSPEC || link->ifi_index < INDEX_FIRST ||
	    link->ifi_index >= INDEX_FIRST + NUMBERS_MAX)
		return 0;
	*ret_number = (uint32_t)(link->ifi_index - INDEX_FIRST);
	return 1;
}

struct collision {
	uint32_t base;
	unsigned bits;
	struct route found;
	bool is_found;
};

static bool overlap(const struct collision *c, const struct route *route)
{
	unsigned bits = c->bits < route->bits ? c->bits : route->bits;

	return ((c->base ^ route->base) & ~(UINT32_MAX >> bits)) == 0;
}

static int find_collision(void *ctx, const struct nlmsghdr *head)
{
	struct collision *c = ctx;
	struct route route;
	int r = read_route(head, &route);

	if (r >= 0 && !route.is_default && !c->is_found && overlap(c, &route)) {
		c->found = route;
		c->is_found = true;
	}
	return r;
}

int link_check_subnet(int sock, const struct cidr *subnet, struct error *err)
{
	struct collision c = {.base = bridge_v4(subnet), .bits = bridge_v4_bits(subnet)};
	int r = list_routes(sock, find_collision, &c);
	uint32_t a = c.found.base;

	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "list the routes of the host");
	if (!c.is_found)
		return 0;
	return error_set(err, ERR_CONFIG, 0,
	                 "the host has a route to %u.%u.%u.%u/%u, which is part of the subnet for "
	                 "boxes: choose another one (bridge.subnet)",
	                 a >> 24, a >> 16 & 0xff, a >> 8 & 0xff, a & 0xff, c.found.bits);
}
