/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/decode_fields.h"
#include "api/json/json.h"
#include "api/op/language_list.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/gateway/catalog.h"
#include "core/language/runners.h"
#include "core/policy/policies.h"
#include "core/run/run_service.h"
#include "core/template/templates.h"
#include "core/tenant/principal.h"
#include <string.h>

/*
 * Theory of operation. A list of tools is part of every prompt of a model, so the default profile
 * has few tools, and of each only what is needed often. A view never offers what a call would
 * refuse: no language that the host lacks, no network that the policy denies.
 */

#define TEMPLATES_MAX 12
#define DIALECT       "https://json-schema.org/draft/2020-12/schema"

static const struct runner *runner_of(const struct router *r, const char *language)
{
	const struct runners *all = r->parts.runners;
	const struct runner *runner = all ? runners_find(all, language) : NULL;

	return runner && op_language_is_there(r, runner) ? runner : NULL;
}

bool tool_is_listed(const struct router *r, const struct tool *tool)
{
	if (tool->run == tool_search_tools && catalog_count(r->parts.catalog) == 0)
		return false;
	return tool_is_enabled(r->config, tool) &&
	       (!tool->language || runner_of(r, tool->language));
}

bool tool_is_in_profile(const struct router *r, const struct tool *tool)
{
	char *const *chosen = r->config->mcp_enabled_tools;

	if (!tool_is_listed(r, tool))
		return false;
	return r->config->tools_profile == CONFIG_PROFILE_FULL || tool->hints & TOOL_BRIEF ||
	       (chosen && *chosen);
}

static json_t *language_words(const struct router *r)
{
	json_t *words = json_array();
	const struct runner *runner;

	for (size_t i = 0; (runner = runners_at(r->parts.runners, i)); i++)
		if (op_language_is_there(r, runner))
			json_append(words, json_string(runner->name));
	return words;
}

static uint64_t most_network(const struct router *r, const struct principal *who)
{
	const struct policy *policy = run_service_policy_of(r->runs, who->tenant);

	return policy ? policy->network_mode.value : BOX_NETWORK_NONE;
}

bool tool_has_network(const struct router *r, const struct principal *who)
{
	return r->runs && most_network(r, who) > BOX_NETWORK_NONE;
}

static json_t *network_words(const struct router *r, const struct principal *who)
{
	uint64_t most = most_network(r, who);
	unsigned made = run_service_driver(r->runs)->caps.networks;
	json_t *words = json_array();

	for (unsigned i = 0; i < BOX_NETWORK_COUNT; i++)
		if (i == BOX_NETWORK_NONE || (i <= most && made & BOX_NETWORK_BIT(i)))
			json_append(words, json_string(decode_networks[i]));
	return words;
}

/* Those of its policy, or those that its policy lets requests name. */
static bool may_name_hosts(const struct router *r, const struct principal *who)
{
	const struct policy *policy = r->runs ? run_service_policy_of(r->runs, who->tenant) : NULL;

	return policy &&
	       (policy->network_mode.value >= BOX_NETWORK_ALLOWLIST ||
	        policy->network_request.items) &&
	       run_service_driver(r->runs)->caps.networks & BOX_NETWORK_BIT(BOX_NETWORK_ALLOWLIST);
}

static json_t *template_words(const struct router *r, const struct principal *who)
{
	const struct templates *all = r->parts.templates;
	struct template *t = templates_at(all, who->tenant, 0);
	json_t *words = json_array();

	for (; t; t = templates_next(all, who->tenant, t))
		if (!t->problem)
			json_append(words, json_string(t->spec.id));
	return words;
}

/* With one engine there is nothing to choose. */
static void drop_engines(json_t *rows, const struct router *r)
{
	if (r && r->runs && driver_at(run_service_driver(r->runs), 1))
		return;
	(void)json_object_del(rows, "engine");
	(void)json_object_del(rows, "min_isolation");
}

/* What the tables cannot know. A long list of templates is left out. */
static void add_choices(json_t *schema, const struct tool_reader *reader)
{
	const struct router *r = reader->router;
	json_t *rows = json_object_get(schema, "properties");
	json_t *language = json_object_get(rows, "language");
	json_t *network = json_object_get(rows, "network_mode");
	json_t *template = json_object_get(rows, "template");

	if (!r || catalog_count(r->parts.catalog) == 0)
		(void)json_object_del(rows, "mcp");
	if (!r || !may_name_hosts(r, reader->who))
		(void)json_object_del(rows, "network_allow");
	drop_engines(rows, r);
	if (language && r && r->parts.runners)
		json_set(language, "enum", language_words(r));
	if (network && r && r->runs)
		json_set(network, "enum", network_words(r, reader->who));
	if (template && r && r->parts.templates &&
	    templates_count(r->parts.templates, reader->who->tenant) <= TEMPLATES_MAX)
		json_set(template, "enum", template_words(r, reader->who));
}

json_t *tool_input_schema(const struct tool *tool, const struct tool_reader *reader)
{
	bool brief = reader->brief && tool->hints & TOOL_BRIEF;
	json_t *j = fields_schema(tool->input, brief ? FIELDS_BRIEF : FIELDS_INLINE);

	add_choices(j, reader);
	if (!brief)
		json_set(j, "$schema", json_string(DIALECT));
	return j;
}

/* MCP has defaults for what is left out. */
static json_t *view_hints(const struct tool *tool, bool brief)
{
	const struct {
		const char *name;
		unsigned hint;
		bool otherwise; /* the default of MCP */
	} hints[] = {
		{"readOnlyHint", TOOL_READ_ONLY, false},
		{"destructiveHint", TOOL_DESTRUCTIVE, tool->hints & TOOL_READ_ONLY ? false : true},
		{"idempotentHint", TOOL_IDEMPOTENT, tool->hints & TOOL_READ_ONLY ? true : false},
		{"openWorldHint", TOOL_OPEN_WORLD, true},
	};
	json_t *j = json_object();

	if (!brief)
		json_set(j, "title", json_string(tool->title));
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
		bool value = tool->hints & hints[i].hint;

		if (!brief || value != hints[i].otherwise)
			json_set(j, hints[i].name, json_boolean(value));
	}
	return j;
}

json_t *tool_view(const struct tool *tool, const struct tool_reader *reader)
{
	bool brief = reader->brief && tool->hints & TOOL_BRIEF;
	json_t *j = json_object(), *output;

	json_set(j, "name", json_string(tool->name));
	json_set(j, "title", json_string(tool->title));
	json_set(j, "description", json_string(tool->description));
	json_set(j, "inputSchema", tool_input_schema(tool, reader));
	output = fields_schema(tool->output, brief ? FIELDS_BRIEF : FIELDS_NULLABLE);
	if (!brief)
		json_set(output, "$schema", json_string(DIALECT));
	if (json_object_size(json_object_get(output, "properties")) > 0)
		json_set(j, "outputSchema", output);
	else
		json_decref(output);
	json_set(j, "annotations", view_hints(tool, brief));
	return j;
}
