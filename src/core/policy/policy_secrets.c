/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/policy/policy_internal.h"
#include "core/secret/secret.h"
#include "core/tenant/principal.h"

/*
 * Theory of operation. A box uses a secret if its request names it, the secret exists, and every
 * policy allows it: its name in network.secrets, and network.intercept if one of its hosts is
 * reached with TLS. The rules of the box have the names of its secrets; the driver gets the values
 * when it sends them to the proxy. That the box may reach the hosts at all is up to network.allow.
 */

/* Variables that make programs trust the authority of this installation. */
static const char *const trust_env[] = {
	"SSL_CERT_FILE=" BOX_BUNDLE_PATH,     "REQUESTS_CA_BUNDLE=" BOX_BUNDLE_PATH,
	"CURL_CA_BUNDLE=" BOX_BUNDLE_PATH,    "NODE_EXTRA_CA_CERTS=" BOX_BUNDLE_PATH,
	"GIT_SSL_CAINFO=" BOX_BUNDLE_PATH,    "PIP_CERT=" BOX_BUNDLE_PATH,
	"CARGO_HTTP_CAINFO=" BOX_BUNDLE_PATH,
};

struct granted {
	const struct secret *list[BOX_SECRETS_MAX];
	size_t count;
};

static const struct secret *find_secret(const struct policy_rules *rules, const char *tenant,
                                        const char *name)
{
	return rules->secrets ? secrets_find(rules->secrets, tenant ? tenant : TENANT_DEFAULT, name)
	                      : NULL;
}

char **policy_known_secrets(const struct policy_rules *rules, const char *tenant,
                            char *const *names)
{
	char **known = xcalloc(str_list_count(names) + 1, sizeof(*known));
	size_t count = 0;

	for (; *names; names++)
		if (find_secret(rules, tenant, *names))
			known[count++] = *names;
	return known;
}

static void add_env(struct box_rules *to, const struct granted *granted, bool has_tls)
{
	char **env = xcalloc(ARRAY_SIZE(trust_env) + granted->count + 1, sizeof(*env));
	size_t n = 0;

	for (size_t i = 0; has_tls && i < ARRAY_SIZE(trust_env); i++)
		env[n++] = xstrdup(trust_env[i]);
	for (size_t i = 0; i < granted->count; i++)
		if (granted->list[i]->env)
			env[n++] = xasprintf("%s=%s", granted->list[i]->env,
			                     granted->list[i]->placeholder);
	to->env = env;
}

static void apply(const struct policy_rules *rules, const struct granted *granted,
                  struct box_rules *to)
{
	bool has_tls = false;

	if (granted->count == 0)
		return;
	to->secrets = xcalloc(granted->count + 1, sizeof(*to->secrets));
	for (size_t i = 0; i < granted->count; i++) {
		to->secrets[i] = xstrdup(granted->list[i]->name);
		has_tls = has_tls || secret_has_tls(granted->list[i]);
	}
	to->bundle = has_tls ? secrets_bundle(rules->secrets) : NULL;
	add_env(to, granted, has_tls);
}

void policy_keep_secrets(const struct policy_rules *rules, const struct policy *const *policies,
                         size_t count, const char *tenant, char *const *names, struct box_rules *to)
{
	struct granted granted = {.count = 0};

	for (; names && *names && granted.count < BOX_SECRETS_MAX; names++) {
		const struct secret *secret = find_secret(rules, tenant, *names);
		bool allowed = secret && count > 0;

		for (size_t i = 0; i < count && allowed; i++)
			allowed = policy_matches(policies[i]->network_secrets.items, *names) &&
			          (policies[i]->network_intercept.value || !secret_has_tls(secret));
		if (allowed)
			granted.list[granted.count++] = secret;
	}
	apply(rules, &granted, to);
}

