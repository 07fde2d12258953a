/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "oci/runtimes.h"

/*
 * The program of a runtime: found on the host by absolute path, before anything is given up; later
 * executed by descriptor. Its one question, --version, is asked without privileges, in a tree of
 * system directories, for a limited time; of the answer only the version is read.
 */

#define ANSWER_MAX   1024
#define ANSWER_MS    5000
#define NOT_EXECUTED 127

static int fail_missing(const struct runtime_row *row, const char *path, int sys, struct error *err)
{
	if (sys == ENOENT && path == row->paths[0])
		return error_set(err, ERR_UNAVAILABLE, 0, "%s is not installed: apt-get install %s",
		                 row->runtime.name, row->package);
	return error_set(err, ERR_UNAVAILABLE, sys, "the program '%.128s' of %s", path,
	                 row->runtime.name);
}

static const char *find_path(const struct runtime_row *row, const struct options *options)
{
	if (options->binary)
		return options->binary;
	for (size_t i = 1; i < RUNTIME_PATHS_MAX && row->paths[i]; i++)
		if (access(row->paths[0], F_OK) < 0 && access(row->paths[i], F_OK) == 0)
			return row->paths[i];
	return row->paths[0];
}

/* Who may write to it could run code as any box. */
static int check_owner(int fd, const char *path, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "'%.128s'", path);
	if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IXUSR))
		return error_set(err, ERR_UNAVAILABLE, 0, "'%.128s' is not a program", path);
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "'%.128s' is not used: others than this user and root may write "
		                 "to it",
		                 path);
	return 0;
}

int program_open(const struct options *options, struct host *host, struct error *err)
{
	const struct runtime_row *row = runtime_row_of(host);
	const char *path = find_path(row, options);
	cleanup_close int fd = -1;

	if (row->needs_root && host->ids.mode == ENGINE_IDS_SINGLE)
		return error_set(
			err, ERR_UNAVAILABLE, 0,
			"%s needs more than one id: start as root, or as root run: usermod "
			"--add-subuids 100000-165535 --add-subgids 100000-165535 USER",
			row->runtime.name);
	if (path[0] != '/')
		return error_set(err, ERR_CONFIG, 0, "'%.128s' is not an absolute path", path);
	fd = fd_open(path, O_RDONLY, 0);
	if (fd < 0)
		return fail_missing(row, path, -fd, err);
	if (check_owner(fd, path, err) < 0)
		return -1;
	host->runtime_exe = TAKE_FD(fd);
	return 0;
}

int program_release(const char *answer, const char *says, char ret_release[ENGINE_RELEASE_LEN])
{
	size_t len = 0;

	while (!str_has_prefix(answer, says)) {
		answer = strchr(answer, '\n');
		if (!answer)
			return -ENOENT;
		answer++;
	}
	answer += strlen(says);
	while (len < ENGINE_RELEASE_LEN - 1 && answer[len] > ' ' && answer[len] <= '~')
		len++;
	if (len == 0)
		return -ENOENT;
	memset(ret_release, 0, ENGINE_RELEASE_LEN);
	memcpy(ret_release, answer, len);
	return 0;
}

/* As the agent of the first box: an id without a file. With a single id only capabilities go. */
static int drop_all(const struct host *host)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[2] = {0};
	uint32_t id = ids_agent(&host->ids, 0);

	/* Some look at /proc even for this. */
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount("/proc", ROOT_TEMPLATE "/proc", NULL, MS_BIND, NULL) < 0 ||
	    chroot(ROOT_TEMPLATE) < 0 || chdir("/") < 0)
		return -errno;
	if (host->ids.mode != ENGINE_IDS_SINGLE &&
	    (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0))
		return -errno;
	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

static void attr_noreturn ask(const struct host *host, int answer)
{
	char name[ENGINE_RUNTIME_LEN], word[] = "--version";
	char *argv[] = {name, word, NULL}, *envp[] = {NULL};
	int null = fd_open(ROOT_TEMPLATE "/dev/null", O_RDWR, 0);

	memcpy(name, host->runtime->name, sizeof(name));
	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(answer, STDOUT_FILENO) >= 0 &&
	    dup2(answer, STDERR_FILENO) >= 0 && drop_all(host) == 0)
		(void)execveat(host->runtime_exe, "", argv, envp, AT_EMPTY_PATH);
	_exit(NOT_EXECUTED);
}

/* Until the end, the time limit or the maximum. Return: length. */
static size_t read_answer(int fd, char *ret_text, size_t size)
{
	uint64_t end_us = clock_us() + ANSWER_MS * USEC_PER_MS;
	size_t len = 0;

	while (len < size) {
		struct pollfd in = {.fd = fd, .events = POLLIN};
		uint64_t now = clock_us();
		ssize_t n;

		if (now >= end_us || poll(&in, 1, (int)((end_us - now) / USEC_PER_MS) + 1) <= 0)
			break;
		n = read(fd, ret_text + len, size - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	return len;
}

int program_check(struct host *host, struct error *err)
{
	const struct runtime_row *row = runtime_row_of(host);
	char answer[ANSWER_MAX + 1] = "";
	int ends[2], r = fd_pipe(ends, 0);
	pid_t child;

	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "pipe");
	child = fork();
	if (child == 0)
		ask(host, ends[1]);
	(void)fd_close(ends[1]);
	if (child > 0) {
		answer[read_answer(ends[0], answer, ANSWER_MAX)] = '\0';
		/* Our own child, not yet waited for: the number is still its own. */
		(void)kill(child, SIGKILL);
		(void)waitpid(child, NULL, 0);
	}
	(void)fd_close(ends[0]);
	if (program_release(answer, row->says, host->runtime->release) < 0)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "the program of %s does not say that it is %s: apt-get install "
		                 "--reinstall %s",
		                 row->runtime.name, row->runtime.name, row->package);
	return 0;
}
