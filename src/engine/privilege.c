/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/start.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
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
#include "engine/filter.h"
#include "engine/runtime.h"

/*
 * Theory of operation. Finds the host ids that boxes get. The engine enters a user namespace that
 * maps its share of them (namespaces.c).
 *
 *   root           ids from --uid-base on
 *   ordinary user  its subordinate ids if /etc/subuid grants some (newuidmap and newgidmap write
 *                  those maps; they are set-uid and check the grant), else its own id alone
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
#define ENGINE_NICE       (-10) /* as the daemon's */
/* pidfd, network namespace, its sockets for egress and gateway, status, agent and reattach sockets,
 * a directory per cgroup tree, one of its tenant. */
#define FILES_PER_BOX  14
#define FILES_OWN      96
#define SUBID_TEXT_MAX ((size_t)1024 * 1024)

bool privilege_has(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

/* Root of a container without uid_base: what it has must do, as for subordinate ids. */
static int find_in_container(const struct options *options, const char *uids, const char *gids,
                             struct privilege *ret_privilege, struct error *err)
{
	uint64_t first, count;

	if (idmap_upper_half(uids, SUBID_STRIDE, &first, &count) < 0 ||
	    !idmap_covers(gids, first, count))
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "ids from %llu on are not mapped in this user namespace, nor are "
		                 "%d others: give the container 65536 ids, or set uid_base",
		                 (unsigned long long)options->uid_base, 2 * SUBID_STRIDE);
	log_warn("ids from %llu on are not mapped in this user namespace: boxes get those from "
	         "%llu on",
	         (unsigned long long)options->uid_base, (unsigned long long)first);
	*ret_privilege = (struct privilege){
		.mode = ENGINE_IDS_RANGE,
		.host_uid = first,
		.host_gid = first,
		.count = count,
		.stride = SUBID_STRIDE,
	};
	return 0;
}

static int find_as_root(const struct options *options, struct privilege *ret_privilege,
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
	char map[4096], gids[4096];
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
	if (r >= 0)
		r = file_read_text_at(AT_FDCWD, "/proc/self/gid_map", gids, sizeof(gids));
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "read the id maps");
	if (!idmap_covers(map, options->uid_base, RANGE_STRIDE) ||
	    !idmap_covers(gids, options->uid_base, RANGE_STRIDE))
		return find_in_container(options, map, gids, ret_privilege, err);
	*ret_privilege = (struct privilege){
		.mode = ENGINE_IDS_RANGE,
		.host_uid = options->uid_base,
		.host_gid = options->uid_base,
		.count = UID_LAST - options->uid_base,
		.stride = RANGE_STRIDE,
	};
	return 0;
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

int wait_for_program(pid_t child)
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

/* Runs `tool pid 0 own 1 1 first count`. It is set-uid: absolute path, no environment. */
static int run_map_tool(const char *tool, pid_t pid, uint32_t own, uint32_t first, uint32_t count)
{
	char target[16], mine[16], start[16], number[16];
	char zero[] = "0", one[] = "1", name[32];
	char *argv[] = {name, target, zero, mine, one, one, start, number, NULL};
	pid_t child;

	(void)snprintf(name, sizeof(name), "%s", tool);
	(void)snprintf(target, sizeof(target), "%d", (int)pid);
	(void)snprintf(mine, sizeof(mine), "%u", own);
	(void)snprintf(start, sizeof(start), "%u", first);
	(void)snprintf(number, sizeof(number), "%u", count);
	child = fork();
	if (child == 0)
		exec_program(tool, argv, STDOUT_FILENO);
	return child > 0 && wait_for_program(child) == 0 ? 0 : -1;
}

int subids_map(pid_t pid, const struct ids *ids, struct error *err)
{
	if (run_map_tool(NEWUIDMAP, pid, getuid(), ids->host_first, ids->count) < 0 ||
	    run_map_tool(NEWGIDMAP, pid, getgid(), ids->host_gid, ids->count) < 0)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "newuidmap or newgidmap rejected the range");
	return 0;
}

static int find_as_user(struct privilege *ret_privilege, struct error *err)
{
	struct subids ids = {0};
	int many = find_subids(&ids, err);

	if (many < 0)
		return -1;
	*ret_privilege = (struct privilege){.mode = ENGINE_IDS_SINGLE, .host_uid = getuid()};
	if (many)
		*ret_privilege = (struct privilege){
			.mode = ENGINE_IDS_SUBID,
			.host_uid = ids.uid_first,
			.host_gid = ids.gid_first,
			.count = ids.count,
			.stride = ids.count < SUBID_STRIDE ? (uint32_t)ids.count : SUBID_STRIDE,
		};
	return 0;
}

int privilege_find(const struct options *options, struct privilege *ret_privilege,
                   struct error *err)
{
	if (geteuid() == 0)
		return find_as_root(options, ret_privilege, err);
	return find_as_user(ret_privilege, err);
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
 * Raised while root may do it: the user namespace takes these limits as its own, and all boxes
 * together stay below them. Each payload gets its share from the agent. The soft limit of files is
 * meant for programs that use select(2).
 */
void privilege_raise_limits(void)
{
	static const int shared[] = {RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE, RLIMIT_NPROC,
	                             RLIMIT_MEMLOCK};
	const struct rlimit infinite = {RLIM_INFINITY, RLIM_INFINITY};
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
		(void)setrlimit(shared[i], &infinite);
	/* Every tenant waits for the engine: else it would weigh a quarter of what all boxes do
	 * (cgroup.c). Boxes and zygotes take it back. */
	(void)setpriority(PRIO_PROCESS, 0, ENGINE_NICE);
}

/*
 * What the engine and its children do inside: make namespaces, mounts and maps, act as agents, own
 * workspaces, kill boxes, read their namespaces, set up loopback. A box's own user namespace starts
 * with all capabilities again, over itself.
 */
static const int used_caps[] = {
	CAP_SYS_ADMIN, CAP_SYS_CHROOT,   CAP_SYS_PTRACE, CAP_SETUID,       CAP_SETGID,
	CAP_SETPCAP,   CAP_NET_ADMIN,    CAP_CHOWN,      CAP_DAC_OVERRIDE, CAP_FOWNER,
	CAP_KILL,      CAP_SYS_RESOURCE, CAP_SETFCAP,    CAP_FSETID,
};

static int keep_used_caps(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	uint64_t keep = 0;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(used_caps); i++)
		keep |= 1ULL << used_caps[i];
	for (int i = 0; i < 2; i++)
		data[i].permitted = data[i].effective = (uint32_t)(keep >> (32 * i));
	r = caps_drop_bounding(keep);
	return r >= 0 && syscall(SYS_capset, &header, data) < 0 ? -errno : r;
}

int privilege_harden(const struct host *host, struct error *err)
{
	const struct rlimit core = {CORE_LIMIT, CORE_LIMIT};
	int r;

	/* The inherited session keyring may contain keys of the user who started the engine. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return error_set(err, ERR_SYSTEM, errno, "session keyring");
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || setrlimit(RLIMIT_CORE, &core) < 0)
		return error_set(err, ERR_SYSTEM, errno, "forbid memory dumps");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set(err, ERR_SYSTEM, errno, "no_new_privs");
	r = keep_used_caps();
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "drop capabilities");
	r = filter_install_engine(host->runtime && host->runtime->is_tracer);
	return r < 0 ? error_set(err, ERR_SYSTEM, -r, "seccomp filter") : 0;
}
