/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon's end of millibox-gateway. A port is the listening socket of one box. The gateway
 * may die at any time: its starter sends a socket to the next one, which gets all ports again.
 * Connections that come meanwhile wait; calls in progress are lost.
 */

#include "base/attr.h"
#include "gateway/order.h"
#include "service/reach.h"
#include <stdbool.h>
#include <stddef.h>

struct gateway_link;
struct gateway_port;
struct loop;

/* Who called. */
struct gateway_caller {
	const char *tenant, *box, *request_id;
};

/* From the loop. All are required. */
struct gateway_events {
	void *ctx;
	void (*on_called)(void *ctx, const struct gateway_caller *who,
	                  const struct gateway_event *event);
	/* STATE of a server. */
	void (*on_state)(void *ctx, const struct gateway_event *event);
	/* Its tools are in @fd, which is borrowed. */
	void (*on_catalog)(void *ctx, const struct gateway_event *event, int fd);
	/* Nothing is known of any server: another gateway starts, or @is_last, none does. */
	void (*on_lost)(void *ctx, bool is_last);
};

void gateway_link_free(struct gateway_link *l);
/**
 * gateway_link_new - takes @starter: each message carries the socket of a new gateway. @on_lost:
 * there is no gateway and will be none; after events->on_lost.
 */
struct gateway_link *gateway_link_new(struct loop *loop, int starter,
                                      const struct gateway_events *events,
                                      void (*on_lost)(void *ctx), void *ctx)
	attr_owned(gateway_link_free);

/** gateway_link_starter - where servers can be sent anew (gateway/order.h); -1: none. Borrowed. */
int gateway_link_starter(const struct gateway_link *l);

/** gateway_port_close - calls of the box are cancelled. */
void gateway_port_close(struct gateway_port *p);
/** gateway_port_open - @listener and the texts of @who are borrowed as long as the port; @tools is
 * referenced. */
struct gateway_port *gateway_port_open(struct gateway_link *l, int listener,
                                       const struct gateway_caller *who, struct box_rules *tools)
	attr_owned(gateway_port_close);
/** gateway_port_change - calls of others are refused from now on. */
void gateway_port_change(struct gateway_port *p, struct box_rules *tools);
/**
 * gateway_port_denials - receives what the gateway has sent, then moves up to @max denied calls to
 * @ret. Return: their number.
 */
size_t gateway_port_denials(struct gateway_port *p, struct box_tool_denial *ret, size_t max);
