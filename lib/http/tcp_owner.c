/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tcp_owner.h"

#include "base/fd.h"
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

/*
 * Theory of operation. A connection of two sockets on one host appears in the kernel's table twice.
 * The entry with our addresses exchanged is the peer's, and has the user who created the socket.
 * The kernel answers within the call that asks, so the answer never has to be waited for.
 *
 * What an attacker could try: close the socket, and the entry has no user, which older kernels
 * report as 0; so an entry must have an inode. (The kernel reads the user before the inode.) Have
 * no entry, and the kernel falls back to a listening socket on the same port; so the state and the
 * addresses are compared. Close the socket and let root take the port: while our end exists, the
 * new socket cannot get beyond SYN_SENT.
 */

/* Ids that have no name in this user namespace all look like this one. */
#define OVERFLOW_UID 65534
/* States of a socket whose connection was established. */
#define CONNECTED                                                                                  \
	(1U << TCP_ESTABLISHED | 1U << TCP_FIN_WAIT1 | 1U << TCP_FIN_WAIT2 |                       \
	 1U << TCP_CLOSE_WAIT | 1U << TCP_LAST_ACK | 1U << TCP_CLOSING)

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct query {
	struct nlmsghdr head;
	struct inet_diag_req_v2 req;
};

/* Attributes follow that nothing here reads. */
struct reply {
	struct nlmsghdr head;
	union {
		struct inet_diag_msg msg;
		struct nlmsgerr error;
		char room[1024];
	};
};

int tcp_owner_open(void)
{
	return fd_socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
}

static in_port_t copy_address(const union address *a, __be32 ret_addr[4])
{
	if (a->any.sa_family == AF_INET) {
		ret_addr[0] = a->in.sin_addr.s_addr;
		return a->in.sin_port;
	}
	memcpy(ret_addr, &a->in6.sin6_addr, sizeof(a->in6.sin6_addr));
	return a->in6.sin6_port;
}

/* The peer's end: its source is our destination. */
static int make_query(int conn, struct query *ret_query)
{
	union address peer = {0}, own = {0};
	socklen_t peer_len = sizeof(peer), own_len = sizeof(own);
	struct inet_diag_sockid *id = &ret_query->req.id;

	if (getpeername(conn, &peer.any, &peer_len) < 0 ||
	    getsockname(conn, &own.any, &own_len) < 0)
		return -errno;
	if (peer.any.sa_family != own.any.sa_family ||
	    (peer.any.sa_family != AF_INET && peer.any.sa_family != AF_INET6))
		return -EAFNOSUPPORT;
	*ret_query = (struct query){
		.head = {.nlmsg_len = sizeof(*ret_query),
	                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
	                 .nlmsg_flags = NLM_F_REQUEST},
		.req = {.sdiag_family = (__u8)peer.any.sa_family,
	                .sdiag_protocol = IPPROTO_TCP,
	                .idiag_states = CONNECTED,
	                .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}},
	};
	id->idiag_sport = copy_address(&peer, id->idiag_src);
	id->idiag_dport = copy_address(&own, id->idiag_dst);
	if (peer.any.sa_family == AF_INET6)
		id->idiag_if = peer.in6.sin6_scope_id;
	return 0;
}

/* A socket of family AF_INET6 may have an IPv4 connection; both ends of ours are IPv4 then. */
static bool is_same_address(const __be32 found[4], unsigned char family, const struct query *q,
                            const __be32 asked[4])
{
	const struct in6_addr *mapped = (const struct in6_addr *)(const void *)found;

	if (family == q->req.sdiag_family)
		return memcmp(found, asked, family == AF_INET ? 4 : 16) == 0;
	return q->req.sdiag_family == AF_INET && IN6_IS_ADDR_V4MAPPED(mapped) &&
	       found[3] == asked[0];
}

static int check_reply(const struct query *q, const struct reply *reply, size_t len,
                       unsigned *ret_uid)
{
	const struct inet_diag_msg *m = &reply->msg;
	const struct inet_diag_sockid *id = &q->req.id;

	if (len >= NLMSG_LENGTH(sizeof(reply->error)) && reply->head.nlmsg_type == NLMSG_ERROR)
		return reply->error.error < 0 ? reply->error.error : -ENOENT;
	if (len < NLMSG_LENGTH(sizeof(*m)) || reply->head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -EPROTO;
	if (m->idiag_state >= 32 || !(CONNECTED & 1U << m->idiag_state) || m->idiag_inode == 0 ||
	    m->id.idiag_sport != id->idiag_sport || m->id.idiag_dport != id->idiag_dport ||
	    !is_same_address(m->id.idiag_src, m->idiag_family, q, id->idiag_src) ||
	    !is_same_address(m->id.idiag_dst, m->idiag_family, q, id->idiag_dst) ||
	    m->idiag_uid == OVERFLOW_UID)
		return -ENOENT;
	*ret_uid = m->idiag_uid;
	return 0;
}

int tcp_owner_find(int diag, int conn, unsigned *ret_uid)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK}, from = {0};
	socklen_t from_len = sizeof(from);
	struct reply reply;
	struct query query;
	ssize_t n;
	int r = make_query(conn, &query);

	if (r < 0)
		return r;
	/* An answer that was not read, after an error, must not be taken for this one's. */
	while (recv(diag, &reply, sizeof(reply), MSG_DONTWAIT) >= 0)
		;
	if (sendto(diag, &query, sizeof(query), 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	n = recvfrom(diag, &reply, sizeof(reply), MSG_DONTWAIT, (struct sockaddr *)&from,
	             &from_len);
	if (n < 0)
		return -errno;
	/* Any process may write to a netlink socket; the kernel's port is 0. */
	if (from.nl_pid != 0)
		return -EPROTO;
	return check_reply(&query, &reply, (size_t)n, ret_uid);
}
