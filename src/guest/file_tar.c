/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/file_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "guest/tar.h"

/*
 * Theory of operation. Archives are packed and unpacked inside the box with the payload's rights: a
 * bug in this parser gains an attacker nothing. Bytes go straight between pipe and file.
 *
 * An incoming archive is not trusted: names are cleaned and resolved without following links, links
 * must stay inside, only files, directories and links are accepted, entries and bytes are limited.
 * What was unpacked before a bad entry stays; an incomplete file does not.
 */

/* Of files in an archive: the payload's id where it has one of its own. */
#define ARCHIVE_OWNER 1000

struct archive {
	const struct file_job *job;
	struct file_out *out;
	uint64_t left; /* content bytes still allowed */
	struct tar_entry entry;
	uint8_t blocks[TAR_HEADERS_MAX];
	char data[FRAME_CHUNK];
};

/* As the header says, even if the file changes. */
static int put_content(struct archive *a, int fd, uint64_t size, struct error *err)
{
	uint64_t left = size + tar_padding(size);
	bool ended = false;

	while (left > 0) {
		size_t want = left < sizeof(a->data) ? (size_t)left : sizeof(a->data);
		uint64_t real = left > tar_padding(size) ? left - tar_padding(size) : 0;
		ssize_t n = 0;
		if (!ended && real > 0)
			n = read(fd, a->data, real < want ? (size_t)real : want);
		if (n <= 0) {
			ended = true;
			memset(a->data, 0, want);
			n = (ssize_t)want;
		}
		if (file_worker_send_bytes(a->out, a->data, (size_t)n, err) < 0)
			return -1;
		left -= (uint64_t)n;
	}
	return 0;
}

static int put_header(struct archive *a, const struct file_found *found, struct error *err)
{
	struct tar_entry *e = &a->entry;
	size_t len = strlen(found->path);

	e->mode = found->st->st_mode & 0777;
	e->owner = ARCHIVE_OWNER;
	e->mtime = found->st->st_mtim.tv_sec > 0 ? (uint64_t)found->st->st_mtim.tv_sec : 0;
	memcpy(e->name, found->path, len + 1);
	if (e->kind == TAR_DIR && len < TAR_NAME_MAX)
		memcpy(e->name + len, "/", 2);
	len = tar_write(e, a->blocks);
	if (len == 0)
		return file_worker_error(err, ENAMETOOLONG, "pack", found->path);
	a->out->done.entries++;
	return file_worker_send_bytes(a->out, a->blocks, len, err);
}

static int too_large(const struct file_job *job, struct error *err)
{
	return error_set(
		err, ERR_TOO_LARGE, 0,
		"the directory has more than %llu bytes of files, counting holes and every "
		"hard link in full",
		(unsigned long long)job->length);
}

static int too_many(const struct file_job *job, struct error *err)
{
	return error_set(err, ERR_TOO_LARGE, 0, "the directory has more than %u entries",
	                 job->limit);
}

