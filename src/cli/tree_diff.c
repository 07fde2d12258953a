/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tree_diff.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/tree_entry.h"

#define PATH_MAX_LEN 4000

struct name_list {
	char **names; /* owned, as are the names; sorted paths */
	size_t count;
};

static void name_list_done(struct name_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->names[i]);
	free(list->names);
}

static void add_name(struct name_list *list, char *path)
{
	list->names = xrealloc_array(list->names, list->count + 1, sizeof(*list->names));
	list->names[list->count++] = path;
}

/* The names in directory @path, with their paths. */
static int add_names(int root, const char *path, struct name_list *list, struct error *err)
{
	int fd = fd_open_beneath(root, path[0] ? path : ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;

	if (!dir)
		return error_set(err, ERR_SYSTEM, fd < 0 ? -fd : errno, "read '%s'", path);
	while ((d = readdir(dir)))
		if (!str_equal(d->d_name, ".") && !str_equal(d->d_name, ".."))
			add_name(list, path[0] ? xasprintf("%s/%s", path, d->d_name)
			                       : xstrdup(d->d_name));
	(void)closedir(dir);
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_names(int root, struct name_list *ret_list, struct error *err)
{
	*ret_list = (struct name_list){0};
	if (add_names(root, "", ret_list, err) < 0)
		return -1;
	/* The list grows while it is read. */
	for (size_t i = 0; i < ret_list->count; i++) {
		const char *path = ret_list->names[i];

		if (strlen(path) > PATH_MAX_LEN)
			return error_set(err, ERR_TOO_LARGE, 0, "'%.80s...' is too deep", path);
		if (S_ISDIR(tree_entry_mode(root, path)) &&
		    add_names(root, path, ret_list, err) < 0)
			return -1;
	}
	if (ret_list->count > 0)
		qsort(ret_list->names, ret_list->count, sizeof(*ret_list->names), compare_names);
	return 0;
}

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

/* What git runs, reads settings from, or finds such places by. */
static const char *const git_settings[] = {"commondir", "config",  "config.worktree",
                                           "hooks",     "modules", "worktrees"};

static bool is_git_setting(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(git_settings); i++)
		if (is_word(name, len, git_settings[i]))
			return true;
	return false;
}

/* The first @len bytes of @path name a directory; git takes any with a HEAD for a repository. */
static bool is_repository(int root, const char *path, size_t len)
{
	cleanup_free char *dir = xstrndup(path, len);
	cleanup_free char *head = xasprintf("%s%sHEAD", dir, len > 0 ? "/" : "");
	const char *slash = strrchr(dir, '/'), *name = slash ? slash + 1 : dir;

	return is_word(name, strlen(name), ".git") || tree_entry_mode(root, head) != 0;
}

/* A HEAD beside settings that an earlier run left makes a repository of them. The first @len bytes
 * of @path name the directory. */
static bool completes_repository(int root, const char *path, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(git_settings); i++) {
		cleanup_free char *setting =
			xasprintf("%.*s%s%s", (int)len, path, len > 0 ? "/" : "", git_settings[i]);

		if (tree_entry_mode(root, setting) != 0)
			return true;
	}
	return false;
}

/* A hook or a setting of git is a program that the user runs unaware. A file or link .git leads to
 * a repository that is elsewhere. */
static const char *reason_to_keep(int after, const char *path, mode_t old_mode, mode_t new_mode)
{
	const char *at = path;

	while (*at) {
		size_t len = strcspn(at, "/"), parent = at > path ? (size_t)(at - path) - 1 : 0;
		bool is_file = !at[len] && new_mode && !S_ISDIR(new_mode);

		if ((is_file && is_word(at, len, ".git")) ||
		    (is_file && old_mode == 0 && is_word(at, len, "HEAD") &&
		     completes_repository(after, path, parent)) ||
		    (is_git_setting(at, len) && is_repository(after, path, parent)))
			return "git would run it as you";
		at += len + (at[len] == '/');
	}
	return NULL;
}

static void add_change(struct tree_changes *changes, int after, enum tree_kind kind,
                       const char *path, mode_t old_mode, mode_t new_mode)
{
	changes->list = xrealloc_array(changes->list, changes->count + 1, sizeof(*changes->list));
	changes->list[changes->count++] =
		(struct tree_change){kind, xstrdup(path), old_mode, new_mode,
	                             reason_to_keep(after, path, old_mode, new_mode)};
}

static void compare_entry(int before, int after, const char *path, struct tree_changes *changes)
{
	mode_t old_mode = tree_entry_mode(before, path), new_mode = tree_entry_mode(after, path);

	if (!tree_entry_same(before, after, path))
		add_change(changes, after, TREE_CHANGED, path, old_mode, new_mode);
}

/* Both lists are sorted. */
static void merge(int before, int after, const struct name_list *old, const struct name_list *new,
                  struct tree_changes *changes)
{
	size_t i = 0, j = 0;

	while (i < old->count || j < new->count) {
		int order = i == old->count   ? 1
		            : j == new->count ? -1
		                              : strcmp(old->names[i], new->names[j]);

		if (order == 0) {
			compare_entry(before, after, old->names[i], changes);
		} else if (order > 0) {
			add_change(changes, after, TREE_ADDED, new->names[j], 0,
			           tree_entry_mode(after, new->names[j]));
		}
		i += order <= 0;
		j += order >= 0;
	}
}

/* Backwards: what is in a directory goes before it. */
static void add_removals(int before, int after, const struct name_list *old,
                         struct tree_changes *changes)
{
	for (size_t i = old->count; i-- > 0;)
		if (tree_entry_mode(after, old->names[i]) == 0)
			add_change(changes, after, TREE_REMOVED, old->names[i],
			           tree_entry_mode(before, old->names[i]), 0);
}

int tree_diff(int before, int after, struct tree_changes *ret_changes, struct error *err)
{
	struct name_list old, new = {0};
	int r = list_names(before, &old, err);

	*ret_changes = (struct tree_changes){0};
	if (r == 0)
		r = list_names(after, &new, err);
	if (r == 0) {
		add_removals(before, after, &old, ret_changes);
		merge(before, after, &old, &new, ret_changes);
	}
	name_list_done(&old);
	name_list_done(&new);
	return r;
}

void tree_changes_done(struct tree_changes *changes)
{
	for (size_t i = 0; i < changes->count; i++)
		free(changes->list[i].path);
	free(changes->list);
}

char tree_letter(enum tree_kind kind)
{
	static const char letters[] = {
		[TREE_ADDED] = 'A', [TREE_CHANGED] = 'M', [TREE_REMOVED] = 'D'};

	return letters[kind];
}
