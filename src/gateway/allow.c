/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/allow.h"

#include "base/alloc.h"
#include "base/str.h"
#include "gateway/order.h"
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-*"

static const char *const rules[] = {
	[ALLOW_REQUEST] = "mcp",
	[ALLOW_SERVERS] = "mcp.servers",
	[ALLOW_TOOLS] = "mcp.tools",
	[ALLOW_SERVERS_CHOSEN] = "mcp.servers",
	[ALLOW_TOOLS_CHOSEN] = "mcp.tools",
};
static_assert(ARRAY_SIZE(rules) == ALLOW_LAYER_COUNT, "every layer has a rule");

bool allow_is_pattern(const char *text)
{
	size_t server = strspn(text, LETTERS);
	size_t tool;

	if (server == 0 || server >= GATEWAY_SERVER_LEN)
		return false;
	if (!text[server])
		return true;
	tool = strspn(text + server + 1, LETTERS "/");
	return text[server] == '/' && tool > 0 && tool < GATEWAY_TOOL_LEN &&
	       !text[server + 1 + tool];
}

char *allow_text(enum allow_layer layer, const char *pattern)
{
	return xasprintf("%u%s%s", (unsigned)layer, pattern, strchr(pattern, '/') ? "" : "/*");
}

struct verdict {
	bool is_used[ALLOW_LAYER_COUNT], is_met[ALLOW_LAYER_COUNT];
};

static const char *judge(const struct verdict *v)
{
	if (!v->is_used[ALLOW_REQUEST])
		return rules[ALLOW_REQUEST];
	for (size_t i = 0; i < ALLOW_LAYER_COUNT; i++)
		if (v->is_used[i] && !v->is_met[i])
			return rules[i];
	return NULL;
}

static bool is_for(const char *pattern, const char *server)
{
	cleanup_free char *part = xstrndup(pattern, strcspn(pattern, "/"));

	return fnmatch(part, server, 0) == 0;
}

/* Who wrote "read_*" has not thought of "read_file/delete". */
static bool is_for_tool(const char *pattern, const char *tool)
{
	const char *part = strchr(pattern, '/');

	return part && (str_equal(part, "/*") || fnmatch(part + 1, tool, FNM_PATHNAME) == 0);
}

const char *allow_tool(char *const *texts, const char *server, const char *tool)
{
	struct verdict v = {.is_used = {false}};

	for (; *texts; texts++) {
		unsigned layer = (unsigned)(**texts - '0');

		if (layer >= ALLOW_LAYER_COUNT)
			continue;
		v.is_used[layer] = true;
		if (is_for(*texts + 1, server) && is_for_tool(*texts + 1, tool))
			v.is_met[layer] = true;
	}
	return judge(&v);
}

bool allow_server(char *const *texts, const char *server)
{
	struct verdict v = {.is_used = {false}};

	for (; *texts; texts++) {
		unsigned layer = (unsigned)(**texts - '0');

		if (layer >= ALLOW_LAYER_COUNT)
			continue;
		v.is_used[layer] = true;
		if (is_for(*texts + 1, server))
			v.is_met[layer] = true;
	}
	return !judge(&v);
}
