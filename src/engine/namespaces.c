/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/start.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/roots.h"

/*
 * Theory of operation. The engine, its helper, zygotes and boxes live beneath a user namespace that
 * maps only ids of this instance, with a pid namespace of their own. So nothing that serves has a
 * privilege on the host or sees a process of it, also when root started the engine.
 *
 *   outside   the process that was started. It makes the inside, writes the id maps, and becomes
 *             the guard (guard.c).
 *   inside    PID 1 of the pid namespace; from here on the engine.
 *
 * Started by root, the owner of the user namespace is the instance's first id, not root: the kernel
 * counts some resources of all boxes for that owner, and they must not be root's.
 *
 * Named roots (--roots) are mounted by root outside, with their ids mapped: files of root and of
 * the daemon, which imports, belong to ids that no process has. Otherwise overlayfs could not copy
 * them up. The engine gets a copy of those mounts with its mount namespace; as that belongs to
 * another user namespace, the kernel locks their flags: the engine cannot write there, nor clear
 * nosuid.
 */

#define INSIDE      (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)
#define MAP_MAX     96
#define BASES_STAGE "/tmp" /* exists everywhere; hidden from guard and engine only */

/* Inside: wait for the id maps, and become root of the namespace. */

/* The death signal is reset by the change of ids. A guard that died before it was set again has
 * closed its end of @link. */
static int follow_guard(int link)
{
	char byte;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (recv(link, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return 0;
	return -EPIPE;
}

static int become_root_inside(enum engine_ids mode)
{
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return -errno;
	/* The kernel forbids this with a single id: boxes then keep the user's other groups, which
	 * is part of the missing layer uid_range. */
	if (mode != ENGINE_IDS_SINGLE && setgroups(0, NULL) < 0)
		return -errno;
	return 0;
}

static int begin_inside(const struct ids *ids, int link, struct error *err)
{
	char byte;
	ssize_t n = fd_recv_plain(link, &byte, sizeof(byte), 0);
	int r;

	if (n != sizeof(byte))
		return error_set(err, ERR_UNAVAILABLE, n < 0 ? (int)-n : EPIPE,
		                 "wait for the id maps");
	r = become_root_inside(ids->mode);
	if (r >= 0)
		r = follow_guard(link);
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "become root of the user namespace");
	/* Mounts propagate neither to the host nor from it. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "make mounts private");
	return 0;
}

/* Outside: make the namespaces and write the maps. */

/* Effective ids become the owner's; the filesystem ids stay, because clone3 checks whether the
 * group may be joined. Going back restores the effective capabilities. */
static int act_as_owner(const struct ids *ids)
{
	if (ids->mode != ENGINE_IDS_RANGE)
		return 0;
	if (setresgid((gid_t)-1, ids->host_root, (gid_t)-1) < 0 ||
	    setresuid((uid_t)-1, ids->host_root, (uid_t)-1) < 0)
		return -errno;
	(void)syscall(SYS_setfsuid, 0);
	(void)syscall(SYS_setfsgid, 0);
	return 0;
}

static int act_as_starter(const struct ids *ids)
{
	if (ids->mode != ENGINE_IDS_RANGE)
		return 0;
	return setresuid((uid_t)-1, 0, (uid_t)-1) < 0 || setresgid((gid_t)-1, 0, (gid_t)-1) < 0
	               ? -errno
	               : 0;
}

static int write_map(pid_t pid, const char *file, const char *map)
{
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return file_write_at(AT_FDCWD, path, map);
}

static int write_range_maps(pid_t pid, const struct ids *ids, struct error *err)
{
	char map[MAP_MAX];
	int r = str_format(map, sizeof(map), "0 %u 1\n1 %u %u\n", ids->host_root, ids->host_first,
	                   ids->count + IDS_RESERVED);

	if (r >= 0)
		r = write_map(pid, "uid_map", map);
	if (r >= 0)
		r = write_map(pid, "gid_map", map);
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "write the id maps") : 0;
}

static int write_single_maps(pid_t pid, struct error *err)
{
	char map[MAP_MAX];
	/* Without privilege the kernel accepts a gid_map only after this. */
	int r = write_map(pid, "setgroups", "deny");

	(void)snprintf(map, sizeof(map), "0 %u 1\n", getuid());
	if (r >= 0)
		r = write_map(pid, "uid_map", map);
	(void)snprintf(map, sizeof(map), "0 %u 1\n", getgid());
	if (r >= 0)
		r = write_map(pid, "gid_map", map);
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r,
		                 "id maps: user namespaces are restricted on this host");
	return 0;
}

static int write_maps(pid_t pid, const struct ids *ids, struct error *err)
{
	if (ids->mode == ENGINE_IDS_RANGE)
		return write_range_maps(pid, ids, err);
	return ids->mode == ENGINE_IDS_SUBID ? subids_map(pid, ids, err)
	                                     : write_single_maps(pid, err);
}

static int release_inside(pid_t pid, const struct ids *ids, int link, struct error *err)
{
	const char byte = 0;
	int r;

	if (write_maps(pid, ids, err) < 0)
		return -1;
	r = fd_send(link, &byte, sizeof(byte), NULL, 0);
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "release the engine") : 0;
}

