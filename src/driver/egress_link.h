/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon's end of millibox-egress. A port is the listening socket of one box. The proxy
 * may die at any time: its starter sends a socket to the next one, which gets all ports again.
 * Connections that come meanwhile wait.
 */

#include "base/attr.h"
#include "driver/box_spec.h"
#include <stddef.h>

struct egress_link;
struct egress_port;
struct loop;

void egress_link_free(struct egress_link *l);
/**
 * egress_link_new - takes @starter: each message carries the socket of a new proxy. @on_lost: there
 * is no proxy and will be none.
 */
struct egress_link *egress_link_new(struct loop *loop, int starter, void (*on_lost)(void *ctx),
                                    void *ctx) attr_owned(egress_link_free);

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
void egress_port_usage(const struct egress_port *p, struct box_network_usage *ret);