static int pack_file(struct archive *a, int dir, const char *name, const struct file_found *found,
                     struct error *err)
{
	cleanup_close int fd = fd_open_beneath(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	struct file_found opened = *found;
	struct stat st;

	if (fd == -ENOENT || fd == -ELOOP)
		return 0; /* replaced */
	if (fd < 0 || fstat(fd, &st) < 0)
		return file_worker_error(err, fd < 0 ? -fd : errno, "pack", found->path);
	if (!S_ISREG(st.st_mode))
		return 0;
	opened.st = &st;
	a->entry.kind = TAR_FILE;
	a->entry.size = (uint64_t)st.st_size;
	/* The file is growing. */
	if (a->entry.size > a->left)
		return too_large(a->job, err);
	a->left -= a->entry.size;
	if (put_header(a, &opened, err) < 0)
		return -1;
	return put_content(a, fd, a->entry.size, err);
}

static int pack_one(struct file_tree_walk *w, int dir, const char *name,
                    const struct file_found *found, struct error *err)
{
	struct archive *a = w->ctx;
	mode_t mode = found->st->st_mode;

	if (a->out->done.entries == a->job->limit)
		return too_many(a->job, err);
	a->entry.size = 0;
	a->entry.link[0] = '\0';
	if (S_ISREG(mode))
		return pack_file(a, dir, name, found, err);
	if (S_ISLNK(mode)) {
		a->entry.kind = TAR_SYMLINK;
		memcpy(a->entry.link, found->target, strlen(found->target) + 1);
		return put_header(a, found, err);
	}
	a->entry.kind = TAR_DIR;
	return S_ISDIR(mode) ? put_header(a, found, err) : 0;
}

struct measure {
	const struct file_job *job;
	uint64_t entries, left;
};

static int measure_one(struct file_tree_walk *w, int dir, const char *name,
                       const struct file_found *found, struct error *err)
{
	struct measure *m = w->ctx;
	uint64_t size = S_ISREG(found->st->st_mode) ? (uint64_t)found->st->st_size : 0;

	(void)dir;
	(void)name;
	if (m->entries++ == m->job->limit)
		return too_many(m->job, err);
	if (size > m->left)
		return too_large(m->job, err);
	m->left -= size;
	return 0;
}

static int walk_job(const struct file_job *job, struct file_tree_walk *w, struct error *err)
{
	int top = file_worker_open_dir(job->path);

	if (top < 0)
		return file_worker_error(err, -top, "pack", job->path);
	if (file_tree_walk(w, top, err) < 0)
		return -1;
	if (w->cut)
		return error_set(err, ERR_TOO_LARGE, 0, "the directory is more than %d levels deep",
		                 FILE_DEPTH_MAX);
	return 0;
}

/*
 * An archive has each file's apparent size: holes and every hard link count in full, so a box of
 * megabytes could produce terabytes of zeros. Count before the first byte, while "too large" can
 * still be reported.
 */
int file_tar_pack(const struct file_job *job, struct file_out *out, struct error *err)
{
	struct measure m = {.job = job, .left = job->length};
	struct archive *a = NEW(struct archive);
	struct file_tree_walk look = {.visit = measure_one, .ctx = &m, .strict = true};
	struct file_tree_walk w = {.visit = pack_one, .ctx = a, .strict = true};
	int r = 0;

	a->job = job;
	a->out = out;
	a->left = job->length;
	r = walk_job(job, &look, err);
	if (r >= 0)
		r = walk_job(job, &w, err);
	memset(a->data, 0, 2 * TAR_BLOCK);
	if (r >= 0)
		r = file_worker_send_bytes(out, a->data, 2 * TAR_BLOCK, err);
	free(a);
	return r;
}

struct unpack {
	const struct file_job *job;
	struct file_out *out;
	struct file_in in;
	struct wire_bytes piece; /* not consumed yet */
	uint64_t left;           /* bytes still allowed */
	int top;
	struct tar_entry entry;
	struct tar_entry next; /* from headers before the next entry */
	char extra[TAR_EXTRA_MAX];
};

static int bad_entry(struct unpack *u, struct error *err, const char *why)
{
	return error_set(err, ERR_INVALID, 0, "'%.80s' in the archive %s", u->entry.name, why);
}

static int bad_end(struct error *err)
{
	return error_set(err, ERR_INVALID, 0, "the archive ends in the middle of an entry");
}

/* At most @max bytes, at least one. Return: how many, 0 at EOF, -1. */
static ssize_t take_some(struct unpack *u, size_t max, const char **ret_data, struct error *err)
{
	uint32_t n = 0;

	while (u->piece.len == 0) {
		int r = file_worker_receive(&u->in, &u->piece, err);
		if (r <= 0)
			return r;
	}
	n = u->piece.len < max ? u->piece.len : (uint32_t)max;
	if (n > u->left)
		return file_worker_error(err, EFBIG, "unpack", u->job->path);
	u->left -= n;
	*ret_data = u->piece.data;
	u->piece.data += n;
	u->piece.len -= n;
	return n;
}

/* Exactly @len bytes. Return: 1, 0: EOF before the first, -1. */
static int take_exact(struct unpack *u, void *ret_data, size_t len, struct error *err)
{
	size_t have = 0;

	while (have < len) {
		const char *data = NULL;
		ssize_t n = take_some(u, len - have, &data, err);
		if (n < 0)
			return -1;
		if (n == 0 && have == 0)
			return 0;
		if (n == 0)
			return bad_end(err);
		assert(data);
		memcpy((char *)ret_data + have, data, (size_t)n);
		have += (size_t)n;
	}
	return 1;
}

/* @size bytes and padding, to @fd; -1: discard. */
static int take_content(struct unpack *u, int fd, uint64_t size, struct error *err)
{
	uint8_t padding[TAR_BLOCK];

	for (uint64_t left = size; left > 0;) {
		const char *data = NULL;
		ssize_t n =
			take_some(u, left < FRAME_CHUNK ? (size_t)left : FRAME_CHUNK, &data, err);
		int r = 0;
		if (n < 0)
			return -1;
		if (n == 0)
			return bad_end(err);
		r = fd < 0 ? 0 : fd_write_all(fd, data, (size_t)n);
		if (r < 0)
			return file_worker_error(err, -r, "unpack", u->entry.name);
		left -= (uint64_t)n;
	}
	size = tar_padding(size);
	if (size > 0 && take_exact(u, padding, (size_t)size, err) == 0)
		return bad_end(err);
	return error_is_set(err) ? -1 : 0;
}

/* The parent of @name below the top; @make: create it. Follows no link. */
static int open_parent(struct unpack *u, const char *name, bool make, const char **ret_last)
{
	char path[TAR_NAME_MAX + 1];
	char *part = path, *slash = NULL;
	int dir = fd_dup(u->top);

	memcpy(path, name, strlen(name) + 1);
	for (; dir >= 0 && (slash = strchr(part, '/')); part = slash + 1) {
		int next = 0;
		*slash = '\0';
		if (make && mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
			next = -errno;
		else
			next = fd_open_beneath(dir, part, O_PATH | O_DIRECTORY, 0);
		(void)fd_close(dir);
		dir = next;
	}
	*ret_last = name + (part - path);
	return dir;
}

static int set_time(int dir, const char *name, uint64_t mtime)
{
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = mtime > INT32_MAX ? INT32_MAX : (time_t)mtime},
	};

