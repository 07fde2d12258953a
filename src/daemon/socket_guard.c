/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/socket_guard.h"

#include "base/alloc.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GUARD_LINK 3
#define GUARD_DIR  4
#define GUARD_LOCK 5

struct charge {
	int link;
	int dir;
	int lock;
	char *name;
	struct stat socket;
};

static int move_fds(const struct charge *c)
{
	/* Out of the way first, so that none overwrites another. */
	int link = fcntl(c->link, F_DUPFD_CLOEXEC, GUARD_LOCK + 1);
	int dir = fcntl(c->dir, F_DUPFD_CLOEXEC, GUARD_LOCK + 1);
	int lock = fcntl(c->lock, F_DUPFD_CLOEXEC, GUARD_LOCK + 1);

	if (link < 0 || dir < 0 || lock < 0 || dup3(link, GUARD_LINK, O_CLOEXEC) < 0 ||
	    dup3(dir, GUARD_DIR, O_CLOEXEC) < 0 || dup3(lock, GUARD_LOCK, O_CLOEXEC) < 0)
		return -errno;
	if (close_range(GUARD_LOCK + 1, ~0U, 0) < 0 || close_range(0, GUARD_LINK - 1, 0) < 0)
		return -errno;
	return 0;
}

static void guard_socket(const void *ctx, int link)
{
	/* To unlink in a directory that another user may own. Root without it, as in some
	 * containers, still has its own directories. */
	static const uint32_t caps[] = {1U << CAP_DAC_OVERRIDE, 0};
	struct charge c = *(const struct charge *)ctx;
	struct stat now;
	ssize_t n;
	char byte;

	c.link = link;
	if (guard_drop("milliboxd-guard", caps, ARRAY_SIZE(caps)) < 0 || move_fds(&c) < 0)
		_exit(1);
	do
		n = read(GUARD_LINK, &byte, 1);
	while (n > 0 || (n < 0 && errno == EINTR));
	/* Another daemon, with other state and so not stopped by the lock, may have put its socket
	 * there, even with the same inode number. */
	if (fstatat(GUARD_DIR, c.name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    now.st_ino == c.socket.st_ino && now.st_dev == c.socket.st_dev &&
	    now.st_mtim.tv_sec == c.socket.st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == c.socket.st_mtim.tv_nsec)
		(void)unlinkat(GUARD_DIR, c.name, 0);
	_exit(0);
}

int socket_guard_start(struct guard *g, const char *path, int lock, struct error *err)
{
	cleanup_free char *dir_path = xstrdup(path);
	cleanup_free char *name = xstrdup(path);
	cleanup_close int dir = fd_open(dirname(dir_path), O_PATH | O_DIRECTORY, 0);
	struct charge charge = {.dir = dir, .lock = lock, .name = basename(name)};
	int ends[2] = {-1, -1};
	int r;

	*g = (struct guard){.link = -1};
	if (dir < 0)
		return error_set(err, ERR_SYSTEM, -dir, "open the directory of %s", path);
	if (fstatat(dir, charge.name, &charge.socket, AT_SYMLINK_NOFOLLOW) < 0)
		return error_set(err, ERR_SYSTEM, errno, "stat %s", path);
	r = fd_pipe(ends, 0);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "create a pipe");
	return guard_fork(g, (const int[]){ends[1], ends[0]}, guard_socket, &charge, err);
}
