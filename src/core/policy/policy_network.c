/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/policy/policies.h"
#include "core/policy/policy_internal.h"
#include "driver/driver.h"
#include "egress/rules.h"

#define ANY_NAME "*" /* in network.request */
#define NAMED    "network_allow"

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
	{"nuget", offsetof(struct config, egress_nuget)},
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

static bool is_given(const struct config *config, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		if (str_equal(sets[i].name, name))
			return config_is_given(config, sets[i].offset);
	return false;
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

static void add_word(const struct config *config, const char *word, struct texts *to)
{
	char *const *set = find_set(config, word);

	if (!set)
		add_text(to, word);
	for (; set && *set; set++)
		add_text(to, *set);
}

static void add_list(const struct config *config, char *const *items, struct texts *to)
{
	for (; items && *items; items++)
		if (!str_equal(*items, ANY_NAME))
			add_word(config, *items, to);
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

static struct box_rules *make_rules(const struct config *c, const struct texts *texts)
{
	struct box_rules *rules = box_rules_new(texts->all, texts->count);

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

struct box_rules *policy_registry_rules(const struct config *config, const char *set,
                                        const char *rule, bool is_public)
{
	struct texts texts = {.count = 0};

	add_text(&texts, rule);
	if (!is_public && !is_given(config, set))
		return make_rules(config, &texts);
	for (char *const *item = find_set(config, set); item && *item; item++)
		add_text(&texts, *item);
	return make_rules(config, &texts);
}

/* The rules that every policy has, word for word: none grants more than another. *ret_by: the
 * policy that narrowed them last; may be NULL. */
static struct box_rules *rules_for(const struct config *c, const struct policy *const *policies,
                                   size_t count, size_t *ret_by)
{
	struct texts texts = {.count = 0}, other;
	size_t by = 0;

	for (size_t i = 0; i < count; i++) {
		size_t before = texts.count;

		other.count = other.bytes = 0;
		add_list(c, policies[i]->network_allow.items, i == 0 ? &texts : &other);
		if (i > 0)
			keep_common(&texts, &other);
		if (texts.count < before)
			by = i;
	}
	if (ret_by)
		*ret_by = by;
	return make_rules(c, &texts);
}

/*
 * Hosts that a request names. It may name what network.allow has where the mode of the policy is
 * allowlist, every name with public addresses where it is more, and what network.request has
 * whatever the mode. A rule for addresses opens private ones: only its very text grants it.
 */

static bool list_covers(const struct config *c, char *const *items, const struct rules *one)
{
	struct texts texts = {.count = 0};
	struct error ignored = {0};
	cleanup_rules struct rules *rules = NULL;

	add_list(c, items, &texts);
	rules = rules_parse(texts.all, texts.count, &ignored);
	return rules && rules_cover(rules, one);
}

static bool grants_rule(const struct config *c, const struct policy *p, const char *text)
{
	bool has_mode = p->network_mode.value >= BOX_NETWORK_ALLOWLIST;
	char *const *own = has_mode ? p->network_allow.items : NULL;
	struct error ignored = {0};
	cleanup_rules struct rules *one = NULL;

	if (str_list_has(own, text) || str_list_has(p->network_request.items, text))
		return true;
	one = rules_parse(&text, 1, &ignored);
	if (!one)
		return false;
	if (!rules_have_address(one) && (p->network_mode.value > BOX_NETWORK_ALLOWLIST ||
	                                 str_list_has(p->network_request.items, ANY_NAME)))
		return true;
	return list_covers(c, own, one) || list_covers(c, p->network_request.items, one);
}

static bool grants_word(const struct config *c, const struct policy *p, const char *word)
{
	char *const *set = find_set(c, word);

	if (!set || str_list_has(p->network_request.items, word))
		return grants_rule(c, p, word);
	for (; *set; set++)
		if (!grants_rule(c, p, *set))
			return p->network_mode.value >= BOX_NETWORK_ALLOWLIST &&
			       str_list_has(p->network_allow.items, word);
	return true;
}

/* Return: the policy that does not grant @word; NULL: all do. */
static const struct policy *find_refusing(const struct config *c,
                                          const struct policy *const *policies, size_t count,
                                          const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (!grants_word(c, policies[i], word))
			return policies[i];
	return NULL;
}

/* Those of @hosts that every policy grants. */
static struct box_rules *named_rules(const struct config *c, const struct policy *const *policies,
                                     size_t count, char *const *hosts)
{
	struct texts texts = {.count = 0};

	for (; count > 0 && *hosts; hosts++)
		if (!find_refusing(c, policies, count, *hosts))
			add_word(c, *hosts, &texts);
	return make_rules(c, &texts);
}

/* A key that @p does not set decides by its default. */
static struct policy_rule rule_in(const struct policy *p, const struct policy_source *by,
                                  const char *path)
{
	struct policy_rule rule = policy_rule_of(by, path);

	if (!rule.policy)
		rule.policy = p->name;
	return rule;
}

/* What the proxy allows the box, and why; policy_allow_secrets adds secrets. */
static void allow_hosts(struct policy_deciding *in)
{
	const struct policy *secrets = in->policies[0], *intercept = in->policies[0];
	char *const *hosts = in->request->network_allow;
	struct policy_reach *to = &in->d.reach;
	size_t by = 0;

	in->d.spec.rules =
		hosts ? named_rules(in->rules->config, in->policies, in->policies_count, hosts)
		      : rules_for(in->rules->config, in->policies, in->policies_count, &by);
	for (size_t i = 1; i < in->policies_count; i++) {
		if (secrets->network_secrets.items && !in->policies[i]->network_secrets.items)
			secrets = in->policies[i];
		if (intercept->network_intercept.value && !in->policies[i]->network_intercept.value)
			intercept = in->policies[i];
	}
	to->intercept = intercept->network_intercept.value;
	to->allow_rule = hosts ? (struct policy_rule){.by = POLICY_BY_REQUEST, .path = NAMED}
	                       : rule_in(in->policies[by], &in->policies[by]->network_allow.by,
	                                 "network.allow");
	to->secrets_rule = rule_in(secrets, &secrets->network_secrets.by, "network.secrets");
	to->intercept_rule =
		rule_in(intercept, &intercept->network_intercept.by, "network.intercept");
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

/* Why the driver lacks a network, and what to do instead. */
static const char *const remedies[BOX_NETWORK_COUNT] = {
	[BOX_NETWORK_ALLOWLIST] = "ask for \"none\"",
	[BOX_NETWORK_BRIDGE] = "the operator enables it with bridge.enabled, as root; or ask for "
			       "\"allowlist\" or \"none\"",
	[BOX_NETWORK_HOST] = "the operator enables it with host_network.enabled; or ask for "
			     "\"bridge\", \"allowlist\" or \"none\"",
};

/* Return: the bit of a range of bridge.allow; 0: none that a policy can name. */
static uint16_t bit_of_range(const struct config *c, const char *text)
{
	for (unsigned i = 0; c->bridge_allow && c->bridge_allow[i] && i < BOX_RANGES_NAMED; i++)
		if (str_equal(c->bridge_allow[i], text))
			return (uint16_t)(1U << i);
	return 0;
}

/* What every policy grants of the operator's private ranges. */
static int allow_ranges(struct policy_deciding *in)
{
	const struct config *c = in->rules->config;
	uint16_t granted = BOX_RANGES_ALL;

	in->d.reach.ranges_rule =
		(struct policy_rule){.by = POLICY_BY_SETTING, .path = "bridge.allow"};
	for (size_t i = 0; i < in->policies_count; i++) {
		const struct policy_list *list = &in->policies[i]->network_ranges;
		const struct policy_rule rule = policy_rule_of(&list->by, "network.ranges");
		uint16_t bits = 0;

		for (char *const *item = list->items; item && *item; item++) {
			uint16_t bit = bit_of_range(c, *item);

			if (!bit)
				return policy_refuse(in, ERR_UNAVAILABLE, "network", &rule,
				                     "%.48s is not among the first %d ranges of "
				                     "the setting bridge.allow",
				                     *item, BOX_RANGES_NAMED);
			bits |= bit;
		}
		if (!list->items)
			continue;
		if (granted == BOX_RANGES_ALL || (granted & bits) != granted)
			in->d.reach.ranges_rule = rule;
		granted = granted == BOX_RANGES_ALL ? bits : granted & bits;
	}
	in->d.spec.ranges = granted;
	return 0;
}

char **policy_ranges(const struct config *c, uint16_t granted)
{
	char **names = xcalloc(str_list_count(c->bridge_allow) + 1, sizeof(*names));
	size_t count = 0;

	for (unsigned i = 0; c->bridge_allow && c->bridge_allow[i]; i++)
		if (granted == BOX_RANGES_ALL || (i < BOX_RANGES_NAMED && granted & 1U << i))
			names[count++] = c->bridge_allow[i];
	return names;
}

static int refuse_mode(struct policy_deciding *in, const struct policy_rule *rule,
                       enum box_network asked, enum box_network most)
{
	return policy_refuse(in, ERR_DENIED, "network", rule,
	                     "network '%s' is not allowed; allowed: %s", box_network_name(asked),
	                     box_network_name(most));
}

int policy_keep_network(struct policy_deciding *in, enum box_network network)
{
	struct policy_rule rule;
	enum box_network most = network_of(in, &rule);

	if (network > most)
		return refuse_mode(in, &rule, network, most);
	in->d.spec.network = network;
	if (network == BOX_NETWORK_BRIDGE)
		return allow_ranges(in);
	return network == BOX_NETWORK_HOST ? policy_keep_host(in) : 0;
}

static int check_driver(struct policy_deciding *in)
{
	static const struct policy_rule driver = {.by = POLICY_BY_DRIVER, .path = "network"};
	enum box_network granted = in->d.spec.network;

	if (granted == BOX_NETWORK_NONE || (in->driver->caps.networks & BOX_NETWORK_BIT(granted)))
		return 0;
	assert(granted < BOX_NETWORK_COUNT);
	return policy_refuse(in, ERR_UNAVAILABLE, "network", &driver,
	                     "the policy gives network '%s', which boxes do not have here; %s",
	                     box_network_name(granted), remedies[granted]);
}

static int check_word(struct policy_deciding *in, const char *word)
{
	const struct policy *refusing =
		find_refusing(in->rules->config, in->policies, in->policies_count, word);
	struct error why = {0};
	cleanup_rules struct rules *rules = rules_parse(&word, 1, &why);
	struct policy_rule rule = {.by = POLICY_BY_PROGRAM, .path = "network.request"};
	char quoted[POLICY_QUOTE_LEN];

	if (!rules)
		return error_field(in->err, NAMED, "'%s': %.120s", policy_quote(word, quoted),
		                   why.msg);
	if (in->request->network_most || (!refusing && in->policies_count > 0))
		return 0;
	if (refusing) {
		rule = rule_in(refusing, &refusing->network_request.by, "network.request");
		rule.by = POLICY_BY_POLICY;
	}
	if (rules_have_address(rules))
		return policy_refuse(in, ERR_DENIED, NAMED, &rule,
		                     "requests may not name the address '%s'; only a policy "
		                     "that has this very rule opens it",
		                     policy_quote(word, quoted));
	return policy_refuse(in, ERR_DENIED, NAMED, &rule,
	                     "requests may not name '%s'; the policy \"owner\" lets them name "
	                     "public hosts",
	                     policy_quote(word, quoted));
}

static bool may_name(const struct policy_deciding *in)
{
	for (size_t i = 0; i < in->policies_count; i++)
		if (in->policies[i]->network_mode.value < BOX_NETWORK_ALLOWLIST &&
		    !in->policies[i]->network_request.items)
			return false;
	return in->policies_count > 0;
}

/* The request has a list of hosts. An empty one is no host: less than any policy grants. */
static int allow_named(struct policy_deciding *in)
{
	const struct run_request *r = in->request;
	char *const *hosts = r->network_allow;
	bool asks_none = r->network_asked && r->network == BOX_NETWORK_NONE;

	if (r->network_asked && r->network != BOX_NETWORK_ALLOWLIST && (*hosts || !asks_none))
		return error_field(in->err, NAMED, "is for network 'allowlist', not for '%s'",
		                   box_network_name(r->network));
	for (char *const *host = hosts; *host; host++)
		if (check_word(in, *host) < 0)
			return -1;
	in->d.network = (struct policy_rule){.by = POLICY_BY_REQUEST, .path = NAMED};
	in->d.spec.network = in->policies_count > 0 && (*hosts || (may_name(in) && !asks_none))
	                             ? BOX_NETWORK_ALLOWLIST
	                             : BOX_NETWORK_NONE;
	if (in->d.spec.network == BOX_NETWORK_ALLOWLIST)
		allow_hosts(in);
	return check_driver(in);
}

int policy_allow_network(struct policy_deciding *in)
{
	const struct run_request *r = in->request;
	struct policy_rule rule;
	enum box_network most = network_of(in, &rule);
	bool is_asked = r->network_asked && !(r->network_most && r->network > most);
	enum box_network granted = is_asked ? r->network : most;

	if (r->network_allow)
		return allow_named(in);
	if (granted > most)
		return refuse_mode(in, &rule, granted, most);
	if (is_asked)
		rule = (struct policy_rule){.by = POLICY_BY_REQUEST, .path = "network"};
	in->d.network = rule;
	in->d.spec.network = granted;
	if (granted == BOX_NETWORK_ALLOWLIST)
		allow_hosts(in);
	if (granted == BOX_NETWORK_BRIDGE && allow_ranges(in) < 0)
		return -1;
	return check_driver(in);
}

struct box_rules *policy_network_rules(const struct policy_rules *rules,
                                       const struct policy_stack *stack,
                                       const struct policy_box *box)
{
	const struct policy *const both[] = {stack->own, stack->chosen};
	const struct policy *granting[ARRAY_SIZE(both)];
	struct box_rules *made;
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		if (!both[i])
			continue;
		if (!box->hosts && both[i]->network_mode.value < BOX_NETWORK_ALLOWLIST)
			return rules_for(rules->config, granting, 0, NULL);
		granting[count++] = both[i];
	}
	made = box->hosts ? named_rules(rules->config, granting, count, box->hosts)
	                  : rules_for(rules->config, granting, count, NULL);
	policy_keep_secrets(rules, granting, count, box->tenant, box->secrets, made);
	return made;
}
