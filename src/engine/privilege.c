/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/core_limit.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

/*
 * Theory of operation. Both ways give capabilities over a private mount namespace, and host ids to
 * give to boxes.
 *
 *   root           keeps the host's user namespace and takes ids from --uid-base on
 *   ordinary user  makes a user namespace in which it is root: over its subordinate ids if
 *                  /etc/subuid grants some (newuidmap and newgidmap write those maps; they are
 *                  set-uid and check the grant), else over its own id alone
 *
 * Host root is never mapped into a box: uid 0 without root's capabilities is rejected.
 */

#define RANGE_STRIDE      65536
#define SUBID_STRIDE      4096
#define SUBID_MIN         16
#define UID_LAST          0xfffffffeULL
#define NEWUIDMAP         "/usr/bin/newuidmap"
#define NEWGIDMAP         "/usr/bin/newgidmap"
#define GETENT            "/usr/bin/getent"
#define GETENT_UNKNOWN    2 /* exit status: no such user */
#define EXIT_NOT_EXECUTED 127
#define USER_MAX          256
/* pidfd, network namespace, status, agent and reattach sockets, a directory per cgroup tree. */
#define FILES_PER_BOX  11
#define FILES_OWN      64
#define SUBID_TEXT_MAX ((size_t)1024 * 1024)

bool privilege_has(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

static int enter_mounts(struct error *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "mount namespace of the engine");
	/* Mounts propagate neither to the host nor from it. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "make mounts private");
	return 0;
}

static int enter_as_root(const struct options *options, struct privilege *ret_privilege,
                         struct error *err)
{
	static const struct {
		int cap;
		const char *name;
	} needed[] = {
		{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
		{CAP_SETUID, "CAP_SETUID"},
		{CAP_SETGID, "CAP_SETGID"},
	};
	char map[4096];
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!privilege_has(needed[i].cap))
			return error_set(err, ERR_UNAVAILABLE, EPERM,
			                 "root without %s: start as an ordinary user instead",
			                 needed[i].name);
	if (options->uid_base < RANGE_STRIDE || options->uid_base > UID_LAST - RANGE_STRIDE)
		return error_field(err, "uid_base", "must be %d to %llu", RANGE_STRIDE,
		                   UID_LAST - RANGE_STRIDE);
	r = file_read_text_at(AT_FDCWD, "/proc/self/uid_map", map, sizeof(map));
	if (r < 0 || !idmap_covers(map, options->uid_base, RANGE_STRIDE))
		return error_set(err, ERR_UNAVAILABLE, r < 0 ? -r : 0,
		                 "ids from %llu on are not mapped in this user namespace",
		                 (unsigned long long)options->uid_base);
	if (setgroups(0, NULL) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "drop supplementary groups");
	*ret_privilege = (struct privilege){
		.mode = ENGINE_IDS_RANGE,
		.first = options->uid_base,
		.host_first = options->uid_base,
		.count = UID_LAST - options->uid_base,
		.stride = RANGE_STRIDE,
	};
	return enter_mounts(err);
}

/* Granted by both files; a box uses the same numbers as uids and gids. */
struct subids {
	uint64_t uid_first, gid_first, count;
};

static int read_subids(const char *path, const char *name, uint64_t *ret_first, uint64_t *ret_count)
{
	cleanup_buf struct buf text = BUF_INIT(SUBID_TEXT_MAX);
	int r = file_read_at(AT_FDCWD, path, &text);

	if (r < 0)
		return r;
	return subid_find(text.data ? text.data : "", name, getuid(), ret_first, ret_count);
}

/*
 * In a child: runs a small program of the host with no descriptor but @output; dies with the
 * engine.
 */
static void attr_noreturn exec_program(const char *path, char *const argv[], int output)
{
	static const int ignored[] = {SIGPIPE, SIGTERM, SIGINT, SIGHUP};
	char *envp[] = {NULL};

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		(void)signal(ignored[i], SIG_DFL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && dup2(output, STDOUT_FILENO) >= 0 &&
	    syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) == 0)
		(void)execve(path, argv, envp);
	_exit(EXIT_NOT_EXECUTED);
}

