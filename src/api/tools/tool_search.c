/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/json.h"
#include "api/op/mcp_tools.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "core/gateway/catalog.h"
#include <string.h>

/*
 * Theory of operation. Code mode: instead of a tool for each tool of each outside server, a model
 * gets this one, which finds them, and execute_code, whose programs call them. What it never uses
 * costs it no token.
 */

#define TEXT_MAX     (64u << 10)
#define FOUND_MAX    50
#define FOUND_USUAL  10
#define DETAILED_MAX 3 /* found: with their arguments */

struct found {
	char *server; /* owned */
	const json_t *tool;
	unsigned score;
};

struct search {
	struct found list[FOUND_MAX];
	size_t count, limit;
};

/* The best first; of equals the earlier. */
static void keep(struct search *s, const char *server, const json_t *tool, unsigned score)
{
	size_t i = s->count < s->limit ? s->count++ : s->limit - 1;

	if (i == s->limit - 1 && s->list[i].server) {
		if (s->list[i].score >= score)
			return;
		free(s->list[i].server);
	}
	for (; i > 0 && s->list[i - 1].score < score; i--)
		s->list[i] = s->list[i - 1];
	s->list[i] = (struct found){xstrdup(server), tool, score};
}

static void search_server(struct search *s, const struct box_rules *allowed,
                          const struct catalog_server *server, const char *query)
{
	size_t i;
	json_t *tool;

	json_array_foreach ((json_t *)(uintptr_t)server->tools, i, tool) {
		const char *name = json_string_value(json_object_get(tool, "name"));
		unsigned score = name && catalog_may(allowed, server->name, name)
		                         ? mcp_tools_score(server->name, tool, query)
		                         : 0;

		if (score > 0)
			keep(s, server->name, tool, score);
	}
}

static json_t *view_found(const struct found *f)
{
	cleanup_buf struct buf line = BUF_INIT(TEXT_MAX);
	const json_t *schema = json_object_get(f->tool, "inputSchema");
	json_t *j = json_object();

	mcp_tools_add_line(&line, f->server, f->tool);
	json_set(j, "server", json_string(f->server));
	json_set(j, "name", json_incref(json_object_get(f->tool, "name")));
	json_set(j, "call", json_text(line.data, line.len ? line.len - 1 : 0));
	json_set(j, "input_schema", schema ? json_deep_copy(schema) : json_object());
	return j;
}

static void write_found(struct search *s, struct buf *text, json_t *list)
{
	for (size_t i = 0; i < s->count; i++) {
		mcp_tools_add_line(text, s->list[i].server, s->list[i].tool);
		if (s->count <= DETAILED_MAX)
			mcp_tools_add_arguments(text, s->list[i].tool);
		json_append(list, view_found(&s->list[i]));
	}
	if (s->count == 0)
		(void)!buf_add_str(text, "No tool fits these words; without query all are listed.");
	else
		(void)!buf_addf(text,
		                "In Python: execute_code with mcp: [\"%s\"] and code \"from "
		                "millibox_tools import %s\".",
		                s->list[0].server, s->list[0].server);
}

void tool_search_tools(struct call *call)
{
	const struct catalog *catalog = call->router->parts.catalog;
	struct box_rules *allowed = mcp_tools_allowed(call->router, call->principal);
	struct search s = {.limit = call->args.limit ? call->args.limit : FOUND_USUAL};
	cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
	json_t *structured = json_object(), *list = json_array();
	struct catalog_server server;

	for (size_t i = 0; i < catalog_count(catalog); i++) {
		catalog_at(catalog, i, &server);
		search_server(&s, allowed, &server, call->args.query);
	}
	write_found(&s, &text, list);
	for (size_t i = 0; i < s.count; i++)
		free(s.list[i].server);
	box_rules_unref(allowed);
	json_set(structured, "tools", list);
	tool_finish(call, text.data, structured, NULL, false);
}
