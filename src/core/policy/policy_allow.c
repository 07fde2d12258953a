/* SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/runners.h"
#include "core/policy/policy_internal.h"
#include "core/template/images.h"
#include "core/template/template.h"
#include "wire/layer.h"

/* Of an allowed list, in errors. */
#define SHOWN_LEN 80
#define NAME_LEN  64

/* Available on every supported host, for any user of the daemon. */
#define STANDARD_LAYERS                                                                            \
	(LAYER_BIT(LAYER_USER) | LAYER_BIT(LAYER_PID) | LAYER_BIT(LAYER_MNT) |                     \
	 LAYER_BIT(LAYER_NET) | LAYER_BIT(LAYER_IPC) | LAYER_BIT(LAYER_UTS) |                      \
	 LAYER_BIT(LAYER_CAPS) | LAYER_BIT(LAYER_NO_NEW_PRIVS) | LAYER_BIT(LAYER_SECCOMP) |        \
	 LAYER_BIT(LAYER_RLIMITS))

bool policy_matches(char *const *patterns, const char *name)
{
	for (; patterns && *patterns; patterns++)
		if (fnmatch(*patterns, name, 0) == 0)
			return true;
	return false;
}

/* A rule about any name of an object applies. */
static bool matches_any(char *const *patterns, const char *name, char *const *aliases)
{
	if (policy_matches(patterns, name))
		return true;
	for (; aliases && *aliases; aliases++)
		if (policy_matches(patterns, *aliases))
			return true;
	return false;
}

static const char *show_list(char *const *items, char ret_text[SHOWN_LEN])
{
	size_t n = 0;

	(void)snprintf(ret_text, SHOWN_LEN, "nothing");
	for (; *items && n + strlen(*items) + 8 < SHOWN_LEN; items++)
		n += (size_t)snprintf(ret_text + n, SHOWN_LEN - n, "%s%s", n ? ", " : "", *items);
	if (*items)
		(void)snprintf(ret_text + n, SHOWN_LEN - n, ", ...");
	return ret_text;
}

struct candidate {
	const char *field; /* of the request */
	const char *what;  /* "language" */
	const char *name;
	char *const *aliases;     /* may be NULL */
	const char *allow, *deny; /* keys */
};

static int pass_filter(struct policy_deciding *in, const struct policy_filter *filter,
                       const struct candidate *c)
{
	const struct policy_rule deny = policy_rule_of(&filter->deny.by, c->deny);
	const struct policy_rule allow = policy_rule_of(&filter->allow.by, c->allow);
	char quoted[POLICY_QUOTE_LEN], shown[SHOWN_LEN];

	if (filter->deny.items && matches_any(filter->deny.items, c->name, c->aliases))
		return policy_refuse(
			in, ERR_DENIED, c->field, &deny, "%s '%s' is denied; denied: %s", c->what,
			policy_quote(c->name, quoted), show_list(filter->deny.items, shown));
	if (filter->allow.items && !matches_any(filter->allow.items, c->name, c->aliases))
		return policy_refuse(in, ERR_DENIED, c->field, &allow,
		                     "%s '%s' is not allowed; allowed: %s", c->what,
		                     policy_quote(c->name, quoted),
		                     show_list(filter->allow.items, shown));
	return 0;
}

int policy_allow_language(struct policy_deciding *in)
{
	const struct runner *r = in->d.runner;
	const struct candidate c = {"language", "language",        r->name,
	                            r->aliases, "languages.allow", "languages.deny"};

	in->d.language = (struct policy_rule){.by = POLICY_BY_REQUEST, .path = "language"};
	for (size_t i = 0; i < in->policies_count; i++) {
		const struct policy_list *allow = &in->policies[i]->languages.allow;

		if (pass_filter(in, &in->policies[i]->languages, &c) < 0)
			return -1;
		if (allow->items)
			in->d.language = policy_rule_of(&allow->by, "languages.allow");
	}
	return 0;
}

