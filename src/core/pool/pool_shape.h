/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the boxes of one pool have in common; for pool.c only. Shapes are compared in full; the
 * hash speeds up the search.
 */

#include "core/policy/policy.h"
#include <stdbool.h>
#include <stdint.h>

struct pool_shape {
	uint64_t hash;
	struct box_spec spec;        /* without ids */
	const struct runner *runner; /* NULL: the box is empty */
	char **argv, **env;          /* waiting process; NULL: none */
	bool resident;               /* a session's runner */
};

/** pool_shape_of - of boxes of @tenant; borrows from @d. Return: whether it can be pooled. */
bool pool_shape_of(const struct policy_decision *d, const char *tenant,
                   struct pool_shape *ret_shape);
bool pool_shape_is(const struct pool_shape *a, const struct pool_shape *b);
/** pool_shape_copy - owned; free with pool_shape_done. */
void pool_shape_copy(const struct pool_shape *from, struct pool_shape *ret_shape);
void pool_shape_done(struct pool_shape *shape);
