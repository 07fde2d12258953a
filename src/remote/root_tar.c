/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/root_tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

/* A stack of bounded depth instead of recursion: the content of a root is hostile. Nothing is
 * followed: names are opened one by one, beneath their directory. */
#define DEPTH_MAX 128
#define OUT_MAX   (256 * 1024)

struct level {
	DIR *dir; /* owned */
	size_t name_len;
};

struct root_tar {
	struct level levels[DEPTH_MAX];
	size_t depth;
	int file;       /* owned; -1: none */
	uint64_t left;  /* bytes of @file */
	size_t padding; /* after them */
	bool has_ended;
	bool (*is_above)(const char *path);
	struct buf out;         /* owned */
	struct tar_entry entry; /* its name is where the walk is */
	uint8_t blocks[TAR_HEADERS_MAX];
};

static int add_header(struct buf *b, const struct tar_entry *e, uint8_t blocks[TAR_HEADERS_MAX])
{
	size_t len = tar_write(e, blocks);

	return len == 0 ? -ENAMETOOLONG : buf_add(b, blocks, len);
}

static int add_zeros(struct buf *b, size_t len)
{
	static const char zeros[2 * TAR_BLOCK];
	int r = 0;

	while (len > 0 && r >= 0) {
		size_t n = len < sizeof(zeros) ? len : sizeof(zeros);

		r = buf_add(b, zeros, n);
		len -= n;
	}
	return r;
}

int root_tar_add(struct buf *b, const struct root_name *name)
{
	cleanup_free struct tar_entry *e = NEW(struct tar_entry);
	cleanup_free uint8_t *blocks = xmalloc(TAR_HEADERS_MAX);
	size_t len = name->kind == TAR_FILE && name->text ? strlen(name->text) : 0;
	int r = str_copy(e->name, sizeof(e->name), name->name);

	e->kind = name->kind;
	e->mode = name->mode;
	e->size = len;
	if (r >= 0 && name->kind == TAR_SYMLINK)
		r = str_copy(e->link, sizeof(e->link), name->text);
	if (r >= 0)
		r = add_header(b, e, blocks);
	if (r >= 0 && len > 0)
		r = buf_add(b, name->text, len);
	return r < 0 ? r : add_zeros(b, tar_padding(len));
}

static int push_dir(struct root_tar *t, int fd)
{
	DIR *dir = t->depth == DEPTH_MAX ? NULL : fdopendir(fd);

	if (!dir) {
		(void)fd_close(fd);
		return t->depth == DEPTH_MAX ? -E2BIG : -errno;
	}
	t->levels[t->depth++] = (struct level){dir, strlen(t->entry.name)};
	return 0;
}

static void pop_dir(struct root_tar *t)
{
	struct level *level = &t->levels[--t->depth];

	(void)closedir(level->dir);
	if (t->depth > 0)
		t->entry.name[t->levels[t->depth - 1].name_len] = '\0';
}

struct root_tar *root_tar_new(int dir, struct buf *above, bool (*is_above)(const char *path))
{
	struct root_tar *t = NEW(struct root_tar);

	t->file = -1;
	t->is_above = is_above;
	/* They come first. */
	t->out = *above;
	t->out.max = OUT_MAX;
	*above = BUF_INIT(above->max);
	if (dir >= 0 && push_dir(t, dir) < 0)
		t->has_ended = true;
	return t;
}

void root_tar_free(struct root_tar *t)
{
	if (!t)
		return;
	while (t->depth > 0)
		pop_dir(t);
	(void)fd_close(t->file);
	buf_done(&t->out);
	free(t);
}

static int add_link(struct root_tar *t, int dir, const char *name)
{
	ssize_t len = readlinkat(dir, name, t->entry.link, TAR_NAME_MAX);

	if (len < 0)
		return -errno;
	t->entry.link[len] = '\0';
	t->entry.kind = TAR_SYMLINK;
	return add_header(&t->out, &t->entry, t->blocks);
}

