/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: ranges of IPv4 addresses in the settings of millibox-bridge. Pure; the daemon checks its
 * settings with it. */

#include "base/attr.h"
#include "base/error.h"
#include "egress/address.h"
#include <stdint.h>

#define BRIDGE_RANGES_MAX 64

/** bridge_parse_subnet - of boxes: /16 to /24, not public. */
int bridge_parse_subnet(const char *text, struct cidr *ret, struct error *err) attr_must_check;
/** bridge_parse_range - that boxes may reach although it is not public. */
int bridge_parse_range(const char *text, struct cidr *ret, struct error *err) attr_must_check;
/** bridge_parse_resolver - an address that boxes may ask for names. */
int bridge_parse_resolver(const char *text, struct cidr *ret, struct error *err) attr_must_check;
/** bridge_v4 - the IPv4 address of a range, in host byte order. */
uint32_t bridge_v4(const struct cidr *c);
/** bridge_v4_bits - length of its prefix, 0 to 32. */
unsigned bridge_v4_bits(const struct cidr *c);
/** bridge_boxes_max - addresses for boxes: all but the first two and the last. */
uint32_t bridge_boxes_max(const struct cidr *subnet);
