/* SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/policy/policies.h"
#include "core/policy/policy_internal.h"
#include "driver/driver.h"
#include "gateway/allow.h"
#include "gateway/spec.h"

/*
 * Tools of outside MCP servers. A box has none unless its request names some and every policy
 * grants their servers. Names of tools are known to the gateway, which checks them when they are
 * called: it gets the lists of the request and of the policies (gateway/allow.h).
 */

#define ENTRIES_MAX 64
#define TEXTS_MAX   1024
#define TEXTS_BYTES (96u * 1024)
#define FIELD       "mcp"
#define SHOWN_LEN   96

static bool is_configured(const struct config *c, const char *server)
{
	for (struct server_spec *const *s = c->servers; s && *s; s++)
		if (str_equal((*s)->name, server))
			return true;
	return false;
}

static bool matches(char *const *patterns, const char *name)
{
	for (; patterns && *patterns; patterns++)
		if (fnmatch(*patterns, name, 0) == 0)
			return true;
	return false;
}

static const char *show_list(char *const *items, char ret_text[SHOWN_LEN])
{
	size_t n = 0;

	ret_text[0] = '\0';
	for (; items && *items; items++)
		if (n + strlen(*items) + 3 < SHOWN_LEN)
			n += (size_t)snprintf(ret_text + n, SHOWN_LEN - n, "%s%s", n ? ", " : "",
			                      *items);
	return n ? ret_text : "none";
}

static int refuse_entry(struct policy_deciding *in, const struct policy *p,
                        const struct policy_list *list, const char *path, const char *entry)
{
	struct policy_rule rule = policy_rule_of(&list->by, path);
	char quoted[POLICY_QUOTE_LEN], shown[SHOWN_LEN];

	rule.by = POLICY_BY_POLICY;
	rule.policy = list->by.line ? list->by.policy : p->name;
	return policy_refuse(in, ERR_DENIED, FIELD, &rule, "MCP '%s' is not allowed; allowed: %s",
	                     policy_quote(entry, quoted), show_list(list->items, shown));
}

/* SERVER or SERVER/TOOL, of which the tool may be a pattern. */
static int check_entry(struct policy_deciding *in, const char *entry)
{
	cleanup_free char *server = xstrndup(entry, strcspn(entry, "/"));
	char quoted[POLICY_QUOTE_LEN];

	if (!allow_is_pattern(entry) || strchr(server, '*'))
		return error_field(in->err, FIELD, "'%s' is not SERVER or SERVER/TOOL",
		                   policy_quote(entry, quoted));
	for (size_t i = 0; i < in->policies_count; i++) {
		const struct policy *p = in->policies[i];

		if (!matches(p->mcp_servers.items, server))
			return refuse_entry(in, p, &p->mcp_servers, "mcp.servers", entry);
		if (p->mcp_tools.items && strchr(entry, '/') && !strchr(entry, '*') &&
		    !matches(p->mcp_tools.items, entry))
			return refuse_entry(in, p, &p->mcp_tools, "mcp.tools", entry);
	}
	if (!is_configured(in->rules->config, server))
		return error_field(
			in->err, FIELD,
			"there is no MCP server '%s'; GET /api/v1/mcp/servers lists them",
			policy_quote(server, quoted));
	return 0;
}

struct texts {
	const char *all[TEXTS_MAX];
	size_t count, bytes;
};

static void add_text(struct texts *to, enum allow_layer layer, const char *pattern)
{
	char *text = allow_text(layer, pattern);

	/* What does not fit is not allowed. */
	if (to->count == TEXTS_MAX || to->bytes + strlen(text) + 1 > TEXTS_BYTES) {
		free(text);
		return;
	}
	to->bytes += strlen(text) + 1;
	to->all[to->count++] = text;
}

static void add_policy(struct texts *to, const struct policy *p, size_t index)
{
	enum allow_layer servers = index ? ALLOW_SERVERS_CHOSEN : ALLOW_SERVERS;
	enum allow_layer tools = index ? ALLOW_TOOLS_CHOSEN : ALLOW_TOOLS;

	/* A layer without a pattern grants nothing. */
	add_text(to, servers, "");
	for (char *const *item = p->mcp_servers.items; item && *item; item++)
		add_text(to, servers, *item);
	if (p->mcp_tools.items)
		add_text(to, tools, "");
	for (char *const *item = p->mcp_tools.items; item && *item; item++)
		add_text(to, tools, *item);
}

static struct box_rules *tools_for(const struct config *c, char *const *asked,
                                   const struct policy *const *policies, size_t count)
{
	struct texts texts = {.count = 0};
	struct box_rules *tools;

	for (; asked && *asked; asked++)
		add_text(&texts, ALLOW_REQUEST, *asked);
	for (size_t i = 0; i < count; i++)
		add_policy(&texts, policies[i], i);
	tools = box_rules_new(texts.all, texts.count);
	for (size_t i = 0; i < texts.count; i++)
		free((char *)(uintptr_t)texts.all[i]);
	tools->limits = (struct box_network_limits){.connections = (uint32_t)c->gateway_calls,
	                                            .bytes = c->gateway_bytes};
	tools->tenant_limits = (struct box_network_limits){
		.connections = (uint32_t)c->gateway_calls_tenant, .bytes = c->gateway_bytes_tenant};
	return tools;
}

int policy_allow_mcp(struct policy_deciding *in)
{
	static const struct policy_rule driver = {.by = POLICY_BY_DRIVER, .path = "mcp"};
	static const struct policy_rule setting = {.by = POLICY_BY_SETTING, .path = "policy"};
	char *const *asked = in->request->mcp;

	if (!asked || !*asked)
		return 0;
	if (str_list_count(asked) > ENTRIES_MAX)
		return error_field(in->err, FIELD, "at most %d are accepted", ENTRIES_MAX);
	if (in->policies_count == 0)
		return policy_refuse(in, ERR_DENIED, FIELD, &setting,
		                     "without a policy no MCP server is allowed");
	for (char *const *entry = asked; *entry; entry++)
		if (check_entry(in, *entry) < 0)
			return -1;
	if (!in->driver->caps.has_mcp)
		return policy_refuse(in, ERR_UNAVAILABLE, FIELD, &driver,
		                     "boxes have no tools of MCP servers here: millibox-gateway "
		                     "is not running");
	in->d.spec.tools = tools_for(in->rules->config, asked, in->policies, in->policies_count);
	return 0;
}

struct box_rules *policy_mcp_tools(const struct policy_rules *rules,
                                   const struct policy_stack *stack, char *const *asked)
{
	const struct policy *const both[] = {stack->own, stack->chosen};
	const struct policy *policies[ARRAY_SIZE(both)];
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(both); i++)
		if (both[i])
			policies[count++] = both[i];
	return tools_for(rules->config, count ? asked : NULL, policies, count);
}
