/* SPDX-License-Identifier: Apache-2.0 */
#include "service/reach.h"

#include "base/alloc.h"
#include "base/str.h"
#include <stdlib.h>

struct box_rules *box_rules_new(const char *const *texts, size_t count)
{
	struct box_rules *r = xcalloc(1, sizeof(*r) + count * sizeof(*r->texts));

	r->refs = 1;
	r->count = count;
	for (size_t i = 0; i < count; i++)
		r->texts[i] = xstrdup(texts[i]);
	return r;
}

struct box_rules *box_rules_ref(struct box_rules *r)
{
	if (r)
		r->refs++;
	return r;
}

void box_rules_unref(struct box_rules *r)
{
	if (!r || --r->refs > 0)
		return;
	for (size_t i = 0; i < r->count; i++)
		free(r->texts[i]);
	str_list_free(r->secrets);
	str_list_free(r->env);
	free(r);
}
