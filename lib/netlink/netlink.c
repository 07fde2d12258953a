/* SPDX-License-Identifier: Apache-2.0 */
#include "netlink/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"

#define ANSWER_MAX 32768

/* Return: where @len bytes go, zeroed up to the alignment, or NULL. */
static void *extend(struct netlink_message *m, size_t len)
{
	size_t at = NLMSG_ALIGN(m->head.nlmsg_len);
	size_t end = at + NLMSG_ALIGN(len);

	if (m->is_full || end > sizeof(m->bytes)) {
		m->is_full = true;
		return NULL;
	}
	memset(m->bytes + at, 0, end - at);
	m->head.nlmsg_len = (uint32_t)(at + len);
	return m->bytes + at;
}

static void append(struct netlink_message *m, const void *data, size_t len)
{
	void *to = extend(m, len);

	if (to && len > 0)
		memcpy(to, data, len);
}

void netlink_begin(struct netlink_message *m, uint16_t type, uint16_t flags, const void *body,
                   size_t len)
{
	*m = (struct netlink_message){
		.head = {.nlmsg_len = NLMSG_HDRLEN,
	                 .nlmsg_type = type,
	                 .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)},
	};
	append(m, body, len);
}

void netlink_add(struct netlink_message *m, uint16_t attr, const void *data, size_t len)
{
	struct nlattr *at = extend(m, NLA_HDRLEN + len);

	if (!at)
		return;
	*at = (struct nlattr){.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = attr};
	if (len > 0)
		memcpy((char *)at + NLA_HDRLEN, data, len);
}

void netlink_add_u32(struct netlink_message *m, uint16_t attr, uint32_t value)
{
	netlink_add(m, attr, &value, sizeof(value));
}

void netlink_add_text(struct netlink_message *m, uint16_t attr, const char *text)
{
	netlink_add(m, attr, text, strlen(text) + 1);
}

size_t netlink_nest(struct netlink_message *m, uint16_t attr, const void *body, size_t len)
{
	size_t at = NLMSG_ALIGN(m->head.nlmsg_len);

	netlink_add(m, (uint16_t)(attr | NLA_F_NESTED), body, len);
	return at;
}

void netlink_unnest(struct netlink_message *m, size_t nest)
{
	struct nlattr *at = (struct nlattr *)(void *)(m->bytes + nest);

	if (!m->is_full)
		at->nla_len = (uint16_t)(m->head.nlmsg_len - nest);
}

int netlink_open(int protocol)
{
	return fd_socket(AF_NETLINK, SOCK_RAW, protocol);
}

/* The kernel is the only sender whose messages count. */
static ssize_t receive(int sock, void *data, size_t size)
{
	struct sockaddr_nl from = {0};
	socklen_t len = sizeof(from);
	ssize_t n;

	do
		n = recvfrom(sock, data, size, 0, (struct sockaddr *)&from, &len);
	while ((n < 0 && errno == EINTR) || (n >= 0 && from.nl_pid != 0));
	return n < 0 ? -errno : n;
}

/* Return: 1 to go on, 0 at the end, or a negative errno. */
static int take_message(const struct nlmsghdr *head, uint32_t seq, netlink_visit visit, void *ctx)
{
	const struct nlmsgerr *error = NLMSG_DATA(head);
	int r;

	if (head->nlmsg_seq != seq)
		return 1;
	if (head->nlmsg_type == NLMSG_DONE)
		return 0;
	if (head->nlmsg_type == NLMSG_ERROR)
		return head->nlmsg_len < NLMSG_LENGTH(sizeof(*error)) ? -EPROTO : error->error;
	if (head->nlmsg_flags & NLM_F_DUMP_INTR)
		return -EAGAIN;
	r = visit ? visit(ctx, head) : 0;
	return r < 0 ? r : 1;
}

static int read_answer(int sock, uint32_t seq, netlink_visit visit, void *ctx)
{
	union {
		struct nlmsghdr head;
		char bytes[ANSWER_MAX];
	} answer;
	int r = 1;

	while (r > 0) {
		ssize_t n = receive(sock, &answer, sizeof(answer));
		size_t at = 0;

		if (n < (ssize_t)sizeof(answer.head))
			return n < 0 ? (int)n : -EPROTO;
		while (r > 0 && at + sizeof(answer.head) <= (size_t)n) {
			const struct nlmsghdr *head = (const void *)(answer.bytes + at);

			if (head->nlmsg_len < sizeof(*head) || head->nlmsg_len > (size_t)n - at)
				return -EPROTO;
			r = take_message(head, seq, visit, ctx);
			at += NLMSG_ALIGN(head->nlmsg_len);
		}
	}
	return r;
}

