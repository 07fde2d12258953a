/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: which addresses are the public Internet. Checked after resolution and right before
 * connect(), for every address, whatever name led to it. Pure.
 *
 * IPv4 is represented as ::ffff:a.b.c.d everywhere, so a mapped address is judged by the IPv4
 * address inside. Text that spells a mapped address is refused by every parser.
 */

#include "base/attr.h"
#include "base/error.h"
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct cidr {
	struct in6_addr base;
	unsigned bits; /* of 128; an IPv4 range has at least 96 */
};

/** address_from - IPv4 becomes ::ffff:a.b.c.d. Return: 0 or -EAFNOSUPPORT. */
int address_from(const struct sockaddr *sa, struct in6_addr *ret) attr_must_check;
/**
 * address_parse - four decimal numbers without leading zeros, or IPv6 without brackets, zone and
 * IPv4-mapped form. Return: 0 or -EINVAL.
 */
int address_parse(const char *text, size_t len, struct in6_addr *ret) attr_must_check;
/**
 * address_refusal - why a connection to @a is not to the public Internet: "loopback", "private",
 * "link-local", "metadata", "multicast", "shared" (100.64/10), "unspecified", "broadcast",
 * "documentation", "reserved", "unique-local", "site-local", "discard", "benchmarking",
 * "IPv4-compatible", "6to4", "Teredo", "NAT64". An address that embeds another one (the last four)
 * is refused whatever it embeds. A NAT64 prefix of the network's own is not known here. Return:
 * NULL if public.
 */
const char *address_refusal(const struct in6_addr *a);
/** address_range - row @i of the table of addresses that are not public. *ret_never: no rule opens
 * it. Return: NULL: no more. */
const struct cidr *address_range(size_t i, bool *ret_never);
/**
 * address_opened_by - whether an operator who allows the range @c means the non-public @a. The
 * range must lie within the kind of addresses that @a belongs to, so that 0.0.0.0/0 opens no
 * private network and 100.64.0.0/10 no metadata service.
 */
bool address_opened_by(const struct in6_addr *a, const struct cidr *c);

/** cidr_parse - a.b.c.d[/n] or v6[/n]; bits beyond the prefix must be 0. */
int cidr_parse(const char *text, struct cidr *ret, struct error *err) attr_must_check;
/** cidr_contains - an IPv6 range contains no IPv4 address, ::/0 included. */
bool cidr_contains(const struct cidr *c, const struct in6_addr *a);
/** cidr_refusal - the kind of addresses that no rule can open, if all of @c is of it; or NULL. */
const char *cidr_refusal(const struct cidr *c);
