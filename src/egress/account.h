/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what a box, or all boxes of a tenant, have used and may use. Pure. */

#include "egress/order.h"
#include <stdbool.h>
#include <stddef.h>

struct account {
	struct egress_limits limits;
	uint32_t connections; /* open now */
	uint64_t bytes;       /* both directions */
	uint64_t debt;        /* bytes that the rate has not paid for yet, in millionths */
	uint64_t seen_us;
	uint64_t opened; /* new connections that the rate has not paid for yet, in millionths */
	uint64_t opened_us;
};

/** account_may_open - whether the rate of new connections allows one now. */
bool account_may_open(struct account *a, uint64_t now_us);
void account_open(struct account *a);

bool account_has_connection(const struct account *a);
/** account_room - how many bytes may be received now. 0: wait, or none are left. */
size_t account_room(struct account *a, uint64_t now_us);
bool account_is_used_up(const struct account *a);
void account_add(struct account *a, size_t bytes);
