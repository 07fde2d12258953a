/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: policies as JSON, and who sees which. */

#include "base/attr.h"
#include <jansson.h>
#include <stdbool.h>

struct policy;
struct principal;
struct router;

/** view_policy_is_seen - by @p: whoever runs the daemon sees all, others those that they can be
 * held to. */
bool view_policy_is_seen(struct router *r, const struct principal *p, const struct policy *policy);
/** view_policy_head - without its rules. Return: owned. */
json_t *view_policy_head(struct router *r, const struct principal *p,
                         const struct policy *policy) attr_must_check;
/** view_policy - with them. Return: owned. */
json_t *view_policy(struct router *r, const struct principal *p,
                    const struct policy *policy) attr_must_check;