	return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int unpack_file(struct unpack *u, int dir, const char *name, struct error *err)
{
	const struct tar_entry *e = &u->entry;
	char temp[FILE_TEMP_LEN];
	int r = 0;

	file_worker_temp_name(temp);
	cleanup_close int fd = fd_open_beneath(dir, temp, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return file_worker_error(err, -fd, "unpack", e->name);
	r = take_content(u, fd, e->size, err);
	if (r == 0 && (fchmod(fd, e->mode) < 0 || renameat(dir, temp, dir, name) < 0))
		r = file_worker_error(err, errno, "unpack", e->name);
	if (r < 0) {
		(void)unlinkat(dir, temp, 0);
		return -1;
	}
	/* Best effort. */
	(void)set_time(dir, name, e->mtime);
	u->out->done.bytes += e->size;
	return 0;
}

static int unpack_dir(struct unpack *u, int dir, const char *name, struct error *err)
{
	struct stat st;

	if (mkdirat(dir, name, u->entry.mode | 0700) < 0 &&
	    (errno != EEXIST || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	     !S_ISDIR(st.st_mode)))
		return file_worker_error(err, errno, "unpack", u->entry.name);
	return take_content(u, -1, u->entry.size, err);
}

/* Replaces anything but a directory; never follows a link. */
static int unpack_symlink(struct unpack *u, int dir, const char *name, struct error *err)
{
	if (!tar_link_stays(u->entry.name, u->entry.link))
		return bad_entry(u, err, "is a link that points outside");
	(void)unlinkat(dir, name, 0);
	if (symlinkat(u->entry.link, dir, name) < 0)
		return file_worker_error(err, errno, "unpack", u->entry.name);
	return take_content(u, -1, u->entry.size, err);
}

static int unpack_hardlink(struct unpack *u, int dir, const char *name, struct error *err)
{
	const char *other = NULL;
	int r = 0;

	if (tar_clean_name(u->entry.link) < 0 || !u->entry.link[0])
		return bad_entry(u, err, "is a link that points outside");
	cleanup_close int from = open_parent(u, u->entry.link, false, &other);
	if (from < 0)
		return file_worker_error(err, -from, "unpack", u->entry.link);
	(void)unlinkat(dir, name, 0);
	r = linkat(from, other, dir, name, 0) < 0 ? -errno : 0;
	if (r < 0)
		return file_worker_error(err, -r, "unpack", u->entry.name);
	return take_content(u, -1, u->entry.size, err);
}

static int unpack_one(struct unpack *u, struct error *err)
{
	static int (*const makers[])(struct unpack * u, int dir, const char *name,
	                             struct error *err) = {
		[TAR_FILE] = unpack_file,
		[TAR_DIR] = unpack_dir,
		[TAR_SYMLINK] = unpack_symlink,
		[TAR_HARDLINK] = unpack_hardlink,
	};
	const char *name = NULL;

	if (u->entry.kind >= ARRAY_SIZE(makers))
		return bad_entry(u, err, "is not a file, directory or link");
	if (tar_clean_name(u->entry.name) < 0)
		return bad_entry(u, err, "is not a valid relative path");
	if (!u->entry.name[0])
		return u->entry.kind == TAR_DIR ? take_content(u, -1, u->entry.size, err)
		                                : bad_entry(u, err, "has no name");
	if (u->out->done.entries++ == u->job->limit)
		return error_set(err, ERR_TOO_LARGE, 0, "the archive has more than %u entries",
		                 u->job->limit);
	cleanup_close int dir = open_parent(u, u->entry.name, true, &name);
	if (dir < 0)
		return file_worker_error(err, -dir, "unpack", u->entry.name);
	return makers[u->entry.kind](u, dir, name, err);
}

/* About the next entry. */
static int take_extra(struct unpack *u, struct error *err)
{
	size_t size = (size_t)u->entry.size;
	struct tar_entry *next = &u->next;
	int r = 0;

	if (u->entry.kind == TAR_PAX_ALL)
		return take_content(u, -1, u->entry.size, err);
	if (u->entry.size > sizeof(u->extra) - TAR_BLOCK)
		return bad_entry(u, err, "has a header that is too long");
	memset(u->extra, 0, sizeof(u->extra));
	if (size > 0 && take_exact(u, u->extra, size + tar_padding(size), err) <= 0)
		return error_is_set(err) ? -1 : bad_entry(u, err, "is truncated");
	if (u->entry.kind == TAR_PAX) {
		r = tar_read_pax(u->extra, size, next);
	} else {
		char *to = u->entry.kind == TAR_LONG_NAME ? next->name : next->link;
		size_t len = strnlen(u->extra, size);
		r = len > TAR_NAME_MAX ? -ENAMETOOLONG : 0;
		if (r == 0)
			memcpy(to, u->extra, len + 1);
	}
	return r < 0 ? bad_entry(u, err, "has a malformed header") : 0;
}

static bool is_extra(enum tar_kind kind)
{
	return kind == TAR_PAX || kind == TAR_PAX_ALL || kind == TAR_LONG_NAME ||
	       kind == TAR_LONG_LINK;
}

/* UINT64_MAX: not set. */
static void reset_next(struct unpack *u)
{
	u->next.name[0] = u->next.link[0] = '\0';
	u->next.size = UINT64_MAX;
}

static void apply_next(struct unpack *u)
{
	if (u->next.name[0])
		memcpy(u->entry.name, u->next.name, sizeof(u->entry.name));
	if (u->next.link[0])
		memcpy(u->entry.link, u->next.link, sizeof(u->entry.link));
	if (u->next.size != UINT64_MAX)
		u->entry.size = u->next.size;
	reset_next(u);
}

/* Return: 1, 0 at the end, -1. */
static int unpack_next(struct unpack *u, struct error *err)
{
	uint8_t block[TAR_BLOCK];
	int r = take_exact(u, block, sizeof(block), err);

	if (r <= 0)
		return r;
	if (tar_is_end(block))
		return 0;
	if (tar_read(block, &u->entry) < 0)
		return error_set(err, ERR_INVALID, 0, "not a tar archive");
	if (is_extra(u->entry.kind))
		return take_extra(u, err) < 0 ? -1 : 1;
	apply_next(u);
	return unpack_one(u, err) < 0 ? -1 : 1;
}

/* Read padding after the end: no EPIPE for the sender. */
static int take_rest(struct unpack *u, struct error *err)
{
	const char *data = NULL;
	ssize_t n = 0;

	do
		n = take_some(u, FRAME_CHUNK, &data, err);
	while (n > 0);
	return n < 0 ? -1 : 0;
}

static int open_top(const struct file_job *job)
{
	const char *name = NULL;
	int top = file_worker_open_dir(job->path);

	if (top != -ENOENT || !(job->flags & WIRE_FILE_PARENTS))
		return top;
	cleanup_close int dir = file_worker_open_parent(job->path, true, &name);
	if (dir < 0)
		return dir;
	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return file_worker_open_dir(job->path);
}

int file_tar_unpack(const struct file_job *job, struct file_out *out, struct error *err)
{
	struct unpack *u = NEW(struct unpack);
	int r = 1;

	u->job = job;
	u->out = out;
	u->left = job->length;
	reset_next(u);
	u->top = open_top(job);
	if (u->top < 0)
		r = file_worker_error(err, -u->top, "unpack into", job->path);
	while (r > 0)
		r = unpack_next(u, err);
	if (r == 0)
		r = take_rest(u, err);
	(void)fd_close(u->top);
	free(u);
	return r;
}