/* Return: exit status, or -1. */
static int wait_for_program(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* "": no name. Runs getent: a static program cannot load the NSS modules that look up names. */
static int find_user_name(char *ret_name, size_t size, struct error *err)
{
	char name[] = "getent", base[] = "passwd", number[16];
	char *argv[] = {name, base, number, NULL};
	int ends[2], status = -1, r = fd_pipe(ends, 0);
	ssize_t len = -1;
	pid_t child;

	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "pipe");
	(void)snprintf(number, sizeof(number), "%u", getuid());
	child = fork();
	if (child == 0)
		exec_program(GETENT, argv, ends[1]);
	(void)fd_close(ends[1]);
	if (child > 0) {
		len = fd_read_all(ends[0], ret_name, size - 1);
		status = wait_for_program(child);
	}
	(void)fd_close(ends[0]);
	if (len < 0 || (status != 0 && status != GETENT_UNKNOWN))
		return error_set(err, ERR_UNAVAILABLE, 0, GETENT " failed for user %s (status %d)",
		                 number, status);
	ret_name[len] = '\0';
	ret_name[strcspn(ret_name, ":\n")] = '\0';
	return 0;
}

/* Return: whether the user has subordinate ids, or -1: the lookup failed. */
static int find_subids(struct subids *ret_ids, struct error *err)
{
	char name[USER_MAX];
	uint64_t uids = 0, gids = 0;

	if (access(NEWUIDMAP, X_OK) < 0 || access(NEWGIDMAP, X_OK) < 0)
		return false;
	if (find_user_name(name, sizeof(name), err) < 0)
		return -1;
	if (read_subids("/etc/subuid", name, &ret_ids->uid_first, &uids) < 0 ||
	    read_subids("/etc/subgid", name, &ret_ids->gid_first, &gids) < 0)
		return false;
	ret_ids->count = uids < gids ? uids : gids;
	return ret_ids->count >= SUBID_MIN;
}

/* Runs `tool pid 0 own 1 1 first count`. Set-uid: absolute path, no environment. */
static int run_map_tool(const char *tool, pid_t pid, uint32_t own, uint64_t first, uint64_t count)
{
	char target[16], mine[16], start[24], number[24];
	char zero[] = "0", one[] = "1", name[32];
	char *argv[] = {name, target, zero, mine, one, one, start, number, NULL};
	pid_t child;

	(void)snprintf(name, sizeof(name), "%s", tool);
	(void)snprintf(target, sizeof(target), "%d", (int)pid);
	(void)snprintf(mine, sizeof(mine), "%u", own);
	(void)snprintf(start, sizeof(start), "%llu", (unsigned long long)first);
	(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)count);
	child = fork();
	if (child == 0)
		exec_program(tool, argv, STDOUT_FILENO);
	return child > 0 && wait_for_program(child) == 0 ? 0 : -1;
}

/* The helper stays in the host's user namespace: set-uid programs work only there. */
static void run_map_helper(int go, pid_t target, const struct subids *ids) attr_noreturn;
static void run_map_helper(int go, pid_t target, const struct subids *ids)
{
	char byte;

	if (fd_read_all(go, &byte, 1) != 1)
		_exit(1);
	if (run_map_tool(NEWUIDMAP, target, getuid(), ids->uid_first, ids->count) < 0 ||
	    run_map_tool(NEWGIDMAP, target, getgid(), ids->gid_first, ids->count) < 0)
		_exit(1);
	_exit(0);
}

static int unshare_user(struct error *err)
{
	if (unshare(CLONE_NEWUSER) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno,
		                 "ordinary users may not make user namespaces on this host");
	return 0;
}

