/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/file_worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "base/str.h"

/*
 * Theory of operation. Trees are walked by descriptor, without recursion, one open directory per
 * level: a directory swapped for a link leads nowhere. Entries are examined without following
 * links.
 */

struct level {
	DIR *dir; /* owned */
	size_t path_len;
};

struct tree {
	struct level levels[FILE_DEPTH_MAX];
	size_t depth;
	char path[PUT_PATH_MAX + 1];
};

static void tree_done(struct tree *t)
{
	while (t->depth > 0)
		(void)closedir(t->levels[--t->depth].dir);
}

/* Takes ownership of @fd. */
static int enter_dir(struct tree *t, int fd)
{
	struct level *level = &t->levels[t->depth];

	level->dir = fdopendir(fd);
	if (!level->dir) {
		int r = -errno;
		(void)fd_close(fd);
		return r;
	}
	level->path_len = strlen(t->path);
	t->depth++;
	return 0;
}

static bool is_dots(const char *name)
{
	return str_equal(name, ".") || str_equal(name, "..");
}

/* Return: 1 with the path of @name in t->path, 0: too long. */
static int extend_path(struct tree *t, size_t base, const char *name)
{
	int n = snprintf(t->path + base, sizeof(t->path) - base, "%s%s", base ? "/" : "", name);

	return n >= 0 && (size_t)n < sizeof(t->path) - base;
}

static int descend_into(struct file_tree_walk *w, struct tree *t, int dir, const char *name,
                        struct error *err)
{
	int fd = 0;

	if (t->depth == FILE_DEPTH_MAX) {
		w->cut = true;
		return 0;
	}
	fd = fd_open_beneath(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd >= 0)
		fd = enter_dir(t, fd);
	/* Gone or replaced. */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0 && w->strict)
		return file_worker_error(err, -fd, "read", t->path);
	w->cut |= fd < 0;
	return 0;
}

/* No result of a program: hidden, or a cache of the interpreter. */
static bool is_by_product(const char *name)
{
	return name[0] == '.' || str_equal(name, "__pycache__");
}

static int visit_entry(struct file_tree_walk *w, struct tree *t, const char *name,
                       struct error *err)
{
	struct level *level = &t->levels[t->depth - 1];
	int dir = dirfd(level->dir);
	char target[PUT_PATH_MAX + 1] = "";
	struct stat st;
	int r = 0;

	if (is_dots(name) || (w->results_only && is_by_product(name)))
		return 0;
	if (!extend_path(t, level->path_len, name)) {
		w->cut = true;
		return 0;
	}
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* gone */
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
	}
	r = w->visit(w, dir, name, &(struct file_found){t->path, &st, target, NULL}, err);
	if (r == 0 && S_ISDIR(st.st_mode))
		r = descend_into(w, t, dir, name, err);
	return r;
}

int file_tree_walk(struct file_tree_walk *w, int top, struct error *err)
{
	attr_cleanup(tree_done) struct tree t = {0};
	int r = enter_dir(&t, top);

	if (r < 0)
		return file_worker_error(err, -r, "read", "");
	while (r == 0 && t.depth > 0) {
		struct level *level = &t.levels[t.depth - 1];
		const struct dirent *entry = readdir(level->dir);
		if (entry) {
			r = visit_entry(w, &t, entry->d_name, err);
		} else {
			(void)closedir(level->dir);
			t.depth--;
		}
	}
	return r < 0 ? -1 : 0;
}

struct listing {
	const struct file_job *job;
	struct file_out *out;
	size_t bytes;
};

static int list_one(struct file_tree_walk *w, int dir, const char *name,
                    const struct file_found *found, struct error *err)
{
	struct listing *l = w->ctx;

	(void)dir;
	(void)name;
	l->bytes += strlen(found->path) + strlen(found->target);
	if (l->out->done.entries == l->job->limit || l->bytes > FILE_LIST_BYTES) {
		w->cut = true;
		return 1;
	}
	return file_worker_send_entry(l->out, found, err);
}

/* The first names in order after a given one. The limit bounds the memory, not the directory. */
struct names {
	char **list; /* owned */
	size_t count, limit;
	bool cut;
};

static void names_done(struct names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->list[i]);
	free(n->list);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_settle(struct names *n)
{
	qsort(n->list, n->count, sizeof(*n->list), compare_names);
	for (; n->count > n->limit; n->cut = true)
		free(n->list[--n->count]);
}

