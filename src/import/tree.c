/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"

#define DEPTH_MAX 256
#define DIR_MODE  0777
#define BLOCK     512 /* unit of st_blocks on every filesystem */

/* openat2 makes ".." harmless, but honest archives have none. */
static bool has_bad_part(const char *path)
{
	for (const char *part = path; *part;) {
		size_t len = strcspn(part, "/");

		if (len > 255 || (len == 2 && part[0] == '.' && part[1] == '.'))
			return true;
		part += len + strspn(part + len, "/");
	}
	return false;
}

const char *tree_check(const char *path, struct error *err)
{
	const char *given = path;

	while (*path == '/' || (path[0] == '.' && (path[1] == '/' || !path[1])))
		path++;
	if (strlen(path) >= IMPORT_PATH_MAX) {
		(void)error_set(err, ERR_INVALID, 0, "a path of more than %d bytes",
		                IMPORT_PATH_MAX);
		return NULL;
	}
	if (has_bad_part(path)) {
		(void)error_set(err, ERR_INVALID, 0,
		                "a path with '..' or a long component: '%.80s'", given);
		return NULL;
	}
	return path;
}

static int open_in_root(int root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		/* Links resolve as they would inside the image. */
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	/* EAGAIN: a rename or mount elsewhere raced with the ".." of a link, so the kernel could
	 * not verify the path. */
	do {
		fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
	} while (fd < 0 && errno == EAGAIN);
	return fd < 0 ? -errno : (int)fd;
}

/* One level at a time. Modifies @dir meanwhile. */
static int make_parents(int root, char *dir)
{
	for (char *slash = dir; slash;) {
		cleanup_close int above = -1;
		const char *name = slash == dir ? dir : slash + 1;
		char *end = strchr(name, '/');
		int r;

		if (end)
			*end = '\0';
		if (slash != dir)
			*slash = '\0';
		r = above = open_in_root(root, slash == dir ? "" : dir);
		if (r >= 0 && mkdirat(above, name, DIR_MODE) < 0 && errno != EEXIST)
			r = -errno;
		if (slash != dir)
			*slash = '/';
		if (r < 0)
			return r;
		if (end)
			*end = '/';
		slash = end;
	}
	return 0;
}

int tree_parent(int root, const char *path, bool make, const char **ret_name, struct error *err)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *dir = xmemdup0(path, slash ? (size_t)(slash - path) : 0);
	int fd;

	*ret_name = slash ? slash + 1 : path;
	fd = open_in_root(root, dir);
	if (fd == -ENOENT && make) {
		int r = make_parents(root, dir);

		fd = r < 0 ? r : open_in_root(root, dir);
	}
	if (fd < 0)
		return error_set(err, ERR_INVALID, -fd, "directory of '%.80s'", path);
	return fd;
}

/*
 * Walks a tree without recursion, with one open directory per level. Links into deep directories
 * let an archive make trees deeper than DEPTH_MAX: such a directory is moved to the top and removed
 * later.
 */
struct level {
	DIR *dir;
	char name[NAME_MAX + 1];
	size_t path_len; /* of descent.path */
};

struct descent {
	struct level levels[DEPTH_MAX];
	size_t depth;
	enum {
		CLEARING,
		REMOVING, /* everything */
		MEASURING
	} what;
	const struct tree_kept *kept; /* CLEARING */
	char path[IMPORT_PATH_MAX * 2];
	unsigned moved; /* REMOVING: directories that were moved up */
	uint64_t bytes; /* MEASURING */
};

