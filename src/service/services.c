/* SPDX-License-Identifier: Apache-2.0 */
#include "service/services.h"

#include "base/alloc.h"
#include <stdlib.h>

struct services {
	struct egress_link *egress;   /* owned; NULL: it was never started */
	struct gateway_link *gateway; /* owned; NULL: no MCP server is configured */
	bool has_egress, has_gateway; /* and its starter lives */
	void (*on_change)(void *ctx);
	void *ctx;
};

static void on_egress_lost(void *ctx)
{
	struct services *s = ctx;

	s->has_egress = false;
	s->on_change(s->ctx);
}

static void on_gateway_lost(void *ctx)
{
	struct services *s = ctx;

	s->has_gateway = false;
	s->on_change(s->ctx);
}

struct services *services_new(const struct services_config *config)
{
	struct services *s = NEW(struct services);

	*s = (struct services){.on_change = config->on_change,
	                       .ctx = config->ctx,
	                       .has_egress = config->egress >= 0,
	                       .has_gateway = config->gateway >= 0};
	if (s->has_egress)
		s->egress = egress_link_new(config->loop, config->egress, on_egress_lost, s);
	if (s->has_gateway)
		s->gateway = gateway_link_new(config->loop, config->gateway, config->gateway_events,
		                              on_gateway_lost, s);
	return s;
}

void services_free(struct services *s)
{
	if (!s)
		return;
	egress_link_free(s->egress);
	gateway_link_free(s->gateway);
	free(s);
}

bool services_have_egress(const struct services *s)
{
	return s && s->has_egress;
}

bool services_have_gateway(const struct services *s)
{
	return s && s->has_gateway;
}

struct egress_port *services_open_egress(const struct services *s, int listener, const char *tenant,
                                         struct box_rules *rules)
{
	return s && s->egress ? egress_port_open(s->egress, listener, tenant, rules) : NULL;
}

struct gateway_port *services_open_gateway(const struct services *s, int listener,
                                           const struct gateway_caller *who,
                                           struct box_rules *tools)
{
	return s && s->gateway ? gateway_port_open(s->gateway, listener, who, tools) : NULL;
}

void services_set_secrets(const struct services *s, const struct egress_source *source)
{
	if (s->egress)
		egress_link_set_source(s->egress, source);
}

void services_secrets_changed(const struct services *s, const char *tenant)
{
	if (s->egress)
		egress_link_refresh(s->egress, tenant);
}

int services_gateway_starter(const struct services *s)
{
	return gateway_link_starter(s->gateway);
}
