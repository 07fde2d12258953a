/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/probe.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/start.h"

/* Security modules and limits decide only when a namespace is made: each one is made, in a child
 * that exits. */

static const struct {
	enum wire_layer layer;
	int flag;
} kinds[] = {
	{LAYER_USER, CLONE_NEWUSER},        {LAYER_PID, CLONE_NEWPID},   {LAYER_MNT, CLONE_NEWNS},
	{LAYER_NET, CLONE_NEWNET},          {LAYER_IPC, CLONE_NEWIPC},   {LAYER_UTS, CLONE_NEWUTS},
	{LAYER_CGROUP_NS, CLONE_NEWCGROUP}, {LAYER_TIME, CLONE_NEWTIME},
};

/* Return: what fn(arg) returns in a child. */
static bool try_in_child(bool (*fn)(const void *arg), const void *arg)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn(arg) ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

static bool try_namespace(const void *arg)
{
	int flag = *(const int *)arg;

	/* A box makes the others inside its own user namespace. */
	return unshare(CLONE_NEWUSER) == 0 && (flag == CLONE_NEWUSER || unshare(flag) == 0);
}

static bool mount_proc(const void *arg attr_unused)
{
	return mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
	             "hidepid=invisible") == 0;
}

static bool try_proc(const void *arg attr_unused)
{
	/* Only the next child is in the new pid namespace. */
	return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) == 0 &&
	       try_in_child(mount_proc, NULL);
}

static bool try_inodes(const void *arg attr_unused)
{
	return mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=65536,nr_inodes=16") ==
	       0;
}

static bool try_mounts(const void *arg attr_unused)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};
	int fd = open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	return fd >= 0 &&
	       mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) == 0 &&
	       move_mount(fd, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

static void try_all(struct trial *trial)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (try_in_child(try_namespace, &kinds[i].flag))
			trial->namespaces |= LAYER_BIT(kinds[i].layer);
	trial->proc = try_in_child(try_proc, NULL);
	trial->inodes = try_in_child(try_inodes, NULL);
	trial->mounts = try_in_child(try_mounts, NULL);
}

/* Starts like the engine; returns in its namespaces, or where they could not be made. */
static void enter_and_try(const struct options *options, struct trial *trial)
{
	struct privilege privilege = {0};
	struct ids ids;
	int link = -1;
	pid_t pid;

	if (privilege_find(options, &privilege, &trial->err) < 0)
		return;
	ids = ids_of_instance(&privilege, 0);
	trial->ids = ids.mode;
	pid = namespaces_enter(&ids, -1, &link, &trial->err);
	if (pid > 0)
		_exit(wait_for_program(pid));
	trial->entered = pid == 0 && !error_is_set(&trial->err);
	if (trial->entered)
		try_all(trial);
}

void trial_run(const struct options *options, struct trial *ret_trial)
{
	int fds[2];
	pid_t pid;

	*ret_trial = (struct trial){0};
	if (fd_pipe(fds, 0) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		struct trial trial;

		memset(&trial, 0, sizeof(trial));
		enter_and_try(options, &trial);
		_exit(fd_write_all(fds[1], &trial, sizeof(trial)) < 0);
	}
	(void)fd_close(fds[1]);
	if (pid < 0 || fd_read_all(fds[0], ret_trial, sizeof(*ret_trial)) != sizeof(*ret_trial))
		*ret_trial = (struct trial){0};
	(void)fd_close(fds[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
}
