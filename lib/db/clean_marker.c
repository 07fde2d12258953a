/* SPDX-License-Identifier: Apache-2.0 */
#include "db/internal.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Theory of operation. Checking every page takes time proportional to the file, and finds nothing
 * new in one closed cleanly and unchanged since. So closing writes a marker beside it with its
 * inode, size and times, which any write, copy or restore changes. The marker is emptied, durably,
 * before the next write.
 */

#define SUFFIX      "-clean"
#define MARKER_LEN  128
#define MARKER_MODE 0600

static int describe_file(const char *path, char ret_note[MARKER_LEN])
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	return str_format(ret_note, MARKER_LEN, "%jd %jd %jd.%09ld %jd.%09ld\n",
	                  (intmax_t)st.st_ino, (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec,
	                  st.st_mtim.tv_nsec, (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
}

bool clean_marker_matches(const char *path)
{
	cleanup_free char *name = xasprintf("%s" SUFFIX, path);
	cleanup_close int fd = fd_open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	char said[MARKER_LEN] = "", is[MARKER_LEN];
	ssize_t n;

	if (fd < 0 || conn_has_wal(path) || describe_file(path, is) < 0)
		return false;
	n = fd_read_all(fd, said, sizeof(said) - 1);
	return n > 0 && str_equal(said, is);
}

int clean_marker_clear(const char *path, int *ret_fd, struct error *err)
{
	cleanup_free char *name = xasprintf("%s" SUFFIX, path);
	int fd = fd_open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, MARKER_MODE);

	if (fd < 0)
		return error_set(err, ERR_CONFIG, -fd, "open %s", name);
	*ret_fd = fd;
	if (ftruncate(fd, 0) < 0 || fsync(fd) < 0)
		return error_set(err, ERR_CONFIG, errno, "write %s", name);
	return 0;
}

/* Best effort: without it the next start is slower. */
void clean_marker_write(const char *path, int fd)
{
	char note[MARKER_LEN];

	/* Another process has the file open and keeps its log. */
	if (fd < 0 || conn_has_wal(path) || describe_file(path, note) < 0)
		return;
	if (pwrite(fd, note, strlen(note), 0) != (ssize_t)strlen(note) || fsync(fd) < 0)
		log_warn("write the clean marker of %s: %s, ignoring", path, strerror(errno));
}
