/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/neighbour.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/str.h"

#define NAME_MAX_BYTES 64
#define LETTERS        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

/* How interpreters name a module that is missing, and the files that it may be. */
static const struct lack {
	const char *before, *end; /* of the name, or of its first part */
	const char *endings[6];
} lacks[] = {
	{"No module named '", "'.", {".py", "", NULL}},
	{"Cannot find module './", "'/", {"", ".js", ".mjs", ".cjs", ".ts", NULL}},
	{"Cannot find module '/workspace/", "'/", {"", NULL}},
};

/* The program chooses the text: a name without a directory that is not hidden. Return: owned. */
static char *find_name(const char *text, const struct lack *lack)
{
	const char *start = strstr(text, lack->before);
	size_t len;

	start = start ? start + strlen(lack->before) : "";
	len = strcspn(start, lack->end);
	if (len == 0 || len > NAME_MAX_BYTES || *start == '.' || strspn(start, LETTERS) < len)
		return NULL;
	return xstrndup(start, len);
}

static char *make_hint(const struct neighbour_search *search, const char *dir, const char *name,
                       bool is_dir)
{
	bool here = str_equal(dir, ".");
	const char *slash = search->program ? strrchr(search->program, '/') : NULL;
	cleanup_free char *place =
		search->program && !str_equal(search->program, "-")
			? xasprintf("beside %s", slash ? slash + 1 : search->program)
			: xstrdup("in this directory");
	cleanup_free char *path = xasprintf("%s%s%s", here ? "" : dir, here ? "" : "/", name);

	if (!is_dir)
		return xasprintf("%s is %s, and not in the box: add '-f %s'%s%s%s", name, place,
		                 path, search->has_dir ? ", or '--dir " : "",
		                 search->has_dir ? dir : "",
		                 search->has_dir ? "' for the whole directory" : "");
	if (search->has_dir)
		return xasprintf("the directory %s is %s, and not in the box: add '--dir %s'", name,
		                 place, dir);
	return xasprintf("the directory %s is %s, and not in the box: copy it with "
	                 "'millibox cp %s SESSION:'",
	                 name, place, path);
}

static char *search_for(const struct neighbour_search *search, const struct lack *lack,
                        const char *name)
{
	const char *slash = search->program ? strrchr(search->program, '/') : NULL;
	cleanup_free char *dir =
		slash ? xstrndup(search->program, (size_t)(slash - search->program)) : xstrdup(".");

	for (const char *const *ending = lack->endings; *ending; ending++) {
		cleanup_free char *file = xasprintf("%s%s", name, *ending);
		cleanup_free char *path = xasprintf("%s/%s", dir, file);
		struct stat st;

		if (stat(path, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
			return make_hint(search, *dir ? dir : "/", file, S_ISDIR(st.st_mode));
	}
	return NULL;
}

char *neighbour_hint(const struct neighbour_search *search)
{
	const char *text = json_string_value(json_object_get(search->error, "value"));

	for (size_t i = 0; text && i < ARRAY_SIZE(lacks); i++) {
		cleanup_free char *name = find_name(text, &lacks[i]);
		char *hint = name ? search_for(search, &lacks[i], name) : NULL;

		if (hint)
			return hint;
	}
	return NULL;
}
