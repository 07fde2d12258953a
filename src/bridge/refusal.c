/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bridge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "bridge/order.h"
#include "netlink/netlink.h"

/*
 * The rules report what they refuse to a group of NFLOG before they answer the box, so a program
 * that has seen the refusal is in the queue. The source proves the box: from_box of ruleset.c has
 * dropped all others.
 */

#define QUEUE_BYTES   (2 << 20)
#define MESSAGE_BYTES 512 /* of the kernel's buffers; else it takes a page for each */
#define PACKET_BYTES  64  /* the longest header of IPv4, and ports */
#define IPV4_LEAST    20
#define PORTS_BYTES   4

static void begin(struct netlink_message *m)
{
	const struct nfgenmsg group = {.nfgen_family = AF_UNSPEC,
	                               .version = NFNETLINK_V0,
	                               .res_id = htons(BRIDGE_NOTED_GROUP)};

	netlink_begin(m, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG, 0, &group, sizeof(group));
}

static int bind_group(int sock)
{
	const struct nfulnl_msg_config_cmd cmd = {.command = NFULNL_CFG_CMD_BIND};
	struct netlink_message m;

	begin(&m);
	netlink_add(&m, NFULA_CFG_CMD, &cmd, sizeof(cmd));
	return netlink_talk(sock, &m);
}

/* Each report at once, not several together. */
static int configure(int sock)
{
	const struct nfulnl_msg_config_mode mode = {.copy_range = htonl(PACKET_BYTES),
	                                            .copy_mode = NFULNL_COPY_PACKET};
	struct netlink_message m;

	begin(&m);
	netlink_add(&m, NFULA_CFG_MODE, &mode, sizeof(mode));
	netlink_add_u32(&m, NFULA_CFG_NLBUFSIZ, htonl(MESSAGE_BYTES));
	netlink_add_u32(&m, NFULA_CFG_QTHRESH, htonl(1));
	return netlink_talk(sock, &m);
}

int refusal_open(void)
{
	cleanup_close int sock = netlink_open(NETLINK_NETFILTER);
	const int bytes = QUEUE_BYTES;
	int r = sock;

	if (r >= 0 && setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		r = -errno;
	if (r >= 0)
		r = bind_group(sock);
	if (r >= 0)
		r = configure(sock);
	return r < 0 ? r : TAKE_FD(sock);
}

static uint32_t read_u32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

int refusal_parse(const uint8_t *packet, size_t len, bool to_host, const struct cidr *subnet,
                  uint32_t *ret_source, struct bridge_refusal *ret)
{
	size_t head = len >= IPV4_LEAST ? (packet[0] & 0xfU) * 4U : 0;
	uint32_t to, other;

	if (head < IPV4_LEAST || packet[0] >> 4 != 4 || len < head + PORTS_BYTES)
		return -EPROTO;
	/* The ports are in the first fragment only. */
	if ((packet[9] != IPPROTO_TCP && packet[9] != IPPROTO_UDP) || (packet[6] & 0x1f) != 0 ||
	    packet[7] != 0)
		return -EPROTO;
	to = read_u32(packet + 16);
	other = (to ^ bridge_v4(subnet)) >> (32 - bridge_v4_bits(subnet));
	*ret_source = read_u32(packet + 12);
	*ret = (struct bridge_refusal){
		.address = htonl(to),
		.port = (uint16_t)(packet[head + 2] << 8 | packet[head + 3]),
		.from = (uint16_t)(packet[head] << 8 | packet[head + 1]),
		.is_udp = packet[9] == IPPROTO_UDP,
		.why = BRIDGE_NOTED_ADDRESS,
	};
	if (to_host)
		ret->why = BRIDGE_NOTED_HOST;
	else if (other == 0)
		ret->why = BRIDGE_NOTED_BOX;
	return 0;
}

int refusal_read(int sock, const struct cidr *subnet, uint32_t *ret_source,
                 struct bridge_refusal *ret)
{
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} m;
	const size_t body = sizeof(struct nfgenmsg);
	struct sockaddr_nl from = {0};
	socklen_t from_len = sizeof(from);
	ssize_t n =
		recvfrom(sock, &m, sizeof(m), MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);
	const struct nfulnl_msg_packet_hdr *about;
	const struct nlattr *attr;
	const uint8_t *packet;

	if (n < 0)
		return errno == ENOBUFS || errno == EINTR ? 0 : -errno;
	if (from.nl_pid != 0 || n < (ssize_t)sizeof(m.head) || m.head.nlmsg_len > (size_t)n ||
	    m.head.nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET))
		return 0;
	about = netlink_find(&m.head, body, NFULA_PACKET_HDR, sizeof(*about));
	packet = netlink_find(&m.head, body, NFULA_PAYLOAD, IPV4_LEAST);
	if (!about || !packet)
		return 0;
	attr = (const void *)(packet - NLA_HDRLEN);
	return refusal_parse(packet, (size_t)attr->nla_len - NLA_HDRLEN,
	                     about->hook == NF_INET_LOCAL_IN, subnet, ret_source, ret) == 0;
}
