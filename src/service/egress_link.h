/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon's end of millibox-egress. A port is the listening socket of one box. The proxy
 * may die at any time: its starter sends a socket to the next one, which gets all ports again.
 * Connections that come meanwhile wait.
 */

#include "base/attr.h"
#include "service/reach.h"
#include <stddef.h>

struct buf;
struct egress_link;
struct egress_port;
struct loop;

/* Where the values of secrets come from. */
struct egress_source {
	/* Append secret @name of @tenant as egress/order.h describes it. Return: whether it exists.
	 */
	int (*write)(const void *ctx, const char *tenant, const char *name, struct buf *to);
	/* The same with the authority. */
	int (*write_authority)(const void *ctx, struct buf *to);
	const void *ctx;
};

void egress_link_free(struct egress_link *l);
/**
 * egress_link_new - takes @starter: each message carries the socket of a new proxy. @on_lost: there
 * is no proxy and will be none.
 */
struct egress_link *egress_link_new(struct loop *loop, int starter, void (*on_lost)(void *ctx),
                                    void *ctx) attr_owned(egress_link_free);
/** egress_link_set_source - without one, boxes have no secrets. */
void egress_link_set_source(struct egress_link *l, const struct egress_source *source);
/** egress_link_refresh - secrets of @tenant have changed: its boxes get them again. */
void egress_link_refresh(struct egress_link *l, const char *tenant);

/** egress_port_close - the proxy ends the connections of the box. */
void egress_port_close(struct egress_port *p);
/** egress_port_open - @listener is borrowed as long as the port; @rules is referenced. */
struct egress_port *egress_port_open(struct egress_link *l, int listener, const char *tenant,
                                     struct box_rules *rules) attr_owned(egress_port_close);
/** egress_port_change - connections that the new rules refuse end. */
void egress_port_change(struct egress_port *p, struct box_rules *rules);
/**
 * egress_port_denials - receives what the proxy has sent, then moves up to @max denials to @ret.
 * Return: their number.
 */
size_t egress_port_denials(struct egress_port *p, struct box_denial *ret, size_t max);
/** egress_port_ask - let the proxy report what the box has used until now. */
void egress_port_ask(struct egress_port *p);
/** egress_port_settle - wait up to @wait_us for the report of egress_port_ask; others wait
 * meanwhile. Return: whether none is due. */
bool egress_port_settle(struct egress_port *p, uint64_t wait_us);
void egress_port_usage(const struct egress_port *p, struct box_network_usage *ret);
