/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/internal.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/op/mcp_tools.h"
#include "api/reply.h"
#include "base/str.h"
#include "core/gateway/catalog.h"
#include "http/status.h"

/* A caller sees the servers that its policy grants, and of each the tools that it may call. The
 * operator sees all of them, and how often they are called. */

static bool is_operator(const struct principal *who)
{
	return scope_allows(who->scopes, SCOPE_ADMIN);
}

static bool is_seen(const struct principal *who, const struct box_rules *allowed,
                    const char *server, const char *tool)
{
	return is_operator(who) || catalog_may(allowed, server, tool);
}

static json_t *view_tools(const struct catalog_server *server, const struct box_rules *allowed,
                          const struct principal *who, bool whole)
{
	json_t *list = json_array(), *tool;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)server->tools, i, tool) {
		const char *name = json_string_value(json_object_get(tool, "name"));

		if (name && is_seen(who, allowed, server->name, name))
			json_append(list, whole ? json_incref(tool) : json_string(name));
	}
	return list;
}

static json_t *view_server(const struct catalog_server *server, const struct box_rules *allowed,
                           const struct principal *who, bool whole)
{
	json_t *j = json_object();

	json_set(j, "name", json_string(server->name));
	json_set(j, "kind", json_string(server->kind));
	json_set(j, "url", json_string(server->url));
	json_set(j, "state", json_string(server->state));
	json_set(j, "detail", encode_text(server->detail[0] ? server->detail : NULL));
	json_set(j, "tools", view_tools(server, allowed, who, whole));
	if (!is_operator(who))
		return j;
	json_set(j, "starts", json_integer(server->starts));
	json_set(j, "calls", json_integer((json_int_t)server->calls));
	json_set(j, "errors", json_integer((json_int_t)server->errors));
	return j;
}

void v1_mcp_server_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct box_rules *allowed = mcp_tools_allowed(r, args->principal);
	json_t *j = json_object(), *list = json_array();
	struct catalog_server server;

	for (size_t i = 0; i < catalog_count(r->parts.catalog); i++) {
		catalog_at(r->parts.catalog, i, &server);
		if (is_seen(args->principal, allowed, server.name, NULL))
			json_append(list, view_server(&server, allowed, args->principal, false));
	}
	box_rules_unref(allowed);
	json_set(j, "total", json_integer((json_int_t)json_array_size(list)));
	json_set(j, "servers", list);
	reply_json(req, HTTP_OK, j);
}

void v1_mcp_server_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct box_rules *allowed = mcp_tools_allowed(r, args->principal);
	struct catalog_server server;
	struct error err = {0};
	json_t *found = NULL;

	for (size_t i = 0; i < catalog_count(r->parts.catalog); i++) {
		catalog_at(r->parts.catalog, i, &server);
		if (str_equal(server.name, args->id) &&
		    is_seen(args->principal, allowed, server.name, NULL))
			found = view_server(&server, allowed, args->principal, true);
	}
	box_rules_unref(allowed);
	if (found) {
		reply_json(req, HTTP_OK, found);
		return;
	}
	(void)error_set(&err, ERR_NOT_FOUND, 0, "no MCP server has this name");
	reply_error(req, &err);
}
