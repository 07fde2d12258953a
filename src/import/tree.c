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
#define BLOCK     512 /* unit of st_blocks, whatever the file system has */

/* A ".." would be harmless beneath openat2, but nobody honest writes one. */
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
		(void)error_set(err, ERR_INVALID, 0, "a name of more than %d bytes",
		                IMPORT_PATH_MAX);
		return NULL;
	}
	if (has_bad_part(path)) {
		(void)error_set(err, ERR_INVALID, 0, "a name that leads up: '%.80s'", given);
		return NULL;
	}
	return path;
}

static int open_in_root(int root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		/* Links of the image lead where they would lead inside it. */
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	/* EAGAIN: somebody on this machine renamed something while a ".." of a link was followed,
	 * and the kernel cannot tell whether it led out. It can when it is asked again. */
	do {
		fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
	} while (fd < 0 && errno == EAGAIN);
	return fd < 0 ? -errno : (int)fd;
}

/* One level at a time: @dir has room for the whole of it and is changed. */
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
 * Going down and up again without recursion, with a directory open per level. What an archive made
 * can be deeper than that, by links into what is deep already: who removes moves such a directory
 * up to where he began and finds it there later.
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
		REMOVING, /* all of it */
		MEASURING
	} what;
	/* CLEARING: what is asked for by its path */
	tree_keep_fn *keep;
	void *ctx;
	char path[IMPORT_PATH_MAX * 2];
	unsigned moved; /* REMOVING: directories that were too deep */
	uint64_t bytes; /* MEASURING */
};

static int push(struct descent *d, int at, const char *name)
{
	struct level *level = &d->levels[d->depth];
	int fd = d->depth == DEPTH_MAX
	                 ? -ELOOP
	                 : fd_open_at(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return fd < 0 ? fd : -errno;
	*level = (struct level){.dir = dir, .path_len = strlen(d->path)};
	(void)!str_copy(level->name, sizeof(level->name), name); /* is that of an entry */
	d->depth++;
	return 0;
}

/* Out of the innermost directory, which is removed unless something in it was kept. */
static void pop(struct descent *d)
{
	struct level *level = &d->levels[--d->depth];

	(void)closedir(level->dir);
	if (d->depth == 0)
		return;
	if (d->what != MEASURING) /* ENOTEMPTY: it has something that is kept. */
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
		/* A name that is taken is that of an earlier one: a later one is free. */
		if (errno != EEXIST)
			return -errno;
	}
}

static int enter(struct descent *d, int at, const char *name)
{
	if (d->what == REMOVING && d->depth == DEPTH_MAX)
		return move_up(d, at, name);
	return push(d, at, name);
}

static int leave_file(struct descent *d, int at, const char *name)
{
	if (d->what == MEASURING || (d->what == CLEARING && d->keep(d->ctx, d->path)))
		return 0;
	return unlinkat(at, name, 0) < 0 ? -errno : 0;
}

static int visit(struct descent *d, const char *name)
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
	if (S_ISDIR(st.st_mode))
		return enter(d, at, name);
	r = leave_file(d, at, name);
	d->path[len] = '\0';
	return r;
}

static int descend(struct descent *d)
{
	int r = 0;

	while (d->depth > 0) {
		struct dirent *entry = r < 0 ? NULL : readdir(d->levels[d->depth - 1].dir);

		if (!entry)
			pop(d);
		else if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, ".."))
			r = visit(d, entry->d_name);
	}
	return r;
}

int tree_clear(int dir, const char *path, tree_keep_fn *keep, void *ctx)
{
	cleanup_free struct descent *d = NEW(struct descent);
	int r = str_copy(d->path, sizeof(d->path), path);

	d->what = CLEARING;
	d->keep = keep;
	d->ctx = ctx;
	if (r >= 0)
		r = push(d, dir, ".");
	return r < 0 ? r : descend(d);
}

/* Return: how many directories were moved up and are left, or a negative errno. */
static int remove_content(int dir, const char *name)
{
	cleanup_free struct descent *d = NEW(struct descent);
	int r;

	d->what = REMOVING;
	r = push(d, dir, name);
	if (r >= 0)
		r = descend(d);
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
	/* Each round takes DEPTH_MAX levels off what is too deep. */
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
	r = push(d, dir, ".");
	if (r >= 0)
		r = descend(d);
	if (r >= 0)
		*ret_bytes = d->bytes;
	return r;
}
