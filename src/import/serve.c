/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "json/json_dump.h"

/*
 * Theory of operation. For each import the parent makes ".tmp-XXXX" with "root" and "blobs", and a
 * child that fills them. After success the parent renames the root: others see a complete root or
 * none. The next start removes leftovers named ".tmp-*". The parent reads no untrusted data except
 * file names, to remove them.
 */

#define TMP_PREFIX ".tmp-"
#define TMP_LEN    (sizeof(TMP_PREFIX) + 16)

struct import_limits import_limits_default(void)
{
	return (struct import_limits){
		.archive_bytes = 8ULL << 30,
		.root_bytes = 16ULL << 30,
		.file_bytes = 4ULL << 30,
		.entries = 500000,
		.layers = 127,
		.memory_bytes = 1ULL << 30,
		.cpu_seconds = 900,
	};
}

int import_exceeds(struct error *err, const char *limit, const char *fmt, ...)
{
	char text[sizeof(err->msg)];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	(void)error_set(err, ERR_TOO_LARGE, 0, "%s", text);
	(void)!str_copy(err->field, sizeof(err->field), limit);
	return -1;
}

bool import_is_name(const char *name)
{
	size_t len = strnlen(name, IMPORT_NAME_LEN);

	return len > 0 && len < IMPORT_NAME_LEN && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

static void write_failure(int out, const struct error *err)
{
	char why[96] = "";
	json_t *j;
	char *text;

	if (err->sys)
		(void)snprintf(why, sizeof(why), ": %s", strerrordesc_np(err->sys));
	j = json_pack("{s:s, s:s, s:s+}", "code", error_text(err->code), "limit", err->field,
	              "error", err->msg, why);
	text = j ? json_dump_text(j, JSON_COMPACT) : NULL;
	if (text)
		(void)!fd_write_all(out, text, strlen(text));
	free(text);
	json_decref(j);
}

attr_noreturn static void run_child(int tmp, const struct serve_job *job)
{
	cleanup_close int root = fd_open_at(tmp, "root", O_RDONLY | O_DIRECTORY, 0);
	cleanup_close int blobs = fd_open_at(tmp, "blobs", O_RDONLY | O_DIRECTORY, 0);
	const struct image_source source = {.fd = job->in,
	                                    .root = root,
	                                    .blobs = blobs,
	                                    .progress = job->progress ? job->out : -1,
	                                    .limits = &job->limits};
	struct error err = {0};
	char *result = NULL;

	(void)umask(0);
	if (root < 0 || blobs < 0)
		(void)error_set(&err, ERR_SYSTEM, EIO, "directories of the import");
	else if (confine(tmp, &job->limits, &err) == 0)
		result = job->plain ? plain_import(&source, &err) : image_import(&source, &err);
	if (!result) {
		write_failure(job->out, &err);
		_exit(1);
	}
	_exit(fd_write_all(job->out, result, strlen(result)) < 0 ? 1 : 0);
}

/* The group of imports has a memory limit: if it is reached, this process is killed and not the
 * one that serves others. */
static void volunteer_for_oom(void)
{
	(void)!file_write_at(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
}

static int make_tmp(int roots, char ret_name[TMP_LEN])
{
	int fd, r = 0;

	memcpy(ret_name, TMP_PREFIX, strlen(TMP_PREFIX));
	id_random(ret_name + strlen(TMP_PREFIX), 16);
	if (mkdirat(roots, ret_name, 0700) < 0)
		return -errno;
	fd = fd_open_at(roots, ret_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd >= 0 && (mkdirat(fd, "root", 0700) < 0 || mkdirat(fd, "blobs", 0700) < 0))
		r = -errno;
	return r < 0 ? r : fd;
}

/* Return: 0 if the child succeeded, or a negative errno. */
static int wait_for_child(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECANCELED;
}

/* 0777: the owner, the importer, is not mapped in a box. The parent directory restricts access. */
static int publish_root(int roots, int tmp, const char *name)
{
	if (fchmodat(tmp, "root", 0777, 0) < 0 ||
	    renameat2(tmp, "root", roots, name, RENAME_NOREPLACE) < 0)
		return -errno;
	return 0;
}

int serve_one(int roots, const struct serve_job *job)
{
	char tmp_name[TMP_LEN];
	cleanup_close int tmp = make_tmp(roots, tmp_name);
	int r = tmp;
	pid_t pid;

	if (r >= 0) {
		pid = fork();
		if (pid == 0) {
			/* Dies with the parent; the daemon handles the terminal's signals. */
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)fd_close(roots); /* the child uses only @tmp */
			volunteer_for_oom();
			run_child(tmp, job);
		}
		r = pid < 0 ? -errno : wait_for_child(pid);
	}
	if (r >= 0)
		r = publish_root(roots, tmp, job->name);
	if (tmp >= 0 && tree_remove(roots, tmp_name) < 0)
		log_warn("cannot remove %s, ignoring", tmp_name);
	return r;
}

static void sweep_tmp(int roots)
{
	int fd = fd_open_at(roots, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (str_has_prefix(entry->d_name, TMP_PREFIX) &&
		    tree_remove(roots, entry->d_name) < 0)
			log_warn("cannot remove %s, ignoring", entry->d_name);
	if (dir)
		(void)closedir(dir);
}

/*
 * One process per request: a slow client must not block others. Closing the result marks the end,
 * after the rename.
 */
attr_noreturn static void handle_order(int roots, const struct import_order *order,
                                       const int fds[2])
{
	const struct serve_job job = {.name = order->name,
	                              .in = fds[0],
	                              .out = fds[1],
	                              .progress = true,
	                              .plain = order->op == IMPORT_OP_TREE,
	                              .limits = order->limits};
	struct error err = {0};
	int r;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (order->op == IMPORT_OP_REMOVE)
		_exit(tree_remove(roots, order->name) < 0 ? 1 : 0);
	r = serve_one(roots, &job);
	if (r < 0 && r != -ECANCELED) {
		(void)error_set(&err, ERR_SYSTEM, -r, "import");
		write_failure(fds[1], &err);
	}
	/* The newline marks success, which only the parent knows. */
	if (r >= 0)
		(void)!fd_write_all(fds[1], "\n", 1);
	_exit(r < 0 ? 1 : 0);
}

static bool is_valid_order(const struct import_order *order, ssize_t n, size_t fds)
{
	size_t wanted = order->op == IMPORT_OP_REMOVE ? 0 : 2;

	return n == (ssize_t)sizeof(*order) && order->op > IMPORT_OP_NONE &&
	       order->op < IMPORT_OP_COUNT && fds == wanted && import_is_name(order->name);
}

static void start_order(int roots, int sock, const struct import_order *order, const int fds[2])
{
	if (fork() != 0) /* if fork failed, the daemon sees EOF without a newline */
		return;
	(void)signal(SIGCHLD, SIG_DFL);
	(void)fd_close(sock); /* the parser must not reach the daemon */
	handle_order(roots, order, fds);
}

int serve(int roots, int sock)
{
	const char ready = IMPORT_READY;

	/* First: the daemon's start waits for it. If that is gone, so is the socket. */
	(void)!fd_send(sock, &ready, sizeof(ready), NULL, 0);
	sweep_tmp(roots);
	/* Children are not waited for: EOF of the result pipe reports their end. */
	(void)signal(SIGCHLD, SIG_IGN);
	for (;;) {
		struct import_order order = {0};
		int fds[FD_PASS_MAX];
		size_t count = 0;
		ssize_t n = fd_recv(sock, &order, sizeof(order), fds, &count);

		if (n == 0 || (n < 0 && n != -EINTR))
			return n == 0 || n == -ECONNRESET ? 0 : 1;
		if (is_valid_order(&order, n, count))
			start_order(roots, sock, &order, fds);
		for (size_t i = 0; i < count; i++)
			(void)fd_close(fds[i]);
	}
}
