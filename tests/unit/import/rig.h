/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a scratch directory with a root, and archives made from entries. */

#include "unit.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "import/import.h"

struct rig {
	char dir[32];
	int outside, root; /* scratch directory; "root" in it */
	struct error err;
};

static inline int rig_up(void **state)
{
	struct rig *r = NEW(struct rig);

	(void)umask(022);
	memcpy(r->dir, "/tmp/import-XXXXXX", sizeof("/tmp/import-XXXXXX"));
	if (!mkdtemp(r->dir))
		return -1;
	r->outside = fd_open(r->dir, O_RDONLY | O_DIRECTORY, 0);
	if (r->outside < 0 || mkdirat(r->outside, "root", 0700) < 0)
		return -1;
	r->root = fd_open_at(r->outside, "root", O_RDONLY | O_DIRECTORY, 0);
	*state = r;
	return r->root < 0 ? -1 : 0;
}

static inline int rig_down(void **state)
{
	struct rig *r = *state;

	(void)fd_close(r->root);
	(void)fd_close(r->outside);
	if (tree_remove(AT_FDCWD, r->dir) < 0)
		return -1;
	free(r);
	return 0;
}

static inline bool rig_has(const struct rig *r, const char *path)
{
	return faccessat(r->root, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline void rig_put(int dir, const char *path, const char *text)
{
	cleanup_close int fd = fd_open_at(dir, path, O_WRONLY | O_CREAT, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

/* One entry of an archive. */
struct rig_entry {
	const char *path, *data; /* @data: content of a file, target of a link */
	mode_t type;             /* 0: a file; AE_IFDIR, AE_IFLNK, ...; RIG_HARD */
	mode_t mode;             /* 0: 0644 */
};
#define RIG_HARD ((mode_t)1)

static inline void rig_add(struct archive *a, const struct rig_entry *e)
{
	struct archive_entry *entry = archive_entry_new();
	const char *data = e->data ? e->data : "";
	bool is_file = e->type == 0;

	archive_entry_set_pathname(entry, e->path);
	archive_entry_set_filetype(entry, is_file || e->type == RIG_HARD ? AE_IFREG : e->type);
	archive_entry_set_perm(entry, e->mode ? e->mode : 0644);
	archive_entry_set_size(entry, is_file ? (la_int64_t)strlen(data) : 0);
	if (e->type == AE_IFLNK)
		archive_entry_set_symlink(entry, data);
	if (e->type == RIG_HARD)
		archive_entry_set_hardlink(entry, data);
	assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
	if (is_file && *data)
		assert_int_equal(archive_write_data(a, data, strlen(data)), strlen(data));
	archive_entry_free(entry);
}

/* Return: length of the archive in @buf. */
static inline size_t rig_tar(char *buf, size_t size, const struct rig_entry *entries, size_t count)
{
	struct archive *a = archive_write_new();
	size_t used = 0;

	(void)archive_write_set_format_pax_restricted(a);
	assert_int_equal(archive_write_open_memory(a, buf, size, &used), ARCHIVE_OK);
	for (size_t i = 0; i < count; i++)
		rig_add(a, &entries[i]);
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	(void)archive_write_free(a);
	return used;
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)
