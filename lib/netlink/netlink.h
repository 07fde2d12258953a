/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one netlink message in a buffer of fixed size, and the kernel's answer to it. An attribute
 * that does not fit is remembered: netlink_talk() then fails with -ENOBUFS and sends nothing. The
 * kernel answers within the call that asks, so nothing has to be waited for.
 */

#include "base/attr.h"
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETLINK_MESSAGE_MAX 1024

struct netlink_message {
	union {
		struct nlmsghdr head; /* .nlmsg_len is the length so far */
		char bytes[NETLINK_MESSAGE_MAX];
	};
	bool is_full; /* something did not fit */
};

/** netlink_begin - @body is the fixed part of messages of this type. */
void netlink_begin(struct netlink_message *m, uint16_t type, uint16_t flags, const void *body,
                   size_t len);
void netlink_add(struct netlink_message *m, uint16_t attr, const void *data, size_t len);
void netlink_add_u32(struct netlink_message *m, uint16_t attr, uint32_t value);
/** netlink_add_text - with its NUL. */
void netlink_add_text(struct netlink_message *m, uint16_t attr, const char *text);
/** netlink_nest - attributes up to netlink_unnest() are part of @attr, after @body. Return: for
 * netlink_unnest(). */
size_t netlink_nest(struct netlink_message *m, uint16_t attr, const void *body, size_t len);
void netlink_unnest(struct netlink_message *m, size_t nest);

/** netlink_open - a socket in the present network namespace. */
int netlink_open(int protocol) attr_must_check;
/** netlink_talk - Return: 0, or the negative errno with which the kernel refused. */
int netlink_talk(int sock, struct netlink_message *m) attr_must_check;
/** netlink_batch - like netlink_talk, for nftables, which takes changes as transactions only. */
int netlink_batch(int sock, struct netlink_message *m) attr_must_check;

/** netlink_visit - one message of a list. Return: 0 to go on, or a negative errno. */
typedef int (*netlink_visit)(void *ctx, const struct nlmsghdr *head);
/** netlink_list - @m requests a list; the socket's next message may be sent after it. */
int netlink_list(int sock, struct netlink_message *m, netlink_visit visit,
                 void *ctx) attr_must_check;
/** netlink_forbid_ipv6 - an interface that is still down gets no IPv6 address of its own. Fails,
 * which does not matter, on a kernel without IPv6. */
void netlink_forbid_ipv6(int sock, int index);
int netlink_set_up(int sock, int index) attr_must_check;
/** netlink_find - Return: the attribute after a fixed part of @body_len bytes, or NULL: none with
 * at least @least bytes. */
const void *netlink_find(const struct nlmsghdr *head, size_t body_len, uint16_t attr, size_t least);
