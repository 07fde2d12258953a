/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/str.h"

/*
 * Theory of operation. Every name of the archive is resolved with the root as "/" (openat2), so a
 * link planted by an earlier entry cannot lead outside. The last component is never followed: an
 * existing file is removed and created anew.
 *
 * Owners, set-uid bits and attributes are not preserved: the importer is unprivileged. A box has
 * its own copy, in which everyone may read and write all files, as root could in the image.
 *
 * Whiteouts remove files of earlier layers; files added by the same layer stay.
 */

#define WHITEOUT ".wh."
#define OPAQUE   ".wh..wh..opq"
#define CHUNK    65536
/* Work between two progress lines. */
#define REPORT_BYTES   (8ULL << 20)
#define REPORT_ENTRIES 2000

struct applying {
	const struct layer *l;
	struct archive *archive;
	struct map *added;   /* paths of this layer */
	struct map *cleared; /* inodes of opaque directories of this layer */
	struct error *err;
	char chunk[CHUNK];
};

static void remember_path(struct applying *a, const char *path)
{
	cleanup_free char *copy = xstrdup(path);

	/* Also its parents, up to the first that is already known. */
	while (*copy && map_put(a->added, copy, a) == 0) {
		char *slash = strrchr(copy, '/');

		*(slash ? slash : copy) = '\0';
	}
}

static bool is_added(void *ctx, const char *path)
{
	const struct applying *a = ctx;

	return map_get(a->added, path) != NULL;
}

static int fail_path(struct applying *a, int r, const char *path)
{
	return error_set(a->err, r == -ENOSPC || r == -EDQUOT ? ERR_UNAVAILABLE : ERR_INVALID, -r,
	                 "'%.80s'", path);
}

static const char *inode_key(uint64_t inode, char *ret_key, size_t size)
{
	(void)snprintf(ret_key, size, "%llu", (unsigned long long)inode);
	return ret_key;
}

static bool is_cleared(void *ctx, uint64_t inode)
{
	const struct applying *a = ctx;
	char key[24];

	return map_get(a->cleared, inode_key(inode, key, sizeof(key))) != NULL;
}

/*
 * Every directory is cleared once, under whatever name, and not again as part of another: after
 * that it has only files of this layer. So the work is linear in the number of entries.
 */
static int apply_opaque(struct applying *a, int dir, const char *path)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *above = xmemdup0(path, slash ? (size_t)(slash - path) : 0);
	const struct tree_kept kept = {is_added, is_cleared, a};
	struct stat st;
	char key[24];
	int r = fstat(dir, &st) < 0 ? -errno : 0;

	if (r >= 0 && map_put(a->cleared, inode_key(st.st_ino, key, sizeof(key)), a) < 0)
		return 0;
	if (r >= 0)
		r = tree_clear(dir, above, &kept);
	return r < 0 ? fail_path(a, r, path) : 0;
}

static int apply_whiteout(struct applying *a, int dir, const char *path, const char *name)
{
	size_t prefix = strlen(WHITEOUT);
	cleanup_free char *hidden = NULL;
	int r;

	if (str_equal(name, OPAQUE))
		return apply_opaque(a, dir, path);
	name += prefix;
	/* Other names with this prefix belong to other tools; ignore them. */
	if (str_has_prefix(name, WHITEOUT))
		return 0;
	if (!*name || str_equal(name, ".") || str_equal(name, ".."))
		return error_set(a->err, ERR_INVALID, 0, "whiteout without a name: '%.80s'", path);
	hidden = xmemdup0(path, (size_t)(strlen(path) - strlen(name) - prefix));
	{
		cleanup_free char *whole = xasprintf("%s%s", hidden, name);

		if (is_added(a, whole))
			return 0;
	}
	r = tree_remove(dir, name);
	return r < 0 ? fail_path(a, r, path) : 0;
}

static int make_dir(struct applying *a, int dir, const char *path, const char *name)
{
	struct stat st;
	int r = 0;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return 0;
	r = tree_remove(dir, name);
	if (r >= 0 && mkdirat(dir, name, 0777) < 0)
		r = -errno;
	return r < 0 ? fail_path(a, r, path) : 0;
}

