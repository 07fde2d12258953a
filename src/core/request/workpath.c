/* SPDX-License-Identifier: Apache-2.0 */
#include "core/request/workpath.h"

#include <string.h>

static int add_part(const char *part, size_t len, char *ret_path, size_t *used)
{
	if (*used + (*used > 0) + len > WORKPATH_MAX)
		return -1;
	if (*used > 0)
		ret_path[(*used)++] = '/';
	memcpy(ret_path + *used, part, len);
	*used += len;
	ret_path[*used] = '\0';
	return 0;
}

static int take_part(const char *part, size_t len, const char *field, struct error *err)
{
	if (len == 2 && part[0] == '.' && part[1] == '.')
		return error_field(err, field, "must not contain '..'");
	if (len > WORKPATH_COMPONENT_MAX)
		return error_field(err, field, "has a name of more than %d bytes",
		                   WORKPATH_COMPONENT_MAX);
	return 0;
}

int workpath_clean(const char *path, enum workpath_rule rule, const char *field,
                   char ret_path[WORKPATH_MAX + 1], struct error *err)
{
	size_t used = 0, count = 0, len;

	ret_path[0] = '\0';
	if (path[0] == '/' && rule == WORKPATH_RELATIVE)
		return error_field(err, field,
		                   "must not begin with '/': paths are relative to /workspace");
	for (; *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		if (len == 0 || (len == 1 && path[0] == '.'))
			continue;
		if (take_part(path, len, field, err) < 0)
			return -1;
		if (++count > WORKPATH_COMPONENTS_MAX)
			return error_field(err, field, "has more than %d components",
			                   WORKPATH_COMPONENTS_MAX);
		if (add_part(path, len, ret_path, &used) < 0)
			return error_field(err, field, "has more than %d bytes", WORKPATH_MAX);
	}
	return 0;
}
