/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any policy file: rejected with its name in the error, or accepted; then every rule has a line,
 * every number can be printed, and it can be merged with another and with itself.
 */
#include "core/policy/policies.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "fuzz.h"

static void check_rules(const struct policy *policy)
{
	const struct policy_key *key;
	char text[64];

	for (size_t i = 0; (key = policy_key_at(i)); i++) {
		struct policy_source by = policy_key_source(key, policy);
		char *const *list = policy_key_list(key, policy);

		if (by.line == 0) {
			require(!list);
			continue;
		}
		require(by.policy && *by.policy);
		if (list) {
			require(str_list_count(list) <= POLICIES_LIST_MAX);
			continue;
		}
		policy_key_print(key, policy, text, sizeof(text));
		require(text[0]);
	}
}

static void check_limits(const struct policy *policy)
{
	for (size_t i = 0; i < POLICY_LIMIT_COUNT; i++) {
		const struct policy_limit *l = &policy->limits[i];

		if (l->fallback.by.line && l->max.by.line)
			require(l->fallback.value <= l->max.value);
		require(l->on_exceed.value < POLICY_EXCEED_COUNT);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char child_text[] = "name: child\nlimits: {timeout: {max: 5s}}\n";
	struct error err = {0};
	attr_cleanup(policy_unrefp) struct policy *child =
		policy_parse(child_text, strlen(child_text), "child", &err);
	attr_cleanup(policy_unrefp) struct policy *policy =
		policy_parse((const char *)data, size, "input", &err);

	require(child);
	if (!policy) {
		require(err.code == ERR_CONFIG && str_has_prefix(err.msg, "input"));
		return 0;
	}
	require(!error_is_set(&err) && policy_is_name(policy->name));
	check_rules(policy);
	check_limits(policy);
	policy_inherit(child, policy);
	check_rules(child);
	require(child->limits[POLICY_TIMEOUT].max.value == 5000000);
	return 0;
}
