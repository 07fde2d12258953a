/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dir_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "cli/message.h"

#define BLOCK (64 * 1024)
/* Links must not lead outside while entries are made; an existing link is replaced, not followed.
 */
#define UNPACK_FLAGS                                                                               \
	(ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_SECURE_SYMLINKS |                                  \
	 ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS |                \
	 ARCHIVE_EXTRACT_UNLINK)
#define PERMISSIONS 0777

typedef struct archive archive_reader;
typedef struct archive archive_writer;

attr_noreturn static void die(const char *what, struct archive *a)
{
	const char *why = a ? archive_error_string(a) : strerror(errno);

	message_show("%s: %s", what, why ? why : "failed");
	_exit(1);
}

static void copy_content(archive_reader *from, archive_writer *to)
{
	const void *data;
	size_t len;
	int64_t offset;
	int r;

	while ((r = archive_read_data_block(from, &data, &len, &offset)) == ARCHIVE_OK)
		if (archive_write_data_block(to, data, len, offset) < ARCHIVE_OK)
			die("write", to);
	if (r != ARCHIVE_EOF)
		die("read the archive", from);
}

static bool is_wanted(struct archive_entry *entry)
{
	mode_t type = archive_entry_filetype(entry);

	return type == AE_IFREG || type == AE_IFDIR || type == AE_IFLNK ||
	       archive_entry_hardlink(entry);
}

/* Padding follows the end of an archive; its writer must not fail. */
static void drain(int in)
{
	char data[BLOCK];

	while (read(in, data, sizeof(data)) > 0)
		;
}

/* @exact: permissions as in the archive, whatever the umask. */
attr_noreturn static void unpack_with(int in, int dir, bool exact)
{
	archive_reader *from = archive_read_new();
	archive_writer *to = archive_write_disk_new();
	struct archive_entry *entry;
	int r;

	if (fchdir(dir) < 0)
		die("enter the directory", NULL);
	archive_read_support_format_tar(from);
	archive_write_disk_set_options(to, UNPACK_FLAGS | (exact ? ARCHIVE_EXTRACT_PERM : 0));
	if (archive_read_open_fd(from, in, BLOCK) != ARCHIVE_OK)
		die("read the archive", from);
	while ((r = archive_read_next_header(from, &entry)) == ARCHIVE_OK) {
		if (!is_wanted(entry))
			continue;
		archive_entry_set_perm(entry, archive_entry_perm(entry) & PERMISSIONS);
		if (archive_write_header(to, entry) < ARCHIVE_OK)
			die(archive_entry_pathname(entry), to);
		copy_content(from, to);
		if (archive_write_finish_entry(to) < ARCHIVE_OK)
			die(archive_entry_pathname(entry), to);
	}
	if (r != ARCHIVE_EOF)
		die("read the archive", from);
	if (archive_write_close(to) != ARCHIVE_OK)
		die("write", to);
	drain(in);
	_exit(0);
}

attr_noreturn static void unpack(int in, int dir)
{
	unpack_with(in, dir, false);
}

attr_noreturn static void unpack_exact(int in, int dir)
{
	unpack_with(in, dir, true);
}

static void pack_content(archive_writer *to, const char *path)
{
	int fd = fd_open(path, O_RDONLY | O_NOFOLLOW, 0);
	char data[BLOCK];
	ssize_t n = -1;

	if (fd < 0) {
		errno = -fd;
		die(path, NULL);
	}
	while ((n = read(fd, data, sizeof(data))) > 0)
		if (archive_write_data(to, data, (size_t)n) < 0)
			die("write the archive", to);
	if (n < 0)
		die(path, NULL);
	(void)fd_close(fd);
}

/* The child is in the directory: names are relative to it. */
attr_noreturn static void pack(int out, int dir)
{
	archive_reader *from = archive_read_disk_new();
	archive_writer *to = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	int r;

	if (fchdir(dir) < 0)
		die("enter the directory", NULL);
	archive_write_set_format_pax_restricted(to);
	if (archive_read_disk_open(from, ".") != ARCHIVE_OK)
		die("read the directory", from);
	if (archive_write_open_fd(to, out) != ARCHIVE_OK)
		die("write the archive", to);
	while ((r = archive_read_next_header2(from, entry)) == ARCHIVE_OK) {
		(void)archive_read_disk_descend(from);
		if (!is_wanted(entry))
			continue;
		archive_entry_set_hardlink(entry, NULL);
		if (archive_write_header(to, entry) < ARCHIVE_OK)
			die("write the archive", to);
		if (archive_entry_filetype(entry) == AE_IFREG)
			pack_content(to, archive_entry_sourcepath(entry));
	}
	if (r != ARCHIVE_EOF)
		die("read the directory", from);
	if (archive_write_close(to) != ARCHIVE_OK)
		die("write the archive", to);
	_exit(0);
}

/* @child uses one end of a pipe and the directory; we keep the other end. */
static int start(int dir, bool reads, void (*child)(int stream, int dir),
                 struct dir_archive *ret_archive, struct error *err)
{
	int ends[2];
	int r = fd_pipe(ends, 0);

	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "pipe");
	*ret_archive = (struct dir_archive){.pid = fork(), .fd = ends[reads ? 1 : 0]};
	if (ret_archive->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)fd_close(ends[reads ? 1 : 0]);
		child(ends[reads ? 0 : 1], dir);
	}
	r = errno;
	(void)fd_close(ends[reads ? 0 : 1]);
	if (ret_archive->pid > 0)
		return 0;
	ret_archive->pid = 0;
	return error_set(err, ERR_SYSTEM, r, "fork");
}

int dir_archive_pack(const char *path, struct dir_archive *ret_archive, struct error *err)
{
	cleanup_close int dir = fd_open(path, O_RDONLY | O_DIRECTORY, 0);

	if (dir < 0)
		return error_set(err, ERR_INVALID, -dir, "read '%s'", path);
	return start(dir, false, pack, ret_archive, err);
}

int dir_archive_unpack(const char *path, bool exact, struct dir_archive *ret_archive,
                       struct error *err)
{
	cleanup_close int dir = -1;

	if (mkdir(path, PERMISSIONS) < 0 && errno != EEXIST)
		return error_set(err, ERR_INVALID, errno, "make '%s'", path);
	dir = fd_open(path, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return error_set(err, ERR_INVALID, -dir, "open '%s'", path);
	return start(dir, true, exact ? unpack_exact : unpack, ret_archive, err);
}

int dir_archive_end(struct dir_archive *archive)
{
	int status = 0;

	archive->fd = fd_close(archive->fd);
	if (archive->pid == 0)
		return 0;
	while (waitpid(archive->pid, &status, 0) < 0 && errno == EINTR)
		;
	archive->pid = 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

void dir_archive_done(struct dir_archive *archive)
{
	if (archive->pid > 0)
		(void)kill(archive->pid, SIGKILL);
	(void)!dir_archive_end(archive);
}
