/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode.h"

#include "api/json/json.h"
#include "base/str.h"
#include "core/identity/scope.h"
#include "core/policy/policies.h"
#include "core/policy/policy.h"
#include "core/run/run.h"
#include "core/tenant/principal.h"

#define VALUE_LEN 64

bool encode_policy_is_seen(const struct run_service *runs, const struct principal *p,
                           const struct policy *policy)
{
	return !p->key_id || scope_allows(p->scopes, SCOPE_ADMIN) ||
	       policy == run_service_policy_of(runs, p->tenant) ||
	       policies_can_select(run_service_policies(runs), policy->name);
}

json_t *encode_policy_head(const struct run_service *runs, const struct principal *p,
                           const struct policy *policy)
{
	const struct policies *all = run_service_policies(runs);
	json_t *j = json_object();

	json_set(j, "name", encode_text(policy->name));
	json_set(j, "description", encode_text(policy->description));
	json_set(j, "extends", encode_text(policy->extends));
	json_set(j, "yours", json_boolean(policy == run_service_policy_of(runs, p->tenant)));
	json_set(j, "selectable", json_boolean(policies_can_select(all, policy->name)));
	return j;
}

static json_t *rule_value(const struct policy_key *key, const struct policy *policy)
{
	char *const *items = policy_key_list(key, policy);
	char value[VALUE_LEN];

	if (items)
		return encode_texts(items);
	policy_key_print(key, policy, value, sizeof(value));
	return json_string(value);
}

static json_t *rules_of(const struct policy *policy)
{
	json_t *rules = json_array();
	const struct policy_key *key;

	for (size_t i = 0; (key = policy_key_at(i)); i++) {
		struct policy_source by = policy_key_source(key, policy);
		json_t *rule;

		if (by.line == 0)
			continue;
		rule = json_object();
		json_set(rule, "path", json_string(policy_key_path(key)));
		json_set(rule, "value", rule_value(key, policy));
		json_set(rule, "policy", encode_text(by.policy));
		json_set(rule, "line", json_integer(by.line));
		json_append(rules, rule);
	}
	return rules;
}

json_t *encode_policy(const struct run_service *runs, const struct principal *p,
                      const struct policy *policy)
{
	json_t *j = encode_policy_head(runs, p, policy);

	json_set(j, "rules", rules_of(policy));
	return j;
}

json_t *encode_cuts(const struct policy_cuts *cuts)
{
	json_t *j = cuts ? json_object() : NULL;

	for (size_t i = 0; cuts && i < cuts->count; i++) {
		const struct policy_cut *cut = &cuts->list[i];
		json_t *item = json_object();

		json_set(item, "requested", json_string(cut->asked));
		json_set(item, "granted", json_string(cut->granted));
		json_set(item, "reason", encode_text(cut->why));
		json_set(j, cut->name, item);
	}
	return j;
}

void encode_cuts_warn(const struct policy_cuts *cuts, const char *only, json_t *warnings)
{
	for (size_t i = 0; cuts && i < cuts->count; i++) {
		const struct policy_cut *cut = &cuts->list[i];

		if (!only || str_equal(only, cut->name))
			json_append(warnings,
			            json_sprintf("%s: %s was requested, %s is granted: %s",
			                         cut->field, cut->asked, cut->granted, cut->why));
	}
}

void encode_cuts_tell(const struct policy_cuts *cuts, json_t *view, json_t *warnings)
{
	if (!cuts)
		return;
	json_set(view, "limits", encode_cuts(cuts));
	encode_cuts_warn(cuts, NULL, warnings);
}
