/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/policy/policies.h"
#include "core/policy/policy_internal.h"
#include "driver/driver.h"

/* A name in network.allow that stands for the hosts of a registry. */
static const struct {
	const char *name;
	size_t offset; /* in struct config */
} sets[] = {
	{"pypi", offsetof(struct config, egress_pypi)},
	{"npm", offsetof(struct config, egress_npm)},
	{"crates", offsetof(struct config, egress_crates)},
	{"golang", offsetof(struct config, egress_golang)},
	{"maven", offsetof(struct config, egress_maven)},
	{"debian", offsetof(struct config, egress_debian)},
	{"github", offsetof(struct config, egress_github)},
};

/* Return: the rules of a set, or NULL if @name is none. */
static char *const *find_set(const struct config *config, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		if (str_equal(sets[i].name, name))
			return *(char **const *)((const char *)config + sets[i].offset);
	return NULL;
}

struct texts {
	const char *all[BOX_RULES_MAX];
	size_t count, bytes;
};

static void add_text(struct texts *to, const char *text)
{
	for (size_t i = 0; i < to->count; i++)
		if (str_equal(to->all[i], text))
			return;
	/* A policy's list is shorter; what sets add beyond is not allowed. */
	if (to->count == BOX_RULES_MAX || to->bytes + strlen(text) + 1 > BOX_RULES_BYTES)
		return;
	to->all[to->count++] = text;
	to->bytes += strlen(text) + 1;
}

static void add_policy(const struct config *config, const struct policy *p, struct texts *to)
{
	for (char *const *item = p->network_allow.items; item && *item; item++) {
		char *const *set = find_set(config, *item);

		if (!set)
			add_text(to, *item);
		for (; set && *set; set++)
			add_text(to, *set);
	}
}

static void keep_common(struct texts *a, const struct texts *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->count; i++)
		for (size_t j = 0; j < b->count; j++)
			if (str_equal(a->all[i], b->all[j])) {
				a->all[kept++] = a->all[i];
				break;
			}
	a->count = kept;
}

/* The rules that every policy has, word for word: none grants more than another. */
static struct box_rules *rules_for(const struct config *c, const struct policy *const *policies,
                                   size_t count)
{
	struct texts texts = {.count = 0}, other;
	struct box_rules *rules;

	for (size_t i = 0; i < count; i++) {
		other.count = other.bytes = 0;
		add_policy(c, policies[i], i == 0 ? &texts : &other);
		if (i > 0)
			keep_common(&texts, &other);
	}
	rules = box_rules_new(texts.all, texts.count);
	rules->limits = (struct box_network_limits){
		.connections = (uint32_t)c->egress_connections,
		.idle_ms = (uint32_t)(c->egress_idle_us / USEC_PER_MS),
		.bytes = c->egress_bytes,
		.rate = c->egress_rate,
	};
	rules->tenant_limits = rules->limits;
	rules->tenant_limits.connections = (uint32_t)c->egress_connections_tenant;
	rules->tenant_limits.opened = (uint32_t)c->egress_opened_tenant;
	rules->tenant_limits.rate = c->egress_rate_tenant;
	rules->tenant_limits.bytes = 0;
	return rules;
}

/* The least that any policy grants; unset is none. */
static enum box_network network_of(const struct policy_deciding *in, struct policy_rule *ret_rule)
{
	uint64_t least = in->policies_count ? BOX_NETWORK_COUNT : BOX_NETWORK_NONE;

	*ret_rule = (struct policy_rule){.by = POLICY_BY_PROGRAM, .path = "network"};
	for (size_t i = 0; i < in->policies_count; i++) {
		const struct policy *p = in->policies[i];

		if (p->network_mode.value >= least)
			continue;
		least = p->network_mode.value;
		*ret_rule = policy_rule_of(&p->network_mode.by, "network.mode");
		ret_rule->policy = p->network_mode.by.line ? p->network_mode.by.policy : p->name;
		ret_rule->by = POLICY_BY_POLICY;
	}
	return (enum box_network)least;
}

int policy_allow_network(struct policy_deciding *in)
{
	static const struct policy_rule driver = {.by = POLICY_BY_DRIVER, .path = "network"};
	const struct run_request *r = in->request;
	struct policy_rule rule;
	enum box_network most = network_of(in, &rule);
	enum box_network granted = r->network_asked ? r->network : most;

	if (granted > most)
		return policy_refuse(in, ERR_DENIED, "network", &rule,
		                     "network '%s' is not allowed; allowed: %s",
		                     box_network_name(granted), box_network_name(most));
	if (r->network_asked)
		rule = (struct policy_rule){.by = POLICY_BY_REQUEST, .path = "network"};
	in->d.network = rule;
	in->d.spec.network = granted;
	if (granted == BOX_NETWORK_ALLOWLIST)
		in->d.spec.rules = rules_for(in->rules->config, in->policies, in->policies_count);
	if (granted == BOX_NETWORK_NONE || (in->rules->caps->networks & BOX_NETWORK_BIT(granted)))
		return 0;
	return policy_refuse(in, ERR_UNAVAILABLE, "network", &driver,
	                     "the policy gives network '%s', which boxes do not have here; ask for "
	                     "\"none\"",
	                     box_network_name(granted));
}

struct box_rules *policy_network_rules(const struct policy_rules *rules,
                                       const struct policy_stack *stack)
{
	const struct policy *const both[] = {stack->own, stack->chosen};
	const struct policy *granting[ARRAY_SIZE(both)];
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		if (!both[i])
			continue;
		if (both[i]->network_mode.value < BOX_NETWORK_ALLOWLIST)
			return rules_for(rules->config, granting, 0);
		granting[count++] = both[i];
	}
	return rules_for(rules->config, granting, count);
}
