/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/str.h"

/*
 * An archive's index may come last. So all files are stored, named by number, and hashed while they
 * are read.
 */

#define FILES_MAX 4096
#define CHUNK     65536

struct spool {
	int dir; /* borrowed */
	struct map *names;
	struct spool_file *files[FILES_MAX];
	size_t count;
};

/* Not spool_free, which counts as the deallocator: gcc's analyzer reports what follows a call of it
 * in this file as a use after free. */
static void spool_destroy(struct spool *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++) {
		free(s->files[i]->name);
		free(s->files[i]->target);
		free(s->files[i]);
	}
	map_free(s->names);
	free(s);
}

void spool_free(struct spool *s)
{
	spool_destroy(s);
}

static void spool_destroyp(struct spool **s)
{
	spool_destroy(*s);
}

static void file_name(const struct spool_file *file, char ret_name[16])
{
	(void)snprintf(ret_name, 16, "%u", file->number);
}

struct reading {
	struct spool *spool;
	struct archive *archive;
	const struct import_limits *limits;
	uint64_t bytes;
	struct error *err;
	char chunk[CHUNK];
};

static int fail_too_large(struct reading *in)
{
	return import_exceeds(in->err, IMPORT_LIMIT_ARCHIVE, "the archive has more than %llu bytes",
	                      (unsigned long long)in->limits->archive_bytes);
}

static int store_data(struct reading *in, struct spool_file *file, int fd)
{
	crypto_hash_sha256_state hash;
	unsigned char digest[crypto_hash_sha256_BYTES];
	la_ssize_t n;

	(void)crypto_hash_sha256_init(&hash);
	while ((n = archive_read_data(in->archive, in->chunk, sizeof(in->chunk))) > 0) {
		int r;

		in->bytes += (uint64_t)n;
		file->size += (uint64_t)n;
		if (in->bytes > in->limits->archive_bytes)
			return fail_too_large(in);
		(void)crypto_hash_sha256_update(&hash, (unsigned char *)in->chunk, (size_t)n);
		r = fd_write_all(fd, in->chunk, (size_t)n);
		if (r < 0)
			return error_set(in->err, ERR_UNAVAILABLE, -r, "store the archive");
	}
	if (n < 0)
		return error_set(in->err, ERR_INVALID, 0, "the archive is damaged: %.100s",
		                 archive_error_string(in->archive));
	(void)crypto_hash_sha256_final(&hash, digest);
	(void)sodium_bin2hex(file->digest, sizeof(file->digest), digest, sizeof(digest));
	return 0;
}

/* Old archives link "a/layer.tar" to "../b/layer.tar". */
static char *link_target(const char *name, const char *target)
{
	const char *slash = strrchr(name, '/');

	if (!target || !str_has_prefix(target, "../") || !slash)
		return NULL;
	return xstrdup(target + strlen("../"));
}

static int store_entry(struct reading *in, struct archive_entry *entry)
{
	struct spool *s = in->spool;
	const char *given = archive_entry_pathname(entry);
	const char *name = given ? tree_check(given, in->err) : NULL;
	mode_t type = archive_entry_filetype(entry);
	struct spool_file *file;
	cleanup_close int fd = -1;
	char number[16];

	if (!name)
		return given ? -1 : error_set(in->err, ERR_INVALID, 0, "entry without a name");
	if (type != AE_IFREG && type != AE_IFLNK)
		return 0;
	if (s->count == FILES_MAX)
		return error_set(in->err, ERR_TOO_LARGE, 0, "more than %d files in the archive",
		                 FILES_MAX);
	file = NEW(struct spool_file);
	file->name = xstrdup(name);
	file->number = (unsigned)s->count;
	s->files[s->count++] = file;
	if (map_put(s->names, file->name, file) < 0)
		return error_set(in->err, ERR_INVALID, 0, "'%.80s' is in the archive twice", name);
	if (type == AE_IFLNK) {
		file->target = link_target(name, archive_entry_symlink(entry));
		return 0;
	}
	file_name(file, number);
	fd = fd_open_at(s->dir, number, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_set(in->err, ERR_UNAVAILABLE, -fd, "store the archive");
	return store_data(in, file, fd);
}

static int store_all(struct reading *in)
{
	struct archive_entry *entry;

	for (;;) {
		int r = archive_read_next_header(in->archive, &entry);

		if (r == ARCHIVE_EOF)
			return 0;
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return error_set(in->err, ERR_INVALID, 0, "not an image archive: %.100s",
			                 archive_error_string(in->archive));
		/* Headers count too: nothing else bounds entries without content. */
		if ((uint64_t)archive_filter_bytes(in->archive, 0) > in->limits->archive_bytes)
			return fail_too_large(in);
		if (store_entry(in, entry) < 0)
			return -1;
	}
}

struct spool *spool_read(struct input *from, int dir, const struct import_limits *limits,
                         struct error *err)
{
	attr_cleanup(spool_destroyp) struct spool *s = NEW(struct spool);
	struct reading *in = NEW(struct reading);
	int r;

	s->dir = dir;
	s->names = map_new();
	in->spool = s;
	in->limits = limits;
	in->err = err;
	in->archive = archive_read_new();
	(void)archive_read_support_format_tar(in->archive);
	(void)archive_read_support_filter_gzip(in->archive);
	(void)archive_read_support_filter_zstd(in->archive);
	r = input_open(from, in->archive) == ARCHIVE_OK
	            ? store_all(in)
	            : error_set(err, ERR_INVALID, 0, "not an image archive: %.100s",
	                        archive_error_string(in->archive));
	(void)archive_read_free(in->archive);
	free(in);
	return r < 0 ? NULL : TAKE_PTR(s);
}

const struct spool_file *spool_find(const struct spool *s, const char *name)
{
	const struct spool_file *file = map_get(s->names, name);

	/* One step only: honest archives have no links to links. */
	if (file && file->target)
		file = map_get(s->names, file->target);
	return file && !file->target && file->digest[0] ? file : NULL;
}

int spool_open(const struct spool *s, const struct spool_file *file)
{
	char number[16];

	file_name(file, number);
	return fd_open_at(s->dir, number, O_RDONLY | O_NOFOLLOW, 0);
}