static int push_dir(struct descent *d, int at, const char *name)
{
	struct level *level = &d->levels[d->depth];
	int fd = d->depth == DEPTH_MAX
	                 ? -ELOOP
	                 : fd_open_at(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return fd < 0 ? fd : -errno;
	*level = (struct level){.dir = dir, .path_len = strlen(d->path)};
	(void)!str_copy(level->name, sizeof(level->name), name); /* at most NAME_MAX */
	d->depth++;
	return 0;
}

/* Removes the innermost directory unless something in it was kept. */
static void pop_dir(struct descent *d)
{
	struct level *level = &d->levels[--d->depth];

	(void)closedir(level->dir);
	if (d->depth == 0)
		return;
	if (d->what != MEASURING) /* ENOTEMPTY: something in it was kept */
		(void)unlinkat(dirfd(d->levels[d->depth - 1].dir), level->name, AT_REMOVEDIR);
	d->path[d->levels[d->depth - 1].path_len] = '\0';
}

static int move_up(struct descent *d, int at, const char *name)
{
	int top = dirfd(d->levels[0].dir);
	char up[32];

	for (;;) {
		(void)snprintf(up, sizeof(up), ".deep-%u", d->moved++);
		if (renameat2(at, name, top, up, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
}

static int handle_file(struct descent *d, int at, const char *name)
{
	if (d->what == MEASURING ||
	    (d->what == CLEARING && d->kept->is_file(d->kept->ctx, d->path)))
		return 0;
	return unlinkat(at, name, 0) < 0 ? -errno : 0;
}

static int visit_entry(struct descent *d, const char *name)
{
	int at = dirfd(d->levels[d->depth - 1].dir);
	size_t len = strlen(d->path);
	struct stat st;
	int r = 0;

	if (d->what == CLEARING)
		r = str_format(d->path + len, sizeof(d->path) - len, "%s%s", len ? "/" : "", name);
	if (r < 0)
		return r;
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	d->bytes += (uint64_t)st.st_blocks * BLOCK / (S_ISDIR(st.st_mode) ? 1 : st.st_nlink);
	if (S_ISDIR(st.st_mode) && d->what == REMOVING && d->depth == DEPTH_MAX)
		return move_up(d, at, name);
	if (S_ISDIR(st.st_mode) &&
	    !(d->what == CLEARING && d->kept->is_dir(d->kept->ctx, st.st_ino)))
		return push_dir(d, at, name);
	if (!S_ISDIR(st.st_mode))
		r = handle_file(d, at, name);
	d->path[len] = '\0';
	return r;
}

static int walk_tree(struct descent *d)
{
	int r = 0;

	while (d->depth > 0) {
		struct dirent *entry = r < 0 ? NULL : readdir(d->levels[d->depth - 1].dir);

		if (!entry)
			pop_dir(d);
		else if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, ".."))
			r = visit_entry(d, entry->d_name);
	}
	return r;
}

int tree_clear(int dir, const char *path, const struct tree_kept *kept)
{
	cleanup_free struct descent *d = NEW(struct descent);
	int r = str_copy(d->path, sizeof(d->path), path);

	d->what = CLEARING;
	d->kept = kept;
	if (r >= 0)
		r = push_dir(d, dir, ".");
	return r < 0 ? r : walk_tree(d);
}

/* Return: directories that were moved up and remain, or a negative errno. */
static int remove_content(int dir, const char *name)
{
	cleanup_free struct descent *d = NEW(struct descent);
	int r;

	d->what = REMOVING;
	r = push_dir(d, dir, name);
	if (r >= 0)
		r = walk_tree(d);
	return r < 0 ? r : (int)d->moved;
}

int tree_remove(int dir, const char *name)
{
	struct stat st;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(dir, name, 0) < 0 ? -errno : 0;
	/* Each round removes DEPTH_MAX levels. */
	do {
		r = remove_content(dir, name);
	} while (r > 0);
	if (r >= 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

int tree_measure(int dir, uint64_t *ret_bytes)
{
	cleanup_free struct descent *d = NEW(struct descent);
	int r;

	d->what = MEASURING;
	r = push_dir(d, dir, ".");
	if (r >= 0)
		r = walk_tree(d);
	if (r >= 0)
		*ret_bytes = d->bytes;
	return r;
}
