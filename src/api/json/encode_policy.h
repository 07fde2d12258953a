/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: policies as JSON, and who sees which. */

#include "base/attr.h"
#include <jansson.h>
#include <stdbool.h>

struct run_service;
struct policy;
struct principal;

/** encode_policy_is_seen - callers without a key and administrators see all policies, others those
 * that apply to them or that they may select. */
bool encode_policy_is_seen(const struct run_service *runs, const struct principal *p,
                           const struct policy *policy);
/** encode_policy_head - without its rules. Return: owned. */
json_t *encode_policy_head(const struct run_service *runs, const struct principal *p,
                           const struct policy *policy) attr_must_check;
/** encode_policy - with them. Return: owned. */
json_t *encode_policy(const struct run_service *runs, const struct principal *p,
                      const struct policy *policy) attr_must_check;
