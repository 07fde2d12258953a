/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cgroup_path.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* @list: names of controllers, separated by commas, up to @end. */
static bool has_controller(const char *list, const char *end, const char *name)
{
	size_t len = strlen(name);

	while (list < end) {
		size_t word = strcspn(list, ",:");

		if (word == len && memcmp(list, name, len) == 0)
			return true;
		list += word + 1;
	}
	return false;
}

/* A line is "0::/path" for v2, or "4:memory:/path". */
static bool is_line_of(const char *line, const char *list, const char *path, const char *controller)
{
	if (controller)
		return has_controller(list + 1, path, controller);
	return path == list + 1 && list == line + 1 && line[0] == '0';
}

int cgroup_path_find(const char *text, const char *controller, char *ret_path, size_t size)
{
	const char *next;

	for (const char *line = text; line; line = next) {
		const char *list = strchr(line, ':');
		const char *path = list ? strchr(list + 1, ':') : NULL;
		size_t len;

		next = strchr(line, '\n');
		next = next ? next + 1 : NULL;
		if (!path || (next && path >= next) || !is_line_of(line, list, path, controller))
			continue;
		len = strcspn(++path, "\n");
		if (len >= size)
			return -ENAMETOOLONG;
		memcpy(ret_path, path, len);
		ret_path[len] = '\0';
		return 0;
	}
	return -ENOENT;
}
