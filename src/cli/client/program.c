/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/program.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/install_paths.h"

char *program_find(const char *name, struct error *err)
{
	char own[PATH_MAX] = "";
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	const char *const dirs[] = {own, MILLIBOX_BINDIR, MILLIBOX_SBINDIR, MILLIBOX_LIBEXECDIR};

	/* "": unknown. */
	while (n > 0 && own[n - 1] != '/')
		n--;
	own[n > 0 ? n - 1 : 0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		cleanup_free char *path = xasprintf("%s/%s", dirs[i], name);

		if (dirs[i][0] && access(path, X_OK) == 0)
			return TAKE_PTR(path);
	}
	(void)error_set(err, ERR_NOT_FOUND, 0, "%s is neither beside millibox nor in %s", name,
	                MILLIBOX_LIBEXECDIR);
	return NULL;
}

char *program_find_engine(struct error *err)
{
	const char *path = getenv("MILLIBOX_ENGINE_PATH");

	return path && *path ? xstrdup(path) : program_find("millibox-engine", err);
}

char *program_search(const char *name)
{
	const char *dirs = getenv("PATH");

	for (; dirs && *dirs; dirs += strcspn(dirs, ":"), dirs += *dirs == ':') {
		cleanup_free char *path = xasprintf("%.*s/%s", (int)strcspn(dirs, ":"), dirs, name);

		/* A relative directory is not a place for a program that root runs. */
		if (*path == '/' && access(path, X_OK) == 0)
			return TAKE_PTR(path);
	}
	return NULL;
}

static int spawn_program(const char *const *argv, int out, bool both, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (r == 0 && both)
		r = posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
	if (r == 0)
		r = posix_spawn(ret_pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int wait_for(pid_t pid, const char *name, int *ret_status, struct error *err)
{
	while (waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return error_set(err, ERR_SYSTEM, errno, "wait for %s", name);
	return 0;
}

int program_run(const char *const *argv, int *ret_status, struct error *err)
{
	posix_spawn_file_actions_t actions;
	pid_t pid = 0;
	int r = posix_spawn_file_actions_init(&actions);

	if (r == 0) {
		r = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
		if (r == 0)
			r = posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)argv,
			                environ);
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	if (r != 0)
		return error_set(err, ERR_SYSTEM, r, "start %s", argv[0]);
	return wait_for(pid, argv[0], ret_status, err);
}

int program_read_fd(int fd, struct buf *out)
{
	char piece[16384];
	ssize_t n;

	do {
		n = read(fd, piece, sizeof(piece));
		if (n > 0 && buf_add(out, piece, (size_t)n) < 0)
			return -EFBIG;
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : 0;
}

static int read_streams(const char *const *argv, bool both, struct buf *ret_out, int *ret_status,
                        struct error *err)
{
	int ends[2] = {-1, -1};
	int r = fd_pipe(ends, 0);
	cleanup_close int in = ends[0];
	cleanup_close int out = ends[1];
	pid_t pid = 0;

	if (r >= 0)
		r = spawn_program(argv, out, both, &pid);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "start %s", argv[0]);
	out = fd_close(out);
	r = program_read_fd(in, ret_out);
	/* A program still writing gets SIGPIPE, so that the wait ends. */
	in = fd_close(in);
	if (wait_for(pid, argv[0], ret_status, err) < 0)
		return -1;
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "read from %s", argv[0]);
	return 0;
}

int program_read(const char *const *argv, struct buf *ret_out, int *ret_status, struct error *err)
{
	return read_streams(argv, false, ret_out, ret_status, err);
}

int program_read_both(const char *const *argv, struct buf *ret_out, int *ret_status,
                      struct error *err)
{
	return read_streams(argv, true, ret_out, ret_status, err);
}
