/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bridge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <string.h>
#include <sys/socket.h>

#include "netlink/netlink.h"

/*
 * The kernel keeps an entry for each connection after the box has ended, and an answer that comes
 * late is delivered to the box's address. So the entries of an address are removed before another
 * box gets it. The kernel lists entries of one source, but not every version removes them so: they
 * are listed, then removed one by one.
 */

#define TUPLE_MAX   96 /* of an IPv4 entry: 52 bytes */
#define PER_PASS    512
#define PASSES_MAX  1024
#define FILTER_ATTR 25 /* CTA_FILTER, which older headers lack */
#define FILTER_ORIG 1  /* CTA_FILTER_ORIG_FLAGS */
#define BY_SOURCE   1U

struct entry {
	uint16_t len;
	char tuple[TUPLE_MAX]; /* its CTA_TUPLE_ORIG */
};

struct found {
	uint32_t base, mask;
	size_t count;
	struct entry entries[PER_PASS];
};

static void begin(struct netlink_message *m, uint8_t type)
{
	const struct nfgenmsg inet = {.nfgen_family = AF_INET, .version = NFNETLINK_V0};

	netlink_begin(m, NFNL_SUBSYS_CTNETLINK << 8 | type, 0, &inet, sizeof(inet));
}

static void begin_list(struct netlink_message *m, const struct found *f)
{
	size_t filter, tuple, ip;

	begin(m, IPCTNL_MSG_CT_GET);
	if (f->mask != UINT32_MAX)
		return;
	filter = netlink_nest(m, FILTER_ATTR, NULL, 0);
	netlink_add_u32(m, FILTER_ORIG, BY_SOURCE);
	netlink_unnest(m, filter);
	tuple = netlink_nest(m, CTA_TUPLE_ORIG, NULL, 0);
	ip = netlink_nest(m, CTA_TUPLE_IP, NULL, 0);
	netlink_add_u32(m, CTA_IP_V4_SRC, htonl(f->base));
	netlink_unnest(m, ip);
	netlink_unnest(m, tuple);
}

static const struct nlattr *attr_of(const void *data)
{
	return data ? (const void *)((const char *)data - NLA_HDRLEN) : NULL;
}

/* @within: an attribute that contains others, without its own header. */
static const void *find_within(const struct nlattr *within, uint16_t attr, size_t least)
{
	const char *at = (const char *)within + NLA_HDRLEN;
	size_t left = within->nla_len - NLA_HDRLEN;

	while (left >= NLA_HDRLEN) {
		const struct nlattr *a = (const void *)at;
		size_t step = NLA_ALIGN(a->nla_len);

		if (a->nla_len < NLA_HDRLEN || a->nla_len > left)
			return NULL;
		if ((a->nla_type & NLA_TYPE_MASK) == attr)
			return (size_t)a->nla_len - NLA_HDRLEN < least ? NULL : at + NLA_HDRLEN;
		at += step;
		left -= step < left ? step : left;
	}
	return NULL;
}

static int take_entry(void *ctx, const struct nlmsghdr *head)
{
	struct found *f = ctx;
	const struct nlattr *tuple =
		attr_of(netlink_find(head, sizeof(struct nfgenmsg), CTA_TUPLE_ORIG, 0));
	const struct nlattr *ip = tuple ? attr_of(find_within(tuple, CTA_TUPLE_IP, 0)) : NULL;
	const uint32_t *source = ip ? find_within(ip, CTA_IP_V4_SRC, sizeof(*source)) : NULL;
	struct entry *to;

	if (!source || ((ntohl(*source) ^ f->base) & f->mask) != 0 || f->count == PER_PASS)
		return 0;
	if (tuple->nla_len - NLA_HDRLEN > TUPLE_MAX)
		return -EPROTO;
	to = &f->entries[f->count++];
	to->len = (uint16_t)(tuple->nla_len - NLA_HDRLEN);
	memcpy(to->tuple, (const char *)tuple + NLA_HDRLEN, to->len);
	return 0;
}

/* Return: how many it removed or found gone, or a negative errno. */
static int remove_found(int sock, const struct found *f)
{
	int r = 0;

	for (size_t i = 0; i < f->count && r >= 0; i++) {
		struct netlink_message m;

		begin(&m, IPCTNL_MSG_CT_DELETE);
		netlink_add(&m, CTA_TUPLE_ORIG | NLA_F_NESTED, f->entries[i].tuple,
		            f->entries[i].len);
		r = netlink_talk(sock, &m);
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

int conntrack_forget(int sock, uint32_t base, unsigned bits)
{
	static struct found f;
	struct netlink_message m;
	int r = 0;

	for (int i = 0; i < PASSES_MAX && r >= 0; i++) {
		f.base = base;
		f.mask = bits == 0 ? 0 : UINT32_MAX << (32 - bits);
		f.count = 0;
		begin_list(&m, &f);
		r = netlink_list(sock, &m, take_entry, &f);
		if (r >= 0)
			r = remove_found(sock, &f);
		if (f.count < PER_PASS)
			return r;
	}
	return r < 0 ? r : -EBUSY;
}