int policy_allow_template(struct policy_deciding *in, const char *template)
{
	const struct candidate c = {"template_id", "template",        template,
	                            NULL,          "templates.allow", "templates.deny"};

	for (size_t i = 0; i < in->policies_count; i++)
		if (pass_filter(in, &in->policies[i]->templates, &c) < 0)
			return -1;
	return 0;
}

int policy_allow_manager(struct policy_deciding *in, const char *field, const char *manager)
{
	const struct candidate c = {field, "package manager", manager,
	                            NULL,  "packages.allow",  "packages.deny"};

	for (size_t i = 0; i < in->policies_count; i++)
		if (pass_filter(in, &in->policies[i]->packages, &c) < 0)
			return -1;
	return 0;
}

/* A layer of a template was perhaps installed under another policy. */
int policy_allow_layer(struct policy_deciding *in)
{
	const struct template *t = in->request->template;

	if (!t || !t->packages)
		return 0;
	if (policy_allow_manager(in, "template_id", t->spec.manager ? t->spec.manager : "") < 0)
		return -1;
	for (size_t i = 0; i < in->policies_count; i++) {
		const struct policy_number *max = &in->policies[i]->packages_bytes;
		const struct policy_rule rule = policy_rule_of(&max->by, "packages.max_size");

		if (max->value > 0 && t->packages->bytes > max->value)
			return policy_refuse(in, ERR_TOO_LARGE, "template_id", &rule,
			                     "the template's packages take %llu bytes, the maximum "
			                     "is %llu",
			                     (unsigned long long)t->packages->bytes,
			                     (unsigned long long)max->value);
	}
	return 0;
}

int policy_allow_env(struct policy_deciding *in)
{
	for (char *const *v = in->request->env; v && *v; v++) {
		char name[NAME_LEN];
		const struct candidate c = {"env_vars", "variable",  name,
		                            NULL,       "env.allow", "env.deny"};
		size_t len = strcspn(*v, "=");

		/* A truncated name could match a pattern that the full name does not. */
		if (len >= sizeof(name))
			return error_field(in->err, "env_vars", "a name has at most %zu bytes",
			                   sizeof(name) - 1);
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, *v);
		for (size_t i = 0; i < in->policies_count; i++)
			if (pass_filter(in, &in->policies[i]->env, &c) < 0)
				return -1;
	}
	return 0;
}

/* No driver implements these yet: refuse rather than grant less than the policy says. */
int policy_allow_extras(struct policy_deciding *in)
{
	const struct driver_caps *caps = &in->driver->caps;

	for (size_t i = 0; i < in->policies_count; i++) {
		const struct policy *p = in->policies[i];
		const struct {
			const struct policy_list *list;
			const char *path, *what;
			bool can;
		} extras[] = {
			{&p->mounts, "mounts", "folders of the host", caps->can_mount},
		};

		for (size_t j = 0; j < ARRAY_SIZE(extras); j++) {
			const struct policy_list *list = extras[j].list;
			const struct policy_rule rule = policy_rule_of(&list->by, extras[j].path);

			if (list->items && list->items[0] && !extras[j].can)
				return policy_refuse(in, ERR_UNAVAILABLE, "", &rule,
				                     "it gives boxes %s, which this driver "
				                     "cannot",
				                     extras[j].what);
		}
	}
	return 0;
}

static uint32_t layers_named(char *const *names)
{
	uint32_t layers = 0;

	for (; names && *names; names++)
		for (unsigned i = 0; i < LAYER_COUNT; i++)
			if (str_equal(*names, layer_name((enum wire_layer)i)))
				layers |= LAYER_BIT(i);
	return layers;
}

static int refuse_host(struct policy_deciding *in, const struct policy_rule *rule)
{
	return policy_refuse(in, ERR_DENIED, "network", rule,
	                     "isolation layer 'net' is required, which a box with network 'host' "
	                     "lacks; ask for another network");
}

