/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the rules of network bridge refused a box, over a socket from millibox-bridge
 * (bridge/order.h). Equal ones are counted together, REFUSALS_MAX different ones are kept until
 * they are taken.
 */

#include "base/attr.h"
#include "bridge/order.h"
#include "service/reach.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REFUSALS_MAX   32
#define REFUSALS_PORTS 16

struct refusals {
	int sock;      /* borrowed; -1: none */
	bool is_asked; /* and not answered yet */
	size_t count;
	struct {
		struct bridge_refusal what; /* without .from */
		uint64_t times;
		uint16_t from[REFUSALS_PORTS]; /* TCP: the latest, oldest first */
	} rows[REFUSALS_MAX];
};

/** refusals_ask - have those so far reported. */
void refusals_ask(struct refusals *r);
/** refusals_settle - wait up to @wait_us for the answer; others wait meanwhile. Return: whether
 * none is due. */
bool refusals_settle(struct refusals *r, uint64_t wait_us);
/** refusals_take - receive, then move up to @max to @ret. Return: their number. */
size_t refusals_take(struct refusals *r, struct box_denial *ret, size_t max);
