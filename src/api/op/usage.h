/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: current usage, as the caller may see it: all for an operator (scope admin, or a daemon
 * without keys), its own tenant's for others, nothing for unknown callers.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct principal;
struct router;

struct usage {
	bool known; /* false: all 0, shown as null */
	size_t running, queued, boxes, sessions;
};

/** usage_of - @p NULL: an unknown caller. */
struct usage usage_of(const struct router *r, const struct principal *p);
/** usage_count - null if unknown. Return: owned. */
json_t *usage_count(const struct usage *u, size_t number);