static int add_dir(struct root_tar *t, int dir, const char *name)
{
	size_t len = strlen(t->entry.name);
	bool is_above = t->is_above(t->entry.name);
	int fd = fd_open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = fd;

	t->entry.kind = TAR_DIR;
	if (r >= 0 && len < TAR_NAME_MAX)
		memcpy(t->entry.name + len, "/", 2);
	/* What it contains is the root's all the same. */
	if (r >= 0 && !is_above)
		r = add_header(&t->out, &t->entry, t->blocks);
	if (r >= 0)
		return push_dir(t, fd);
	(void)fd_close(fd);
	return r;
}

static int add_file(struct root_tar *t, int dir, const char *name)
{
	cleanup_close int fd = fd_open_at(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return fd < 0 ? fd : -EINVAL;
	t->entry.kind = TAR_FILE;
	t->entry.size = (uint64_t)st.st_size;
	r = add_header(&t->out, &t->entry, t->blocks);
	t->left = t->entry.size;
	t->padding = tar_padding(t->left);
	if (r >= 0)
		t->file = TAKE_FD(fd);
	return r;
}

static int add_entry(struct root_tar *t, const struct level *at, const char *name)
{
	int dir = dirfd(at->dir);
	size_t room = sizeof(t->entry.name) - at->name_len;
	struct stat st;

	if (str_copy(t->entry.name + at->name_len, room, name) < 0)
		return -ENAMETOOLONG;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	t->entry.mode = st.st_mode & 0777;
	t->entry.mtime = st.st_mtim.tv_sec > 0 ? (uint64_t)st.st_mtim.tv_sec : 0;
	t->entry.size = 0;
	t->entry.link[0] = '\0';
	if (S_ISDIR(st.st_mode))
		return add_dir(t, dir, name);
	if (t->is_above(t->entry.name))
		return 0;
	if (S_ISLNK(st.st_mode))
		return add_link(t, dir, name);
	return S_ISREG(st.st_mode) ? add_file(t, dir, name) : 0;
}

/* The errors that leave an entry out; all others end the tar. */
static bool is_unreadable(int r)
{
	return r == -EACCES || r == -EPERM || r == -ENOENT || r == -ELOOP || r == -EINVAL;
}

static int next_entry(struct root_tar *t)
{
	struct level *at = &t->levels[t->depth - 1];
	struct dirent *entry = readdir(at->dir);
	int r;

	if (!entry) {
		pop_dir(t);
		return 0;
	}
	if (str_equal(entry->d_name, ".") || str_equal(entry->d_name, ".."))
		return 0;
	r = add_entry(t, at, entry->d_name);
	if (!is_unreadable(r))
		return r;
	log_debug("%s is left out of the root (%s)", t->entry.name, strerror(-r));
	return 0;
}

/* As the header says, even if the file changes. */
static int next_content(struct root_tar *t)
{
	char piece[64 * 1024];
	size_t want = t->left < sizeof(piece) ? (size_t)t->left : sizeof(piece);
	ssize_t n = want > 0 ? read(t->file, piece, want) : 0;

	if (n <= 0) {
		memset(piece, 0, want);
		n = (ssize_t)want;
	}
	t->left -= (uint64_t)n;
	if (t->left > 0)
		return buf_add(&t->out, piece, (size_t)n);
	t->file = fd_close(t->file);
	if (buf_add(&t->out, piece, (size_t)n) < 0)
		return -ENOBUFS;
	return add_zeros(&t->out, t->padding);
}

static int fill(struct root_tar *t)
{
	if (t->file >= 0)
		return next_content(t);
	if (t->depth > 0)
		return next_entry(t);
	t->has_ended = true;
	return add_zeros(&t->out, 2 * TAR_BLOCK);
}

ssize_t root_tar_read(struct root_tar *t, char *data, size_t size)
{
	size_t len;

	while (t->out.len == 0 && !t->has_ended) {
		int r = fill(t);

		if (r < 0)
			return r;
	}
	len = t->out.len < size ? t->out.len : size;
	if (len > 0)
		memcpy(data, t->out.data, len);
	buf_consume(&t->out, len);
	return (ssize_t)len;
}
