/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/mcp_tools.h"

#include "api/internal.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/policy/policy.h"
#include "core/run/run_service.h"
#include <string.h>
#include <strings.h>

/* Names and descriptions are the servers' words: shortened, and never more than text. */

#define LINE_MAX_  200
#define SCORE_NAME 3

struct box_rules *mcp_tools_allowed(const struct router *r, const struct principal *who)
{
	char *const all[] = {(char *)(uintptr_t) "*", NULL};
	const struct policy_rules rules = {.config = r->config};
	const struct policy_stack stack = {.own = run_service_policy_of(r->runs, who->tenant)};

	return policy_mcp_tools(&rules, &stack, all);
}

/* A name of Python, as millibox_tools makes it. */
static void add_identifier(struct buf *to, const char *name)
{
	if (*name >= '0' && *name <= '9')
		(void)!buf_add(to, "_", 1);
	for (; *name; name++) {
		bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
		             (*name >= '0' && *name <= '9');

		(void)!buf_add(to, plain ? name : "_", 1);
	}
}

static const char *type_word(const json_t *schema)
{
	static const char *const words[][2] = {
		{"string", "str"},   {"integer", "int"}, {"number", "float"},
		{"boolean", "bool"}, {"array", "list"},  {"object", "dict"},
	};
	const char *type = json_string_value(json_object_get(schema, "type"));

	for (size_t i = 0; type && i < ARRAY_SIZE(words); i++)
		if (str_equal(words[i][0], type))
			return words[i][1];
	return "Any";
}

static const json_t *schema_of(const json_t *tool)
{
	return json_object_get(tool, "inputSchema");
}

static bool is_required(const json_t *tool, const char *name)
{
	const json_t *list = json_object_get(schema_of(tool), "required");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *item = json_string_value(json_array_get(list, i));

		if (item && str_equal(item, name))
			return true;
	}
	return false;
}

static const char *text_of(const json_t *tool, const char *member)
{
	const char *text = json_string_value(json_object_get(tool, member));

	return text ? text : "";
}

/* Of the required ones, or of the others. Return: whether there is one. */
static bool add_parameters(struct buf *to, const json_t *tool, bool required, bool has_some)
{
	json_t *properties = json_object_get(schema_of(tool), "properties"), *schema;
	const char *name;

	json_object_foreach (properties, name, schema) {
		if (is_required(tool, name) != required)
			continue;
		if (has_some)
			(void)!buf_add_str(to, ", ");
		add_identifier(to, name);
		(void)!buf_addf(to, ": %s%s", type_word(schema), required ? "" : " = ...");
		has_some = true;
	}
	return has_some;
}

static void add_first_line(struct buf *to, const char *text)
{
	size_t len = strcspn(text, "\r\n");

	(void)buf_add_some(to, text, len < LINE_MAX_ ? len : LINE_MAX_);
}

void mcp_tools_add_line(struct buf *to, const char *server, const json_t *tool)
{
	const char *about = text_of(tool, "description");

	add_identifier(to, server);
	(void)!buf_add(to, ".", 1);
	add_identifier(to, text_of(tool, "name"));
	(void)!buf_add(to, "(", 1);
	(void)add_parameters(to, tool, false, add_parameters(to, tool, true, false));
	(void)!buf_add_str(to, *about ? "): " : ")");
	add_first_line(to, about);
	(void)!buf_add(to, "\n", 1);
}

void mcp_tools_add_arguments(struct buf *to, const json_t *tool)
{
	json_t *properties = json_object_get(schema_of(tool), "properties"), *schema;
	const char *name;

	json_object_foreach (properties, name, schema) {
		const char *about = text_of(schema, "description");

		(void)!buf_add_str(to, "    ");
		add_identifier(to, name);
		(void)!buf_addf(to, ": %s%s%s", type_word(schema),
		                is_required(tool, name) ? "" : ", optional", *about ? ". " : "");
		add_first_line(to, about);
		(void)!buf_add(to, "\n", 1);
	}
}

static bool contains(const char *text, const char *word, size_t len)
{
	for (; *text; text++)
		if (strncasecmp(text, word, len) == 0)
			return true;
	return false;
}

unsigned mcp_tools_score(const char *server, const json_t *tool, const char *query)
{
	static const char between[] = " \t\n,._/-";
	const char *at = query ? query : "";
	unsigned score = 0, words = 0;

	for (;; words++) {
		size_t len;

		at += strspn(at, between);
		len = strcspn(at, between);
		if (len == 0)
			return words ? score : 1;
		if (contains(server, at, len) || contains(text_of(tool, "name"), at, len))
			score += SCORE_NAME;
		if (contains(text_of(tool, "description"), at, len))
			score++;
		at += len;
	}
}
