/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how much is going on, as far as it is the asker's business: all of it for an operator (scope
 * admin, or a daemon without keys), what its tenant has for others, nothing for strangers. What
 * others do at the moment is as much theirs as their files. Counters that are kept anyway.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct principal;
struct router;

struct usage {
	bool known; /* else all of it is 0, and shown as null */
	size_t running, queued, boxes, sessions;
};

/** usage_of - @p NULL: a stranger. */
struct usage usage_of(const struct router *r, const struct principal *p);
/** usage_count - one of its numbers, or null; owned. */
json_t *usage_count(const struct usage *u, size_t number);
