/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/range.h"

#include <string.h>

#define V4_BITS     96
#define PREFIX_MIN  16
#define PREFIX_MAX  24
#define UNUSED_EACH 3 /* the network, the gateway, broadcast */

uint32_t bridge_v4(const struct cidr *c)
{
	const uint8_t *b = c->base.s6_addr + 12;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

unsigned bridge_v4_bits(const struct cidr *c)
{
	return c->bits - V4_BITS;
}

uint32_t bridge_boxes_max(const struct cidr *subnet)
{
	return (1U << (32 - bridge_v4_bits(subnet))) - UNUSED_EACH;
}

static int parse_v4(const char *text, struct cidr *ret, struct error *err)
{
	if (cidr_parse(text, ret, err) < 0)
		return -1;
	if (!IN6_IS_ADDR_V4MAPPED(&ret->base) || ret->bits < V4_BITS)
		return error_set(err, ERR_CONFIG, 0, "'%.48s' is not IPv4", text);
	return 0;
}

/* A rule may open it, and it lies within one kind of such addresses. */
static bool can_be_opened(const struct cidr *c)
{
	return address_refusal(&c->base) && address_opened_by(&c->base, c);
}

int bridge_parse_range(const char *text, struct cidr *ret, struct error *err)
{
	if (parse_v4(text, ret, err) < 0)
		return -1;
	if (!can_be_opened(ret) || strcmp(address_refusal(&ret->base), "loopback") == 0)
		return error_set(err, ERR_CONFIG, 0,
		                 "'%.48s' is not a range of private addresses: public ones can be "
		                 "reached anyway, link-local and metadata ones never",
		                 text);
	return 0;
}

int bridge_parse_subnet(const char *text, struct cidr *ret, struct error *err)
{
	if (bridge_parse_range(text, ret, err) < 0)
		return -1;
	if (bridge_v4_bits(ret) < PREFIX_MIN || bridge_v4_bits(ret) > PREFIX_MAX)
		return error_set(err, ERR_CONFIG, 0, "'%.48s' must be a /%d to a /%d", text,
		                 PREFIX_MIN, PREFIX_MAX);
	return 0;
}

int bridge_parse_resolver(const char *text, struct cidr *ret, struct error *err)
{
	if (parse_v4(text, ret, err) < 0)
		return -1;
	if (bridge_v4_bits(ret) != 32)
		return error_set(err, ERR_CONFIG, 0, "'%.48s' is not one address", text);
	if (address_refusal(&ret->base) && bridge_parse_range(text, ret, err) < 0)
		return error_wrap(err, "boxes cannot reach it");
	return 0;
}