/* The kernel writes *@ret_pidfd. */
static long clone_inside(const struct ids *ids, int group, int *ret_pidfd) // NOLINT
{
	struct clone_args args = {.flags = INSIDE | CLONE_PIDFD,
	                          .exit_signal = SIGCHLD,
	                          .pidfd = (uint64_t)(uintptr_t)ret_pidfd};
	long pid = act_as_owner(ids);

	if (group >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)group;
	}
	if (pid >= 0)
		pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		return 0;
	if (pid < 0)
		pid = -errno;
	return act_as_starter(ids) < 0 && pid > 0 ? -EPERM : pid;
}

pid_t namespaces_enter(const struct ids *ids, int group, int *ret_link, struct error *err)
{
	int pair[2];
	int r = fd_socketpair(SOCK_SEQPACKET, pair);
	cleanup_close int pidfd = -1;
	long pid;

	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "socketpair");
	pid = clone_inside(ids, group, &pidfd);
	*ret_link = pid == 0 ? pair[1] : pair[0];
	(void)fd_close(pid == 0 ? pair[0] : pair[1]);
	if (pid == 0) {
		(void)!begin_inside(ids, *ret_link, err);
		return 0;
	}
	if (pid < 0)
		return error_set(err, ERR_UNAVAILABLE, (int)-pid, "%s",
		                 ids->mode == ENGINE_IDS_RANGE
		                         ? "namespaces of the engine"
		                         : "ordinary users may not make user namespaces on this "
		                           "host");
	if (release_inside((pid_t)pid, ids, *ret_link, err) == 0)
		return (pid_t)pid;
	(void)fd_pidfd_kill(pidfd, SIGKILL);
	(void)wait_for_program((pid_t)pid);
	return -1;
}

/* Named roots, outside. */

/* A process that only lends its user namespace, whose maps translate the ids of files. */
static void attr_noreturn lend_namespace(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) < 0)
		_exit(1);
	for (;;)
		(void)pause();
}

static int open_file_ids(const struct ids *ids, struct error *err)
{
	cleanup_close int pidfd = -1;
	struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_PIDFD,
	                          .exit_signal = SIGCHLD,
	                          .pidfd = (uint64_t)(uintptr_t)&pidfd};
	pid_t parent = getpid();
	char path[32], map[MAP_MAX];
	long pid = syscall(SYS_clone3, &args, sizeof(args));
	int fd = -1, r;

	if (pid == 0)
		lend_namespace(parent);
	if (pid < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "user namespace for named roots");
	r = str_format(map, sizeof(map), "0 %u 1\n%u %u 1\n", ids->host_first + ids->count,
	               ids->daemon_uid, ids->host_first + ids->count + 1);
	if (r >= 0)
		r = write_map((pid_t)pid, "uid_map", map);
	if (r >= 0)
		r = write_map((pid_t)pid, "gid_map", map);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (r >= 0)
		r = fd = fd_open(path, O_RDONLY, 0);
	(void)fd_pidfd_kill(pidfd, SIGKILL);
	(void)wait_for_program((pid_t)pid);
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "ids of named roots") : fd;
}

/* Replaces the directory by a detached mount of it. Some filesystems cannot map ids (tmpfs before
 * Linux 6.3): files there are readable to boxes as to any other user, but not writable. */
static int map_base(const char *path, int *dir, int userns)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	};
	struct mount_attr ids = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns};
	int tree = open_tree(*dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree < 0)
		return -errno;
	(void)fd_close(*dir);
	*dir = tree;
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &ids, sizeof(ids)) == 0)
		return 0;
	/* EPERM: in a user namespace, for a filesystem that was mounted outside. */
	if (errno != EINVAL && errno != EPERM)
		return -errno;
	log_warn("%s: ids of files cannot be mapped here; boxes can use only images whose files "
	         "everyone can read",
	         path);
	return 0;
}

static int attach_base(int tree, size_t i)
{
	char path[sizeof(BASES_STAGE) + 24];

	(void)snprintf(path, sizeof(path), BASES_STAGE "/%zu", i);
	if (mkdir(path, 0755) < 0 ||
	    move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

int namespaces_stage_bases(const struct options *options, const struct ids *ids, struct error *err)
{
	attr_cleanup(bases_close) struct bases bases = {0};
	cleanup_close int userns = -1;
	int r = 0;

	/* A slave: what the host unmounts must not stay mounted here. */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "mount namespace of the guard");
	userns = open_file_ids(ids, err);
	if (userns < 0 || bases_open(options->bases, options->bases_count, &bases, err) < 0)
		return -1;
	for (size_t i = 0; i < bases.count && r >= 0; i++)
		r = map_base(options->bases[i], &bases.fds[i], userns);
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "map the ids of named roots");
	/* After the last use of a path, which it may hide. */
	if (mount("tmpfs", BASES_STAGE, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
	          "size=64k,nr_inodes=64,mode=755") < 0)
		r = -errno;
	for (size_t i = 0; i < bases.count && r >= 0; i++)
		r = attach_base(bases.fds[i], i);
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "mount named roots") : 0;
}

int bases_open_staged(size_t count, struct bases *ret_bases, struct error *err)
{
	char paths[ENGINE_BASES_MAX][sizeof(BASES_STAGE) + 24];
	const char *list[ENGINE_BASES_MAX];

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), BASES_STAGE "/%zu", i);
		list[i] = paths[i];
	}
	return bases_open(list, count, ret_bases, err);
}
