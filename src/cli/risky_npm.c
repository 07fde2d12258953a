/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/risky_path.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/attr.h"
#include "base/fd.h"

#define PACKAGE_MAX (1 << 20)

/* Members that npm, or a tool that hooks into it or git, takes commands from. */
static const char *const members[] = {
	"scripts",      "husky",      "lint-staged", "simple-git-hooks",
	"gitHooks",     "pre-commit", "pre-push",    "gypfile",
	"wireit",       "nx",         "jest",        "babel",
	"eslintConfig", "prettier",   "stylelint",   "release",
};

/* Return: owned, or NULL: there is none, or it cannot be read. */
static json_t *read_package(int root, const char *path)
{
	cleanup_close int fd = fd_open_beneath(root, path, O_RDONLY | O_NONBLOCK, 0);
	cleanup_free char *text = xmalloc(PACKAGE_MAX);
	ssize_t len = fd < 0 ? -1 : fd_read_all(fd, text, PACKAGE_MAX);
	json_t *package = NULL;

	if (len >= 0 && len < PACKAGE_MAX)
		package = json_loadb(text, (size_t)len, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(package))
		return package;
	json_decref(package);
	return NULL;
}

static bool is_same(const json_t *old, const json_t *new, const char *member)
{
	json_t *a = json_object_get(old, member), *b = json_object_get(new, member);

	return a == b || (a && b && json_equal(a, b));
}

const char *risky_npm_reason(const struct risky_change *change)
{
	const char *slash = strrchr(change->path, '/');
	json_auto_t *old = NULL, *new = NULL;
	bool same = true;

	if (strcasecmp(slash ? slash + 1 : change->path, "package.json") != 0 ||
	    S_ISDIR(change->new_mode))
		return NULL;
	old = read_package(change->before, change->path);
	new = read_package(change->after, change->path);
	for (size_t i = 0; new &&i < ARRAY_SIZE(members); i++)
		same = same && is_same(old, new, members[i]);
	return new &&same ? NULL : "npm would run its scripts as you";
}