static int map_subids(const struct subids *ids, struct error *err)
{
	int go[2];
	int r = fd_pipe(go, 0);
	pid_t target = getpid(), helper;

	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "pipe");
	helper = fork();
	if (helper == 0) {
		(void)fd_close(go[1]);
		run_map_helper(go[0], target, ids);
	}
	(void)fd_close(go[0]);
	r = helper < 0 ? error_set(err, ERR_UNAVAILABLE, errno, "fork") : unshare_user(err);
	if (r == 0 && fd_write_all(go[1], "", 1) < 0)
		r = error_set(err, ERR_UNAVAILABLE, EPIPE, "helper for the id maps");
	(void)fd_close(go[1]);
	if (helper > 0 && wait_for_program(helper) != 0 && r == 0)
		r = error_set(err, ERR_UNAVAILABLE, 0, "newuidmap or newgidmap rejected the range");
	return r;
}

static int map_single(struct error *err)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char text[32];
	int r;

	if (unshare_user(err) < 0)
		return -1;
	/* Without privilege the kernel accepts a gid_map only after this. */
	r = file_write_at(AT_FDCWD, "/proc/self/setgroups", "deny");
	(void)snprintf(text, sizeof(text), "0 %u 1\n", uid);
	if (r >= 0)
		r = file_write_at(AT_FDCWD, "/proc/self/uid_map", text);
	(void)snprintf(text, sizeof(text), "0 %u 1\n", gid);
	if (r >= 0)
		r = file_write_at(AT_FDCWD, "/proc/self/gid_map", text);
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r,
		                 "id maps: user namespaces are restricted on this host");
	return 0;
}

static int enter_as_user(struct privilege *ret_privilege, struct error *err)
{
	struct subids ids = {0};
	struct privilege privilege = {.mode = ENGINE_IDS_SINGLE, .host_first = getuid()};
	int many = find_subids(&ids, err);

	if (many < 0 || (many ? map_subids(&ids, err) : map_single(err)) < 0)
		return -1;
	if (many)
		privilege = (struct privilege){
			.mode = ENGINE_IDS_SUBID,
			.first = 1,
			.host_first = ids.uid_first,
			.count = ids.count,
			.stride = ids.count < SUBID_STRIDE ? (uint32_t)ids.count : SUBID_STRIDE,
		};
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "become root of the user namespace");
	/* The kernel forbids this with a single id: boxes then keep the user's other groups, which
	 * is part of the missing layer uid_range. */
	if (many && setgroups(0, NULL) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "drop supplementary groups");
	*ret_privilege = privilege;
	return enter_mounts(err);
}

int privilege_enter(const struct options *options, struct privilege *ret_privilege,
                    struct error *err)
{
	if (geteuid() == 0)
		return enter_as_root(options, ret_privilege, err);
	return enter_as_user(ret_privilege, err);
}

/* The soft limit is meant for programs that use select(2). */
static void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

uint32_t privilege_boxes_max(void)
{
	struct rlimit files = {.rlim_max = 1024};

	(void)getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_max <= FILES_OWN + FILES_PER_BOX)
		return 1;
	if (files.rlim_max > BOXES_MAX * FILES_PER_BOX + FILES_OWN)
		return BOXES_MAX;
	return (uint32_t)((files.rlim_max - FILES_OWN) / FILES_PER_BOX);
}

/*
 * No seccomp filter: every box would inherit it, and making a box needs what it would forbid
 * (mounts, namespaces, maps).
 */
int privilege_harden(struct error *err)
{
	const struct rlimit core = {CORE_LIMIT, CORE_LIMIT};

	raise_files();
	/* The inherited session keyring may hold keys of the user who started the engine. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return error_set(err, ERR_SYSTEM, errno, "session keyring");
	/* Best effort: needs CAP_SYS_RESOURCE. Boxes get a higher score (step_oom_score). */
	(void)!file_write_at(AT_FDCWD, "/proc/self/oom_score_adj", "-900");
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || setrlimit(RLIMIT_CORE, &core) < 0)
		return error_set(err, ERR_SYSTEM, errno, "forbid memory dumps");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set(err, ERR_SYSTEM, errno, "no_new_privs");
	return 0;
}