static int require_layers(struct policy_deciding *in, uint32_t layers,
                          const struct policy_rule *rule)
{
	uint32_t missing = layers & ~in->driver->caps.layers;

	if (layers & ~in->d.spec.required_layers)
		in->d.isolation = *rule;
	in->d.spec.required_layers |= layers;
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (missing & LAYER_BIT(i))
			return policy_refuse(
				in, ERR_UNAVAILABLE, "", rule,
				"isolation layer '%s' is required and missing on this host",
				layer_name((enum wire_layer)i));
	if ((layers & LAYER_BIT(LAYER_NET)) && in->d.spec.network == BOX_NETWORK_HOST)
		return refuse_host(in, rule);
	return 0;
}

struct requirement {
	uint32_t layers;
	struct policy_rule rule;
};

static void requirements_of(const struct policy *p, struct requirement ret_both[2])
{
	static const uint32_t by_min[] = {
		[POLICY_MIN_NONE] = 0,
		[POLICY_MIN_STANDARD] = STANDARD_LAYERS,
		[POLICY_MIN_FULL] = LAYERS_ALL,
	};

	ret_both[0] =
		(struct requirement){layers_named(p->isolation_require.items),
	                             policy_rule_of(&p->isolation_require.by, "isolation.require")};
	ret_both[1] = (struct requirement){by_min[p->isolation_min.value],
	                                   policy_rule_of(&p->isolation_min.by, "isolation.min")};
}

/* Fail closed: nothing runs if a required layer is missing. */
int policy_allow_isolation(struct policy_deciding *in)
{
	static const struct policy_rule strict = {.by = POLICY_BY_SETTING, .path = "isolation"};

	uint32_t by_setting = in->driver->caps.required_layers;

	/* The policy names the network, and with it what is missing. */
	if (in->d.spec.network == BOX_NETWORK_HOST)
		by_setting &= ~LAYER_BIT(LAYER_NET);
	if (in->rules->config->isolation == CONFIG_ISOLATION_STRICT &&
	    require_layers(in, by_setting, &strict) < 0)
		return -1;
	for (size_t i = 0; i < in->policies_count; i++) {
		struct requirement both[2];

		requirements_of(in->policies[i], both);
		if (require_layers(in, both[0].layers, &both[0].rule) < 0 ||
		    require_layers(in, both[1].layers, &both[1].rule) < 0)
			return -1;
	}
	return 0;
}

/* Other layers that the host lacks do not matter to a box that runs. */
int policy_keep_host(struct policy_deciding *in)
{
	for (size_t i = 0; i < in->policies_count; i++) {
		struct requirement both[2];

		requirements_of(in->policies[i], both);
		for (size_t j = 0; j < ARRAY_SIZE(both); j++)
			if (both[j].layers & LAYER_BIT(LAYER_NET))
				return refuse_host(in, &both[j].rule);
	}
	return 0;
}

/* One that keeps variables keeps files. */
static bool allows_mode(const struct policy *p, enum session_mode mode)
{
	char *const *modes = p->session_modes.items;

	return !modes || policy_matches(modes, session_mode_name(mode)) ||
	       (mode == SESSION_WORKSPACE &&
	        policy_matches(modes, session_mode_name(SESSION_PERSISTENT)));
}

/* NULL: all allow it. */
static const struct policy *find_refusing(const struct policy_deciding *in, enum session_mode mode)
{
	for (size_t i = 0; i < in->policies_count; i++)
		if (!allows_mode(in->policies[i], mode))
			return in->policies[i];
	return NULL;
}

int policy_allow_session(struct policy_deciding *in)
{
	enum session_mode mode = in->session->mode;
	const struct policy *p = find_refusing(in, mode);
	const struct policy_list *modes;
	struct policy_rule rule;
	char shown[SHOWN_LEN];

	if (p && in->session->mode_soft && !find_refusing(in, SESSION_EPHEMERAL)) {
		mode = SESSION_EPHEMERAL;
		p = NULL;
	}
	in->d.mode = mode;
	if (!p)
		return 0;
	modes = &p->session_modes;
	rule = policy_rule_of(&modes->by, "sessions.modes");
	return policy_refuse(in, ERR_DENIED, "mode", &rule,
	                     "sessions of mode '%s' are not allowed; allowed: %s",
	                     session_mode_name(mode), show_list(modes->items, shown));
}
