/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

/* By descriptors only: a less privileged daemon could replace a directory with a link. */

/* A daemon's state is two levels deep. */
#define DEPTH_MAX 16

struct level {
	DIR *dir;       /* owned */
	char name[256]; /* in the parent */
};

struct walk {
	struct level levels[DEPTH_MAX];
	size_t depth;
};

static int enter_directory(struct walk *w, int parent, const char *name)
{
	struct level *level = &w->levels[w->depth];
	int fd;

	if (w->depth == DEPTH_MAX)
		return -ELOOP;
	if (str_copy(level->name, sizeof(level->name), name) < 0)
		return -ENAMETOOLONG;
	fd = fd_open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd;
	level->dir = fdopendir(fd);
	if (!level->dir) {
		int r = -errno;

		(void)fd_close(fd);
		return r;
	}
	w->depth++;
	return 0;
}

static int remove_next(struct walk *w)
{
	DIR *dir = w->levels[w->depth - 1].dir;
	const struct dirent *entry = readdir(dir);

	if (!entry) {
		const char *name = w->levels[--w->depth].name;

		(void)closedir(dir);
		if (w->depth == 0)
			return 0;
		dir = w->levels[w->depth - 1].dir;
		return unlinkat(dirfd(dir), name, AT_REMOVEDIR) < 0 ? -errno : 0;
	}
	if (str_equal(entry->d_name, ".") || str_equal(entry->d_name, ".."))
		return 0;
	if (unlinkat(dirfd(dir), entry->d_name, 0) == 0)
		return 0;
	return errno == EISDIR ? enter_directory(w, dirfd(dir), entry->d_name) : -errno;
}

int tree_remove(const char *path)
{
	struct walk w = {.depth = 0};
	int fd = fd_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r;

	if (fd < 0)
		return fd;
	r = enter_directory(&w, fd, ".");
	(void)fd_close(fd);
	while (r >= 0 && w.depth > 0)
		r = remove_next(&w);
	while (w.depth > 0)
		(void)closedir(w.levels[--w.depth].dir);
	if (r < 0)
		return r;
	return rmdir(path) < 0 ? -errno : 0;
}
