/* SPDX-License-Identifier: Apache-2.0 */
#include "api/route.h"

#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"
#include <string.h>

static void add_allowed(char *allow, const struct route *route)
{
	size_t used = strlen(allow);
	const char *head = str_equal(route->method, "GET") ? ", HEAD" : "";
	int r = str_format(allow + used, ROUTE_ALLOW_LEN - used, "%s%s%s", used ? ", " : "",
	                   route->method, head);

	assert(r == 0); /* the table is ours */
	(void)r;
}

/* One whole segment. Return: what follows it; NULL: none. */
static const char *parse_id(const char *path, char ret_id[ROUTE_ID_LEN])
{
	size_t len = strcspn(path, "/");

	if (len == 0)
		return NULL;
	if (len < ROUTE_ID_LEN) {
		memcpy(ret_id, path, len);
		ret_id[len] = '\0';
	}
	if (len >= ROUTE_ID_LEN || !id_is_dotted(ret_id, ROUTE_ID_LEN - 1))
		ret_id[0] = '\0';
	return path + len;
}

bool route_parse(const char *pattern, const char *path, struct route_args *ret_args)
{
	*ret_args = (struct route_args){.rest = ""};
	for (;;) {
		size_t same = strcspn(pattern, "{");
		const char *part = pattern + same;

		if (part[0] == '\0')
			return str_equal(pattern, path);
		if (strncmp(pattern, path, same) != 0)
			return false;
		path += same;
		if (str_equal(part, ROUTE_REST)) {
			ret_args->rest = path;
			return true;
		}
		if (str_equal(part, ROUTE_PORT)) {
			ret_args->rest = path;
			return path[0] != '\0' && !strchr(path, '/');
		}
		path = parse_id(path, ret_args->id);
		if (!path)
			return false;
		pattern = strchr(part, '}') + 1;
	}
}

bool route_at(const struct dialect *const *dialects, size_t index, struct route_match *ret_match)
{
	for (; *dialects; dialects++) {
		if (index < (*dialects)->count) {
			*ret_match = (struct route_match){*dialects, &(*dialects)->routes[index]};
			return true;
		}
		index -= (*dialects)->count;
	}
	return false;
}

/* HEAD is a GET whose body the server leaves out. */
int route_find(const struct dialect *const *dialects, const char *method, const char *path,
               struct route_match *ret_match, char ret_allow[ROUTE_ALLOW_LEN], struct error *err)
{
	const char *served = str_equal(method, "HEAD") ? "GET" : method;
	struct route_args args;

	ret_allow[0] = '\0';
	for (; *dialects; dialects++)
		for (size_t i = 0; i < (*dialects)->count; i++) {
			const struct route *route = &(*dialects)->routes[i];

			if (!route_parse(route->path, path, &args))
				continue;
			if (str_equal(route->method, served) || str_equal(route->method, method)) {
				*ret_match = (struct route_match){*dialects, route};
				return 0;
			}
			add_allowed(ret_allow, route);
		}
	if (ret_allow[0])
		return error_set(err, ERR_BAD_METHOD, 0, "this path allows only %s", ret_allow);
	return error_set(err, ERR_NOT_FOUND, 0, "no such path; see /openapi.json");
}

/* "/a" has "/a", "/a/b" and "/a:b", but not "/ab". */
const struct dialect *route_dialect(const struct dialect *const *dialects, const char *path)
{
	for (; *dialects; dialects++) {
		const char *const *prefix = (*dialects)->prefixes;

		for (; prefix && *prefix; prefix++) {
			size_t len = strlen(*prefix);

			/* strchr finds '\0', too. */
			if (strncmp(path, *prefix, len) == 0 && strchr("/:", path[len]))
				return *dialects;
		}
	}
	return NULL;
}