void layer_report(struct import_counts *counts, bool now)
{
	char line[IMPORT_PROGRESS_LEN];

	if (counts->out < 0 || (!now && counts->bytes - counts->reported_bytes < REPORT_BYTES &&
	                        counts->entries - counts->reported_entries < REPORT_ENTRIES))
		return;
	counts->reported_bytes = counts->bytes;
	counts->reported_entries = counts->entries;
	(void)snprintf(line, sizeof(line), IMPORT_PROGRESS "%llu %llu %llu %llu\n",
	               (unsigned long long)counts->layers, (unsigned long long)counts->layer,
	               (unsigned long long)counts->entries, (unsigned long long)counts->bytes);
	/* A failed write does not matter: the parent ends the import. */
	(void)!fd_write_all(counts->out, line, strlen(line));
}

static int fail_too_large(struct applying *a, bool is_file, const char *path)
{
	return import_exceeds(a->err, is_file ? IMPORT_LIMIT_FILE : IMPORT_LIMIT_ROOT,
	                      "'%.80s' %s too large", path, is_file ? "is" : "makes the image");
}

/* Holes of a sparse file count: they would be written. */
static int check_size(struct applying *a, struct archive_entry *entry, const char *path)
{
	const struct import_limits *limits = a->l->limits;
	la_int64_t size = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;

	if (size < 0)
		return error_set(a->err, ERR_INVALID, 0, "'%.80s' has a negative size", path);
	if ((uint64_t)size > limits->file_bytes)
		return fail_too_large(a, true, path);
	if (a->l->counts->bytes > limits->root_bytes ||
	    (uint64_t)size > limits->root_bytes - a->l->counts->bytes)
		return fail_too_large(a, false, path);
	return 0;
}

static int copy_data(struct applying *a, int fd, const char *path)
{
	const struct import_limits *limits = a->l->limits;
	uint64_t size = 0;

	for (;;) {
		la_ssize_t n = archive_read_data(a->archive, a->chunk, sizeof(a->chunk));
		int r;

		if (n == 0)
			return 0;
		if (n < 0)
			return error_set(a->err, ERR_INVALID, 0, "'%.80s': %.100s", path,
			                 archive_error_string(a->archive));
		size += (uint64_t)n;
		a->l->counts->bytes += (uint64_t)n;
		if (size > limits->file_bytes || a->l->counts->bytes > limits->root_bytes)
			return fail_too_large(a, size > limits->file_bytes, path);
		layer_report(a->l->counts, false);
		r = fd_write_all(fd, a->chunk, (size_t)n);
		if (r < 0)
			return fail_path(a, r, path);
	}
}

