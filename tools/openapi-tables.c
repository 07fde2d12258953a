/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/fields.h"
#include "api/json/json.h"
#include "api/route.h"
#include "base/attr.h"
#include "daemon/dialects.h"
#include <stdio.h>

/*
 * Prints the tables of the API as JSON, for make-openapi.py: the routes of every dialect with their
 * query parameters, and the schemas of their request bodies.
 */

#define NESTED_MAX 16

static const char *const bodies[] = {
	[ROUTE_BODY_NONE] = "none",     [ROUTE_BODY_JSON] = "json", [ROUTE_BODY_OPTIONAL] = "none",
	[ROUTE_BODY_STREAM] = "stream", [ROUTE_BODY_ANY] = "any",
};

static json_t *describe_route(const struct route_match *match)
{
	const struct route *route = match->route;
	json_t *j = json_object();

	json_set(j, "method", json_string(route->method));
	json_set(j, "path", json_string(route->path));
	json_set(j, "summary", json_string(route->summary));
	json_set(j, "dialect", json_string(match->dialect->name));
	json_set(j, "body", json_string(bodies[route->body]));
	json_set(j, "shared", json_boolean(route->upstream || route->shared));
	json_set(j, "compat", json_boolean(route->compat));
	json_set(j, "public", json_boolean(route->scope == SCOPE_PUBLIC));
	json_set(j, "request", route->request ? json_string(route->request->name) : json_null());
	json_set(j, "query", route->query ? fields_parameters(route->query) : json_array());
	return j;
}

/* Unknown fields are ignored on this path. As deep as the constant tables. */
// NOLINTNEXTLINE(misc-no-recursion)
static void open_schema(json_t *schema)
{
	const char *key;
	json_t *value;

	if (json_is_false(json_object_get(schema, "additionalProperties")))
		(void)json_object_del(schema, "additionalProperties");
	json_object_foreach (schema, key, value)
		open_schema(value);
}

/* The table and the named ones within it, which its schema refers to. */
static void add_schemas(json_t *schemas, const struct fields *fields, bool open)
{
	const struct fields *todo[NESTED_MAX];
	size_t count = 0;

	todo[count++] = fields;
	while (count > 0) {
		const struct fields *next = todo[--count];

		if (next->name)
			json_set(schemas, next->name, fields_schema(next, FIELDS_OPENAPI));
		if (next->name && open)
			open_schema(json_object_get(schemas, next->name));
		for (const struct field *f = next->rows; f->name; f++) {
			if (!f->fields)
				continue;
			assert(count < NESTED_MAX);
			todo[count++] = f->fields;
		}
	}
}

int main(void)
{
	cleanup_json json_t *all = json_object();
	json_t *routes = json_array(), *schemas = json_object();
	struct route_match match;

	fields_components(schemas);
	for (size_t i = 0; route_at(dialects, i, &match); i++) {
		(void)!json_array_append_new(routes, describe_route(&match));
		if (match.route->request)
			add_schemas(schemas, match.route->request, match.route->upstream);
	}
	json_set(all, "routes", routes);
	json_set(all, "schemas", schemas);
	return json_dumpf(all, stdout, JSON_INDENT(1)) < 0 || putchar('\n') == EOF;
}
