/* SPDX-License-Identifier: Apache-2.0 */
#include "base/budget.h"

#include <assert.h>

/* Percent. The rest is for what has no cost, and for what malloc loses between blocks. */
#define SHORT 70
#define FULL  85

void budget_init(struct budget *b, size_t bytes)
{
	*b = (struct budget){.bytes = bytes};
	list_init(&b->holders);
}

void budget_join(struct budget *b, struct budget_holder *h)
{
	h->used = 0;
	list_append(&b->holders, &h->node);
}

void budget_leave(struct budget_holder *h)
{
	assert(h->used == 0);
	list_remove(&h->node);
}

void budget_set(struct budget *b, struct budget_holder *h, size_t *cost, size_t now)
{
	assert(h->used >= *cost && b->used >= *cost);
	h->used += now - *cost;
	b->used += now - *cost;
	*cost = now;
}

static bool is_above(const struct budget *b, unsigned percent)
{
	return b->used > b->bytes / 100 * percent;
}

bool budget_is_short(const struct budget *b)
{
	return is_above(b, SHORT);
}

bool budget_is_full(const struct budget *b)
{
	return is_above(b, FULL);
}

struct budget_holder *budget_largest(const struct budget *b)
{
	struct budget_holder *h, *most = NULL;

	LIST_FOREACH (h, &b->holders, struct budget_holder, node)
		if (h->used > (most ? most->used : 0))
			most = h;
	return most;
}

bool budget_must_wait(const struct budget *b, const struct budget_holder *h)
{
	const struct budget_holder *most = budget_is_short(b) ? budget_largest(b) : NULL;

	return most && h->used >= most->used;
}