static void names_gather(struct names *n, DIR *dir, const char *after)
{
	const struct dirent *entry = NULL;

	assert(dir);
	n->list = xcalloc(2 * n->limit + 1, sizeof(*n->list));
	while ((entry = readdir(dir))) {
		if (is_dots(entry->d_name) || (after[0] && strcmp(entry->d_name, after) <= 0))
			continue;
		if (n->count == 2 * n->limit)
			names_settle(n);
		n->list[n->count++] = xstrdup(entry->d_name);
	}
	names_settle(n);
}

static int list_flat(const struct file_job *job, int fd, struct file_out *out, struct error *err)
{
	attr_cleanup(names_done) struct names names = {.limit = job->limit};
	attr_cleanup(tree_done) struct tree t = {0};
	struct listing l = {.job = job, .out = out};
	struct file_tree_walk w = {.visit = list_one, .ctx = &l};
	int r = enter_dir(&t, fd);

	if (r < 0)
		return file_worker_error(err, -r, "list", job->path);
	names_gather(&names, t.levels[0].dir, job->to);
	for (size_t i = 0; r == 0 && i < names.count; i++) {
		struct stat st;
		char target[PUT_PATH_MAX + 1] = "";
		if (fstatat(dirfd(t.levels[0].dir), names.list[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISLNK(st.st_mode))
			(void)!readlinkat(dirfd(t.levels[0].dir), names.list[i], target,
			                  sizeof(target) - 1);
		r = list_one(&w, 0, names.list[i],
		             &(struct file_found){names.list[i], &st, target, NULL}, err);
	}
	out->done.truncated = names.cut || w.cut;
	return r < 0 ? -1 : 0;
}

int file_tree_list(const struct file_job *job, struct file_out *out, struct error *err)
{
	struct listing l = {.job = job, .out = out};
	struct file_tree_walk w = {.visit = list_one, .ctx = &l};
	int top = file_worker_open_dir(job->path);
	int r = 0;

	if (top < 0)
		return file_worker_error(err, -top, "list", job->path);
	if (!(job->flags & WIRE_FILE_RECURSIVE))
		return list_flat(job, top, out, err);
	r = file_tree_walk(&w, top, err);
	out->done.truncated = w.cut;
	return r;
}

static int hash_file(int fd, uint64_t *budget, uint8_t ret_digest[SHA256_LEN])
{
	char data[16 * 1024];
	struct sha256 h;
	ssize_t n = 0;

	sha256_init(&h);
	while ((n = read(fd, data, sizeof(data))) > 0) {
		if ((uint64_t)n > *budget)
			return -EFBIG;
		*budget -= (uint64_t)n;
		sha256_add(&h, data, (size_t)n);
	}
	sha256_end(&h, ret_digest);
	return n < 0 ? -errno : 0;
}

struct changes {
	const struct file_job *job;
	struct file_out *out;
	uint64_t budget;
};

static int change_one(struct file_tree_walk *w, int dir, const char *name,
                      const struct file_found *found, struct error *err)
{
	struct changes *c = w->ctx;
	const struct timespec *t = &found->st->st_ctim;
	uint8_t digest[SHA256_LEN];
	struct file_found entry = *found;
	struct stat st;

	if (!S_ISREG(found->st->st_mode) ||
	    (uint64_t)t->tv_sec * 1000000000ULL + (uint64_t)t->tv_nsec < c->job->offset)
		return 0;
	if (c->out->done.entries == c->job->limit) {
		w->cut = true;
		return 1;
	}
	cleanup_close int fd = fd_open_beneath(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	/* Report the same file that was hashed. */
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		entry.st = &st;
		if ((uint64_t)st.st_size <= c->budget && hash_file(fd, &c->budget, digest) == 0)
			entry.sha256 = digest;
	}
	entry.target = NULL;
	return file_worker_send_entry(c->out, &entry, err);
}

int file_tree_changes(const struct file_job *job, struct file_out *out, struct error *err)
{
	struct changes c = {job, out, job->length};
	struct file_tree_walk w = {.visit = change_one, .ctx = &c, .results_only = true};
	int top = file_worker_open_dir("");
	int r = 0;

	if (top < 0)
		return file_worker_error(err, -top, "read", "");
	r = file_tree_walk(&w, top, err);
	out->done.truncated = w.cut;
	return r;
}

/* A deeper directory is moved to the top and emptied there: depth costs no descriptors. */
#define REMOVE_DEPTH 64

struct removal {
	struct level levels[REMOVE_DEPTH];
	size_t depth;
	unsigned moved;
};

static void removal_done(struct removal *r)
{
	while (r->depth > 0)
		(void)closedir(r->levels[--r->depth].dir);
}

static int open_to_empty(int dir, const char *name)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;
	int fd = fd_open_beneath(dir, name, flags, 0);

	/* Its mode denies even its owner. */
	if (fd == -EACCES && fchmodat(dir, name, 0700, 0) == 0)
		fd = fd_open_beneath(dir, name, flags, 0);
	/* If this fails, the removal reports it. */
	if (fd >= 0)
		(void)fchmod(fd, 0700);
	return fd;
}

static int remove_dir(struct removal *rm, int dir, const char *name)
{
	char up[48];
	DIR *sub = NULL;
	int fd = 0;

	if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return errno == ENOENT ? 0 : -errno;
	if (rm->depth == REMOVE_DEPTH) {
		(void)snprintf(up, sizeof(up), ".millibox-deep-%d-%u", getpid(), rm->moved++);
		return renameat(dir, name, dirfd(rm->levels[0].dir), up) < 0 ? -errno : 0;
	}
	fd = open_to_empty(dir, name);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	sub = fdopendir(fd);
	if (!sub) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	rm->levels[rm->depth++].dir = sub;
	return 1;
}

static int remove_one(struct removal *rm, int dir, const char *name)
{
	if (is_dots(name))
		return 0;
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	return errno == EISDIR || errno == EPERM ? remove_dir(rm, dir, name) : -errno;
}

/* Up to a subdirectory that is not empty. */
static int empty_some(struct removal *rm, bool *ret_any)
{
	DIR *dir = rm->levels[rm->depth - 1].dir;
	const struct dirent *entry = NULL;
	int r = 0;

	while (r == 0 && (entry = readdir(dir))) {
		*ret_any |= !is_dots(entry->d_name);
		r = remove_one(rm, dirfd(dir), entry->d_name);
	}
	return r;
}

/* Takes ownership of @fd. */
static int empty_dir(int fd)
{
	attr_cleanup(removal_done) struct removal rm = {0};
	int r = 0;

	rm.levels[0].dir = fdopendir(fd);
	if (!rm.levels[0].dir) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	rm.depth = 1;
	while (r >= 0 && rm.depth > 0) {
		DIR *dir = rm.levels[rm.depth - 1].dir;
		bool any = false;
		r = empty_some(&rm, &any);
		if (r != 0)
			continue;
		/* readdir may skip names while others are removed, and subdirectories are empty
		 * now. */
		if (any) {
			rewinddir(dir);
			continue;
		}
		(void)closedir(dir);
		if (--rm.depth > 0)
			rewinddir(rm.levels[rm.depth - 1].dir);
	}
	return r < 0 ? r : 0;
}

/* The program may add files meanwhile. */
#define REMOVE_TRIES 16

static int remove_tree(int dir, const char *name)
{
	int r = -ENOTEMPTY;

	for (int i = 0; i < REMOVE_TRIES && r == -ENOTEMPTY; i++) {
		int fd = open_to_empty(dir, name);
		r = fd < 0 ? fd : empty_dir(fd);
		if (r >= 0)
			r = unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
	}
	return r;
}

int file_tree_remove(const struct file_job *job, struct file_out *out, struct error *err)
{
	const char *name = NULL;
	struct stat st;
	int r = 0;

	if (!job->path[0])
		return error_set(err, ERR_INVALID, 0, "path: must not be the workspace itself");
	cleanup_close int dir = file_worker_open_parent(job->path, false, &name);
	if (dir < 0)
		return file_worker_error(err, -dir, "remove", job->path);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return file_worker_error(err, errno, "remove", job->path);
	if (!S_ISDIR(st.st_mode))
		r = unlinkat(dir, name, 0) < 0 ? -errno : 0;
	else if (unlinkat(dir, name, AT_REMOVEDIR) < 0)
		r = job->flags & WIRE_FILE_RECURSIVE ? remove_tree(dir, name) : -errno;
	if (r < 0)
		return file_worker_error(err, -r, "remove", job->path);
	out->done.entries = 1;
	return 0;
}
