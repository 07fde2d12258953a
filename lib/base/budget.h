/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: memory that holders share, as the connections of all tenants share that of a proxy. Every
 * object has a cost, which its owner keeps and changes here. While most of the memory is used, the
 * holder that has most waits; when nearly all of it is, that holder loses objects, so that an
 * allocation never fails and nobody else notices. Pure.
 */

#include "base/attr.h"
#include "base/list.h"
#include <stdbool.h>
#include <stddef.h>

struct budget {
	size_t bytes, used;
	struct list holders; /* struct budget_holder */
};

struct budget_holder {
	struct list node;
	size_t used;
};

void budget_init(struct budget *b, size_t bytes);
void budget_join(struct budget *b, struct budget_holder *h);
/** budget_leave - its objects cost nothing any more. */
void budget_leave(struct budget_holder *h);

/** budget_set - an object of @h that cost *@cost costs @now. */
void budget_set(struct budget *b, struct budget_holder *h, size_t *cost, size_t now);

/** budget_is_short - more than 70 % are used. */
bool budget_is_short(const struct budget *b);
/** budget_is_full - more than 85 % are used: the holder that has most loses objects. */
bool budget_is_full(const struct budget *b);
/** budget_largest - the holder that has most; NULL: nothing is used. */
struct budget_holder *budget_largest(const struct budget *b);
/** budget_must_wait - memory is short, and no other holder has more than @h. */
bool budget_must_wait(const struct budget *b, const struct budget_holder *h);
