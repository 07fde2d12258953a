/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tree_diff.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/risky_path.h"
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

static void add_change(struct tree_changes *changes, enum tree_kind kind,
                       const struct risky_change *what)
{
	changes->list = xrealloc_array(changes->list, changes->count + 1, sizeof(*changes->list));
	changes->list[changes->count++] = (struct tree_change){
		kind, xstrdup(what->path), what->old_mode, what->new_mode, risky_path_reason(what)};
}

static void compare_entry(int before, int after, const char *path, struct tree_changes *changes)
{
	mode_t old_mode = tree_entry_mode(before, path), new_mode = tree_entry_mode(after, path);

	if (!tree_entry_same(before, after, path))
		add_change(changes, TREE_CHANGED,
		           &(struct risky_change){before, after, path, old_mode, new_mode});
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
			add_change(changes, TREE_ADDED,
			           &(struct risky_change){before, after, new->names[j], 0,
			                                  tree_entry_mode(after, new->names[j])});
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
			add_change(changes, TREE_REMOVED,
			           &(struct risky_change){before, after, old->names[i],
			                                  tree_entry_mode(before, old->names[i]),
			                                  0});
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