static uint32_t next_seq(void)
{
	static uint32_t seq;

	if (++seq == 0)
		seq = 1;
	return seq;
}

static int send_parts(int sock, struct iovec *parts, size_t count)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	const struct msghdr msg = {.msg_name = &kernel,
	                           .msg_namelen = sizeof(kernel),
	                           .msg_iov = parts,
	                           .msg_iovlen = count};

	return sendmsg(sock, &msg, 0) < 0 ? -errno : 0;
}

static int talk(int sock, struct netlink_message *m, netlink_visit visit, void *ctx)
{
	struct iovec part = {.iov_base = m->bytes, .iov_len = m->head.nlmsg_len};
	int r;

	if (m->is_full)
		return -ENOBUFS;
	m->head.nlmsg_seq = next_seq();
	r = send_parts(sock, &part, 1);
	return r < 0 ? r : read_answer(sock, m->head.nlmsg_seq, visit, ctx);
}

int netlink_talk(int sock, struct netlink_message *m)
{
	m->head.nlmsg_flags |= NLM_F_ACK;
	return talk(sock, m, NULL, NULL);
}

int netlink_list(int sock, struct netlink_message *m, netlink_visit visit, void *ctx)
{
	m->head.nlmsg_flags |= NLM_F_DUMP;
	return talk(sock, m, visit, ctx);
}

int netlink_batch(int sock, struct netlink_message *m)
{
	const struct nfgenmsg all = {.res_id = htons(NFNL_SUBSYS_NFTABLES)};
	struct netlink_message begin, end;
	struct iovec parts[3];
	int r;

	if (m->is_full)
		return -ENOBUFS;
	netlink_begin(&begin, NFNL_MSG_BATCH_BEGIN, 0, &all, sizeof(all));
	netlink_begin(&end, NFNL_MSG_BATCH_END, 0, &all, sizeof(all));
	m->head.nlmsg_flags |= NLM_F_ACK;
	/* The answer to the whole transaction has the number of its begin. */
	begin.head.nlmsg_seq = end.head.nlmsg_seq = m->head.nlmsg_seq = next_seq();
	parts[0] = (struct iovec){.iov_base = begin.bytes, .iov_len = begin.head.nlmsg_len};
	/* The next one begins aligned; the bytes between are zero. */
	parts[1] = (struct iovec){.iov_base = m->bytes, .iov_len = NLMSG_ALIGN(m->head.nlmsg_len)};
	parts[2] = (struct iovec){.iov_base = end.bytes, .iov_len = end.head.nlmsg_len};
	r = send_parts(sock, parts, ARRAY_SIZE(parts));
	return r < 0 ? r : read_answer(sock, m->head.nlmsg_seq, NULL, NULL);
}

const void *netlink_find(const struct nlmsghdr *head, size_t body_len, uint16_t attr, size_t least)
{
	size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(body_len);

	while (at + NLA_HDRLEN <= head->nlmsg_len) {
		const struct nlattr *a = (const void *)((const char *)head + at);

		if (a->nla_len < NLA_HDRLEN || a->nla_len > head->nlmsg_len - at)
			return NULL;
		if ((a->nla_type & NLA_TYPE_MASK) == attr)
			return (size_t)a->nla_len - NLA_HDRLEN < least
			               ? NULL
			               : (const char *)a + NLA_HDRLEN;
		at += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

void netlink_forbid_ipv6(int sock, int index)
{
	const struct ifinfomsg link = {.ifi_index = index};
	const uint8_t none = IN6_ADDR_GEN_MODE_NONE;
	struct netlink_message m;
	size_t spec, inet6;

	netlink_begin(&m, RTM_SETLINK, 0, &link, sizeof(link));
	spec = netlink_nest(&m, IFLA_AF_SPEC, NULL, 0);
	inet6 = netlink_nest(&m, AF_INET6, NULL, 0);
	netlink_add(&m, IFLA_INET6_ADDR_GEN_MODE, &none, sizeof(none));
	netlink_unnest(&m, inet6);
	netlink_unnest(&m, spec);
	(void)!netlink_talk(sock, &m);
}

int netlink_set_up(int sock, int index)
{
	const struct ifinfomsg up = {.ifi_index = index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
	struct netlink_message m;

	netlink_begin(&m, RTM_SETLINK, 0, &up, sizeof(up));
	return netlink_talk(sock, &m);
}