static int make_file(struct applying *a, struct archive_entry *entry, int dir, const char *path,
                     const char *name)
{
	bool runs = archive_entry_perm(entry) & 0111;
	cleanup_close int fd = -1;
	int r;

	if (check_size(a, entry, path) < 0)
		return -1;
	r = tree_remove(dir, name);
	if (r >= 0)
		r = fd = fd_open_at(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (r < 0)
		return fail_path(a, r, path);
	if (copy_data(a, fd, path) < 0)
		return -1;
	return fchmod(fd, runs ? 0777 : 0666) < 0 ? fail_path(a, -errno, path) : 0;
}

static int make_link(struct applying *a, struct archive_entry *entry, int dir, const char *path,
                     const char *name)
{
	const char *target = archive_entry_symlink(entry);
	int r = target && *target && strlen(target) < IMPORT_PATH_MAX ? 0 : -EINVAL;

	if (r >= 0)
		r = tree_remove(dir, name);
	if (r >= 0 && symlinkat(target, dir, name) < 0)
		r = -errno;
	return r < 0 ? fail_path(a, r, path) : 0;
}

static int make_hardlink(struct applying *a, const char *given, int dir, const char *path,
                         const char *name)
{
	const char *target = tree_check(given, a->err);
	cleanup_close int from = -1;
	const char *old;
	struct stat st;
	int r;

	if (!target)
		return -1;
	from = tree_parent(a->l->root, target, false, &old, a->err);
	if (from < 0)
		return -1;
	/* A hard link to a symlink could lead outside; other types are not needed. */
	if (fstatat(from, old, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return error_set(a->err, ERR_INVALID, 0,
		                 "'%.80s' is a hard link to a non-regular file", path);
	if (str_equal(target, path))
		return 0;
	r = tree_remove(dir, name);
	if (r >= 0 && linkat(from, old, dir, name, 0) < 0)
		r = -errno;
	return r < 0 ? fail_path(a, r, path) : 0;
}

static int apply_node(struct applying *a, struct archive_entry *entry, int dir, const char *path,
                      const char *name)
{
	const char *hard = archive_entry_hardlink(entry);
	mode_t type = archive_entry_filetype(entry);

	if (hard)
		return make_hardlink(a, hard, dir, path, name);
	if (type == AE_IFDIR)
		return make_dir(a, dir, path, name);
	if (type == AE_IFLNK)
		return make_link(a, entry, dir, path, name);
	if (type == AE_IFREG)
		return make_file(a, entry, dir, path, name);
	a->l->counts->dropped++;
	return 0;
}

static int apply_entry(struct applying *a, struct archive_entry *entry)
{
	const char *given = archive_entry_pathname(entry);
	cleanup_close int dir = -1;
	cleanup_free char *path = NULL;
	const char *checked, *name;

	if (++a->l->counts->entries > a->l->limits->entries)
		return import_exceeds(a->err, IMPORT_LIMIT_ENTRIES, "more than %llu entries",
		                      (unsigned long long)a->l->limits->entries);
	layer_report(a->l->counts, false);
	checked = given ? tree_check(given, a->err) : NULL;
	if (!checked)
		return given ? -1 : error_set(a->err, ERR_INVALID, 0, "entry without a name");
	path = xstrdup(checked);
	for (size_t len = strlen(path); len > 0 && path[len - 1] == '/'; len--)
		path[len - 1] = '\0';
	if (!*path)
		return 0; /* the root itself */
	dir = tree_parent(a->l->root, path, true, &name, a->err);
	if (dir < 0)
		return -1;
	if (str_has_prefix(name, WHITEOUT))
		return apply_whiteout(a, dir, path, name);
	remember_path(a, path);
	return apply_node(a, entry, dir, path, name);
}

static la_ssize_t on_read(struct archive *archive, void *ctx, const void **ret_data)
{
	struct applying *a = ctx;
	static char data[CHUNK]; /* a process does one import */
	ptrdiff_t n = a->l->read(a->l->ctx, data, sizeof(data));

	*ret_data = data;
	if (n < 0)
		archive_set_error(archive, (int)-n, "the layer is damaged");
	return n < 0 ? -1 : n;
}

static int apply_all(struct applying *a)
{
	struct archive_entry *entry;

	for (;;) {
		int r = archive_read_next_header(a->archive, &entry);

		if (r == ARCHIVE_EOF)
			return 0;
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN && archive_errno(a->archive) == EFBIG)
			return import_exceeds(a->err, IMPORT_LIMIT_ROOT, "the layer is too large");
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return error_set(a->err, ERR_INVALID, 0, "%.120s",
			                 archive_error_string(a->archive));
		if (apply_entry(a, entry) < 0)
			return -1;
	}
}

int layer_apply(const struct layer *l, struct error *err)
{
	struct applying *a = NEW(struct applying);
	int r;

	a->l = l;
	a->err = err;
	a->added = map_new();
	a->cleared = map_new();
	a->archive = archive_read_new();
	(void)archive_read_support_format_tar(a->archive);
	(void)archive_read_support_format_empty(a->archive);
	if (archive_read_open(a->archive, a, NULL, on_read, NULL) != ARCHIVE_OK)
		r = error_set(err, ERR_INVALID, 0, "%.120s", archive_error_string(a->archive));
	else
		r = apply_all(a);
	(void)archive_read_free(a->archive);
	map_free(a->cleared);
	map_free(a->added);
	free(a);
	return r;
}
