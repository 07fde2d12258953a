/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shared by the files of millibox-bridge. What the program makes on the host has fixed names,
 * so that the next start finds what a killed one left: interfaces of some groups, routes of one
 * protocol, one table. One network namespace of a host has one such program at a time.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "bridge/range.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BRIDGE_PREFIX "millibox" /* of interfaces, a number follows */
#define BRIDGE_TABLE  "millibox"
#define BRIDGE_LOCK   "millibox-lock"
/* Of interfaces: ours, and the ranges that the box reaches (order.h), which rules compare. So they
 * hold from the first packet and go with the interface. */
#define BRIDGE_GROUP           0x6d620000U
#define BRIDGE_IS_GROUP(group) ((group) >> 16 == BRIDGE_GROUP >> 16)
#define BRIDGE_PROTO           109 /* of routes; not assigned */

/* Of one box: connections and flows at a time; new ones a second, and at once. */
#define BRIDGE_CONNECTIONS 512
#define BRIDGE_RATE        200
#define BRIDGE_BURST       400
/* Refusals that the kernel reports: a second, and at once; to which group of NFLOG. */
#define BRIDGE_NOTED_RATE  20
#define BRIDGE_NOTED_BURST 64
#define BRIDGE_NOTED_GROUP 27746

/* Ranges and addresses of the operator; all are IPv4. */
struct bridge_options {
	struct cidr subnet; /* of boxes */
	struct cidr allow[BRIDGE_RANGES_MAX];
	size_t allow_count;
	struct cidr resolvers[BRIDGE_RANGES_MAX]; /* single addresses */
	size_t resolver_count;
};

/* ruleset.c */
/** ruleset_write - replaces the table, as one transaction of nft(8). Pure. */
int ruleset_write(const struct bridge_options *options, struct buf *to) attr_must_check;

/* table.c: the table of rules */
/** table_lock - Return: a socket that holds the lock, or a negative errno; -EPERM: another program
 * has it. */
int table_lock(void) attr_must_check;
/** table_install - start nft(8) with @ruleset. */
int table_install(const struct buf *ruleset, struct error *err) attr_must_check;
/** table_watch - Return: a socket that becomes readable when rules of the host change. */
int table_watch(void) attr_must_check;
/** table_fingerprint - of its chains, rules and fixed sets; @sock: any of the above. Return: 0 or a
 * negative errno; -EAGAIN: rules of the host changed meanwhile. */
int table_fingerprint(int sock, uint64_t *ret) attr_must_check;
void table_remove(int sock);

/* link.c: interfaces, addresses and routes; @sock is a NETLINK_ROUTE socket */
/** link_sweep - remove what an earlier program left. */
int link_sweep(int sock) attr_must_check;
/** link_check_subnet - whether another route or address of the host uses part of it. */
int link_check_subnet(int sock, const struct cidr *subnet, struct error *err) attr_must_check;
/** link_reserve - addresses of the subnet that no box has lead nowhere. */
int link_reserve(int sock, const struct cidr *subnet) attr_must_check;
struct link_box {
	uint32_t number; /* in the subnet */
	uint32_t ranges; /* see struct bridge_request */
	int net;         /* network namespace */
	int netfilter;   /* a socket, if another box may have had the number, or -1 */
};

/** link_add - connect a box. Return: 0 or a negative errno; -EEXIST: the number is in use. */
int link_add(int sock, const struct bridge_options *options,
             const struct link_box *box) attr_must_check;
/** link_change - the ranges of a box. Return: 0 or a negative errno; -ENODEV: it is gone. */
int link_change(int sock, uint32_t number, uint32_t ranges) attr_must_check;
/** link_remove_all - interfaces and routes. */
void link_remove_all(int sock);
/** link_watch - Return: a socket that becomes readable when interfaces of the host change. */
int link_watch(void) attr_must_check;
/** link_read_ended - read one change. Return: 1: *ret_number is gone; 0: another change; or a
 * negative errno; -EAGAIN: there is none. */
int link_read_ended(int watch, uint32_t *ret_number) attr_must_check;
/** link_address - of a box, in host byte order. */
uint32_t link_address(const struct cidr *subnet, uint32_t number);
/** link_number - of an address. Return: 0; -ERANGE: it is no box's. */
int link_number(const struct cidr *subnet, uint32_t address, uint32_t *ret) attr_must_check;

/* conntrack.c */
/** conntrack_forget - remove the kernel's entries of connections from these addresses; @sock is a
 * NETLINK_NETFILTER socket. */
int conntrack_forget(int sock, uint32_t base, unsigned bits) attr_must_check;

/* refusal.c: what the rules refused, as the kernel reports it */
struct bridge_refusal;
/** refusal_open - Return: a socket that gets reports, or a negative errno; -EBUSY: another program
 * has the group. */
int refusal_open(void) attr_must_check;
/** refusal_parse - @packet is the start of a refused one; @to_host: it was for the host itself.
 * *ret_source: in host byte order. Return: 0; -EPROTO: it is neither TCP nor UDP. Pure. */
int refusal_parse(const uint8_t *packet, size_t len, bool to_host, const struct cidr *subnet,
                  uint32_t *ret_source, struct bridge_refusal *ret) attr_must_check;
/** refusal_read - Return: 1; 0: a message without one, or some were lost; or a negative errno;
 * -EAGAIN: there is none. */
int refusal_read(int sock, const struct cidr *subnet, uint32_t *ret_source,
                 struct bridge_refusal *ret) attr_must_check;

/* confine.c */
/** bridge_is_capable - whether this process has CAP_NET_ADMIN. */
bool bridge_is_capable(void);
/** bridge_confine - keep CAP_NET_ADMIN, a few calls, no file. */
int bridge_confine(struct error *err) attr_must_check;
