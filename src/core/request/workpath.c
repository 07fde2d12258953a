/* SPDX-License-Identifier: Apache-2.0 */
#include "core/request/workpath.h"

#include <string.h>

const char *workpath_inside(const char *path)
{
	static const char name[] = "workspace";
	const char *rest = path + strspn(path, "/");

	if (rest == path || strncmp(rest, name, sizeof(name) - 1) != 0)
		return path;
	rest += sizeof(name) - 1;
	if (*rest && *rest != '/')
		return path;
	return rest + strspn(rest, "/");
}

int workpath_clean(const char *path, enum workpath_rule rule, const char *field,
                   char ret_path[WORKPATH_MAX + 1], struct error *err)
{
	size_t used = 0, count = 0, len;

	ret_path[0] = '\0';
	path = workpath_inside(path);
	if (path[0] == '/' && rule == WORKPATH_RELATIVE)
		return error_field(err, field,
		                   "'%.80s' is not in /workspace: paths begin with '/workspace/', "
		                   "or are relative to it",
		                   path);
	for (; *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		if (len == 0 || (len == 1 && path[0] == '.'))
			continue;
		if (len == 2 && path[0] == '.' && path[1] == '.')
			return error_field(err, field, "must not contain '..'");
		if (len > WORKPATH_COMPONENT_MAX)
			return error_field(err, field, "has a name of more than %d bytes",
			                   WORKPATH_COMPONENT_MAX);
		if (++count > WORKPATH_COMPONENTS_MAX)
			return error_field(err, field, "has more than %d components",
			                   WORKPATH_COMPONENTS_MAX);
		if (used + (used > 0) + len > WORKPATH_MAX)
			return error_field(err, field, "has more than %d bytes", WORKPATH_MAX);
		if (used > 0)
			ret_path[used++] = '/';
		memcpy(ret_path + used, path, len);
		used += len;
		ret_path[used] = '\0';
	}
	return 0;
}
