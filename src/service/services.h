/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon's end of the processes that serve boxes from outside: the proxy and the gateway.
 * The daemon makes one object of them and gives it to every driver. It outlives the boxes.
 */

#include "base/attr.h"
#include "service/egress_link.h"
#include "service/gateway_link.h"
#include <stdbool.h>

struct loop;
struct services;

struct services_config {
	struct loop *loop;
	int egress, gateway; /* sockets of their starters, taken; -1: none */
	const struct gateway_events *gateway_events;
	/* From the loop: one of them is gone for good. */
	void (*on_change)(void *ctx);
	void *ctx;
};

void services_free(struct services *s);
struct services *services_new(const struct services_config *config) attr_owned(services_free);

/** services_have_egress - can boxes reach named hosts? */
bool services_have_egress(const struct services *s);
/** services_have_gateway - can boxes call tools of MCP servers? */
bool services_have_gateway(const struct services *s);

/** services_open_egress - as egress_port_open. Return: NULL without a proxy. */
struct egress_port *services_open_egress(const struct services *s, int listener, const char *tenant,
                                         struct box_rules *rules);
/** services_open_gateway - as gateway_port_open. Return: NULL without a gateway. */
struct gateway_port *services_open_gateway(const struct services *s, int listener,
                                           const struct gateway_caller *who,
                                           struct box_rules *tools);

/** services_set_secrets - where the proxy's secrets come from. */
void services_set_secrets(const struct services *s, const struct egress_source *source);
/** services_secrets_changed - boxes of @tenant get their secrets again. */
void services_secrets_changed(const struct services *s, const char *tenant);
/** services_gateway_starter - as gateway_link_starter. */
int services_gateway_starter(const struct services *s);
