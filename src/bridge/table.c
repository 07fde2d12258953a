/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "netlink/netlink.h"

/*
 * The table stays when this program is killed: boxes that live on must not lose their rules. So the
 * lock is another table, empty and owned by a socket: the kernel removes it with the socket, and
 * only root can make one.
 */

#define NFT       "/usr/sbin/nft"
#define TABLE_OWN 2 /* NFT_TABLE_F_OWNER, which older headers lack */

static void begin(struct netlink_message *m, uint8_t type, uint16_t flags, const char *table)
{
	const struct nfgenmsg inet = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};

	netlink_begin(m, NFNL_SUBSYS_NFTABLES << 8 | type, flags, &inet, sizeof(inet));
	netlink_add_text(m, NFTA_TABLE_NAME, table);
}

int table_lock(void)
{
	cleanup_close int sock = netlink_open(NETLINK_NETFILTER);
	const uint32_t flags = __builtin_bswap32(TABLE_OWN);
	struct netlink_message m;
	int r;

	if (sock < 0)
		return sock;
	begin(&m, NFT_MSG_NEWTABLE, NLM_F_CREATE, BRIDGE_LOCK);
	netlink_add_u32(&m, NFTA_TABLE_FLAGS, flags);
	r = netlink_batch(sock, &m);
	return r < 0 ? r : TAKE_FD(sock);
}

/* What is listed to compare: the first attribute of all is the name of the table. The sets that
 * packets change are not among them. */
static const struct {
	uint8_t type;
	uint16_t attr; /* of a name; 0: none */
	const char *name;
} parts[] = {
	{NFT_MSG_GETTABLE, 0, NULL},
	{NFT_MSG_GETCHAIN, 0, NULL},
	{NFT_MSG_GETRULE, 0, NULL},
	{NFT_MSG_GETSETELEM, NFTA_SET_ELEM_LIST_SET, "never"},
	{NFT_MSG_GETSETELEM, NFTA_SET_ELEM_LIST_SET, "refused"},
	{NFT_MSG_GETSETELEM, NFTA_SET_ELEM_LIST_SET, "opened"},
	{NFT_MSG_GETSETELEM, NFTA_SET_ELEM_LIST_SET, "resolvers"},
};

struct print {
	uint64_t value;
	bool has_elements;
};

/* FNV-1a: changes are noticed, not proven absent; who can make them is root. */
static void mix(struct print *p, const char *from, const char *end)
{
	for (; from < end; from++)
		p->value = (p->value ^ (uint8_t)*from) * 0x100000001b3ULL;
}

static int mix_message(void *ctx, const struct nlmsghdr *head)
{
	const size_t body = sizeof(struct nfgenmsg);
	struct print *p = ctx;
	const char *from = (const char *)head + NLMSG_LENGTH(body);
	const char *table = netlink_find(head, body, NFTA_TABLE_NAME, sizeof(BRIDGE_TABLE));

	if (!table || memcmp(table, BRIDGE_TABLE, sizeof(BRIDGE_TABLE)) != 0)
		return 0;
	/* They come last, in as many messages as the kernel likes. */
	if (p->has_elements)
		from = netlink_find(head, body, NFTA_SET_ELEM_LIST_ELEMENTS, 0);
	if (from)
		mix(p, from, (const char *)head + head->nlmsg_len);
	return 0;
}

int table_fingerprint(int sock, uint64_t *ret)
{
	struct print p = {.value = 0xcbf29ce484222325ULL};
	struct netlink_message m;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts) && r >= 0; i++) {
		begin(&m, parts[i].type, 0, BRIDGE_TABLE);
		if (parts[i].attr)
			netlink_add_text(&m, parts[i].attr, parts[i].name);
		p.has_elements = parts[i].type == NFT_MSG_GETSETELEM;
		r = netlink_list(sock, &m, mix_message, &p);
	}
	*ret = p.value;
	return r;
}

void table_remove(int sock)
{
	struct netlink_message m;

	begin(&m, NFT_MSG_DELTABLE, 0, BRIDGE_TABLE);
	(void)!netlink_batch(sock, &m); /* another program has removed it, or it is gone with us */
}

int table_watch(void)
{
	cleanup_close int sock = netlink_open(NETLINK_NETFILTER);
	const struct sockaddr_nl own = {.nl_family = AF_NETLINK};
	const int group = NFNLGRP_NFTABLES;

	if (sock < 0)
		return sock;
	if (bind(sock, (const struct sockaddr *)&own, sizeof(own)) < 0 ||
	    setsockopt(sock, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
		return -errno;
	return TAKE_FD(sock);
}

/* In a child. */
static void attr_noreturn become_nft(int input)
{
	static char name[] = "nft", option[] = "-f", from[] = "-";
	static char *const argv[] = {name, option, from, NULL};
	static char *const no_env[] = {NULL};

	if (dup2(input, STDIN_FILENO) >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 &&
	    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
		(void)execve(NFT, argv, no_env);
	_exit(127);
}

int table_install(const struct buf *ruleset, struct error *err)
{
	cleanup_close int input = fd_memfd("ruleset", 0);
	int r = input < 0 ? input : fd_write_all(input, ruleset->data, ruleset->len);
	int status = 0;
	pid_t pid;

	if (access(NFT, X_OK) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno,
		                 NFT " is missing: install the package nftables");
	if (r >= 0 && lseek(input, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "write the rules");
	pid = fork();
	if (pid == 0)
		become_nft(input);
	if (pid < 0)
		return error_set(err, ERR_SYSTEM, errno, "fork");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return error_set(err, ERR_UNAVAILABLE, 0,
	                 NFT " refused the rules; the log has its message");
}
