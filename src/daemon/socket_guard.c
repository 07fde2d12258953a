/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/socket_guard.h"

#include "base/alloc.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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
	/* Move them all out of the way first, so that none overwrites another. */
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

static int keep_only_the_right(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {0};

	/* To remove a name from a directory that another user may own. */
	caps[0].effective = caps[0].permitted = 1U << CAP_DAC_OVERRIDE;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	if (syscall(SYS_capset, &header, caps) == 0)
		return 0;
	/* Root without it, as in some containers, still has access to its own directories. */
	caps[0].effective = caps[0].permitted = 0;
	return syscall(SYS_capset, &header, caps) < 0 ? -errno : 0;
}

attr_noreturn static void guard_main(const struct charge *c)
{
	static const int deaf_to[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
	                              SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU};
	struct stat now;
	ssize_t n;
	char byte;

	/* Ctrl-C goes to the whole group; the guard outlives the daemon. */
	for (size_t i = 0; i < ARRAY_SIZE(deaf_to); i++)
		(void)signal(deaf_to[i], SIG_IGN);
	(void)prctl(PR_SET_NAME, "milliboxd-guard");
	if (move_fds(c) < 0 || keep_only_the_right() < 0)
		_exit(1);
	do
		n = read(GUARD_LINK, &byte, 1);
	while (n > 0 || (n < 0 && errno == EINTR));
	/* Another daemon, with other state and so not stopped by the lock, may have put its own
	 * socket there, and even have got the same inode number. */
	if (fstatat(GUARD_DIR, c->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    now.st_ino == c->socket.st_ino && now.st_dev == c->socket.st_dev &&
	    now.st_mtim.tv_sec == c->socket.st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == c->socket.st_mtim.tv_nsec)
		(void)unlinkat(GUARD_DIR, c->name, 0);
	_exit(0);
}

static int fork_guard(struct socket_guard *g, struct charge *c, struct error *err)
{
	int ends[2] = {-1, -1};
	int r = fd_pipe(ends, 0);

	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "create a pipe");
	c->link = ends[0];
	g->pid = fork();
	if (g->pid == 0)
		guard_main(c);
	(void)fd_close(ends[0]);
	g->link = ends[1];
	if (g->pid > 0)
		return 0;
	r = errno;
	g->link = fd_close(g->link);
	g->pid = 0;
	return error_set(err, ERR_SYSTEM, r, "fork");
}

int socket_guard_start(struct socket_guard *g, const char *path, int lock, struct error *err)
{
	cleanup_free char *dir_path = xstrdup(path);
	cleanup_free char *name = xstrdup(path);
	cleanup_close int dir = fd_open(dirname(dir_path), O_PATH | O_DIRECTORY, 0);
	struct charge charge = {.dir = dir, .lock = lock, .name = basename(name)};

	*g = (struct socket_guard){.link = -1};
	if (dir < 0)
		return error_set(err, ERR_SYSTEM, -dir, "open the directory of %s", path);
	if (fstatat(dir, charge.name, &charge.socket, AT_SYMLINK_NOFOLLOW) < 0)
		return error_set(err, ERR_SYSTEM, errno, "stat %s", path);
	return fork_guard(g, &charge, err);
}

void socket_guard_end(struct socket_guard *g)
{
	if (g->pid <= 0)
		return;
	g->link = fd_close(g->link);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	g->pid = 0;
}