static int pass_policies(struct policy_deciding *in, const struct secret *secret, const char *name)
{
	char quoted[POLICY_QUOTE_LEN];

	for (size_t i = 0; i < in->policies_count; i++) {
		const struct policy *p = in->policies[i];
		struct policy_rule rule = policy_rule_of(&p->network_secrets.by, "network.secrets");

		if (!rule.policy)
			rule.policy = p->name;
		if (!policy_matches(p->network_secrets.items, name))
			return policy_refuse(in, ERR_DENIED, "secrets", &rule,
			                     "secret '%s' is not allowed",
			                     policy_quote(name, quoted));
		rule = policy_rule_of(&p->network_intercept.by, "network.intercept");
		if (!rule.policy)
			rule.policy = p->name;
		if (secret && secret_has_tls(secret) && !p->network_intercept.value)
			return policy_refuse(in, ERR_DENIED, "secrets", &rule,
			                     "secret '%s' has hosts with TLS, which the proxy may "
			                     "not intercept; \"true\" allows it",
			                     secret->name);
	}
	return 0;
}

static bool share_host(const struct secret *a, const struct secret *b)
{
	for (char *const *host = a->hosts; *host; host++)
		if (str_list_has(b->hosts, *host))
			return true;
	return false;
}

/* Two secrets cannot be in the same header. */
static int check_collision(const struct granted *granted, const struct secret *secret,
                           struct error *err)
{
	for (size_t i = 0; i < granted->count; i++) {
		const struct secret *other = granted->list[i];

		if (other == secret)
			return error_field(err, "secrets", "names '%s' twice", secret->name);
		if (share_host(other, secret) && strcasecmp(other->header, secret->header) == 0 &&
		    (other->mode == SECRET_HEADER || secret->mode == SECRET_HEADER))
			return error_field(err, "secrets",
			                   "'%s' and '%s' are for the same header of a host",
			                   other->name, secret->name);
		if (other->env && secret->env && str_equal(other->env, secret->env))
			return error_field(err, "secrets",
			                   "'%s' and '%s' are for the same variable", other->name,
			                   secret->name);
	}
	return 0;
}

/* Permission before existence. */
static int grant(struct policy_deciding *in, const char *name, struct granted *granted)
{
	const struct secret *secret = find_secret(in->rules, in->request->tenant, name);
	char quoted[POLICY_QUOTE_LEN];

	if (pass_policies(in, secret, name) < 0)
		return -1;
	if (!secret)
		return error_field(in->err, "secrets", "there is no secret '%s'",
		                   policy_quote(name, quoted));
	if (!secrets_is_usable(in->rules->secrets, secret))
		return error_set(
			in->err, ERR_UNAVAILABLE, 0,
			"secret '%s' cannot be decrypted: its key is missing; set it again",
			secret->name);
	if (check_collision(granted, secret, in->err) < 0)
		return -1;
	granted->list[granted->count++] = secret;
	return 0;
}

int policy_allow_secrets(struct policy_deciding *in)
{
	static const struct policy_rule no_policy = {.by = POLICY_BY_PROGRAM,
	                                             .path = "network.secrets"};
	char *const *names = in->request->secrets;
	struct granted granted = {.count = 0};

	if (!names || !*names)
		return 0;
	if (in->policies_count == 0)
		return policy_refuse(in, ERR_DENIED, "secrets", &no_policy,
		                     "only a policy can allow secrets");
	if (in->d.spec.network != BOX_NETWORK_ALLOWLIST)
		return error_field(in->err, "secrets",
		                   "can be used with network 'allowlist' only, not with '%s'",
		                   box_network_name(in->d.spec.network));
	if (str_list_count(names) > BOX_SECRETS_MAX)
		return error_field(in->err, "secrets", "at most %d can be used", BOX_SECRETS_MAX);
	for (; *names; names++)
		if (grant(in, *names, &granted) < 0)
			return -1;
	apply(in->rules, &granted, in->d.spec.rules);
	return 0;
}
