/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "engine/netns_pool.h"
#include "engine/roots.h"

#define BOX_HOSTNAME "millibox"

static int make_reattach(struct build *b, struct error *err)
{
	int pair[2];
	int r = fd_socketpair(SOCK_SEQPACKET, pair);

	if (r >= 0) {
		b->reattach_host = pair[0];
		b->reattach_box = pair[1];
		/* A box that does not read must not block the engine. */
		r = fd_set_nonblock(b->reattach_host, true);
	}
	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "reattach socket") : 0;
}

/* The zygote's child waits here for the agent's order. */
static int make_inject(struct build *b, struct error *err)
{
	int pair[2];
	int r = fd_socketpair(SOCK_SEQPACKET, pair);

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "socket to the zygote's child");
	b->inject_box = pair[0];
	b->inject_child = pair[1];
	return 0;
}

int step_channels(struct build *b, struct error *err)
{
	int agent[2], sync[2];
	int r = fd_socketpair(SOCK_STREAM, agent);

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "socket of the agent");
	b->agent_host = agent[0];
	b->agent_box = agent[1];
	/* Packets: an error report arrives whole or not at all. */
	r = fd_socketpair(SOCK_SEQPACKET, sync);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "status socket");
	b->sync_host = sync[0];
	b->sync_box = sync[1];
	if ((b->plan.flags & ENGINE_FLAG_INJECT) && make_inject(b, err) < 0)
		return -1;
	return b->plan.flags & ENGINE_FLAG_KEEP ? make_reattach(b, err) : 0;
}

/*
 * The kernel counts per-user resources (inotify, pending signals, message queues, locked memory,
 * namespaces) in the box and again in the parent namespace, for the effective user that created the
 * box's namespace. If that were root, one box could use up the share of root and of all other
 * boxes. So the engine clones a box as the box's agent id. The filesystem id stays root: clone3
 * checks whether the v2 group may be joined.
 */
static int act_as(const struct ids *ids, uint32_t id)
{
	if (ids->mode == ENGINE_IDS_SINGLE)
		return 0;
	if (setresgid((gid_t)-1, id, (gid_t)-1) < 0 || setresuid((uid_t)-1, id, (uid_t)-1) < 0)
		return -errno;
	(void)setfsuid(0);
	(void)setfsgid(0);
	return 0;
}

/* The real ids never changed. This also restores the effective capabilities. */
static void act_as_self(const struct ids *ids)
{
	if (ids->mode == ENGINE_IDS_SINGLE)
		return;
	if (setresuid((uid_t)-1, 0, (uid_t)-1) < 0 || setresgid((gid_t)-1, 0, (gid_t)-1) < 0)
		abort();
}

/* Return: pid of the child, or a negative errno. The child does not return. */
static long clone_as_agent(struct build *b, struct clone_args *args)
{
	const struct ids *ids = &b->host->ids;
	int r = act_as(ids, ids_agent(ids, b->slot));
	long pid = r;

	/*
	 * The /proc files of a non-dumpable process belong to the host's root: the engine could not
	 * write the child's maps. Meanwhile only processes of the same user can trace the engine.
	 */
	if (r >= 0 && prctl(PR_SET_DUMPABLE, 1) < 0)
		pid = r = -errno;
	/* Raw call: skips libc's fork handlers. */
	if (r >= 0)
		pid = syscall(SYS_clone3, args, sizeof(*args));
	if (pid == 0)
		apply_child(b);
	if (r >= 0 && pid < 0)
		pid = -errno;
	act_as_self(ids);
	/* The change of ids has reset the death signal. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		abort();
	return pid;
}

static int clone_box(struct build *b, struct error *err)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
	                 CLONE_PIDFD,
		.exit_signal = SIGCHLD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
	};
	int unified = groups_dir(b->host, &b->groups, CGROUP_UNIFIED);
	bool shares_network = b->plan.flags & ENGINE_FLAG_HOST_NETWORK;
	long pid;
	int r;

	if (unified >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)unified;
	}
	r = shares_network ? 0 : netns_pool_visit(b->net);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "enter the network namespace");
	pid = clone_as_agent(b, &args);
	if (!shares_network)
		netns_pool_return(b->nets);
	if (pid < 0)
		return error_set(err, ERR_BOX_FAILED, (int)-pid, "clone3 with new namespaces");
	b->pid = (pid_t)pid;
	b->pidfd = pidfd;
	b->agent_box = fd_close(b->agent_box);
	b->sync_box = fd_close(b->sync_box);
	b->reattach_box = fd_close(b->reattach_box);
	b->inject_box = fd_close(b->inject_box);
	return 0;
}

int step_clone(struct build *b, struct error *err)
{
	int r = clone_box(b, err);

	roots_unmount(b->plan.flags);
	return r;
}

int step_deathsig(struct build *b, struct error *err)
{
	/* Dumpable, or /proc/self would belong to the host's root. Only processes of the same user
	 * can read this copy of the engine's memory. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "set the death signal");
	/* Otherwise the child's copy would keep the socket open after the engine died. */
	b->sync_host = fd_close(b->sync_host);
	return 0;
}

int step_wait(struct build *b, struct error *err)
{
	char byte = 0;
	/* EOF: the engine died, perhaps before the death signal was set. */
	ssize_t n = fd_recv_plain(b->sync_box, &byte, sizeof(byte), 0);

	if (n != sizeof(byte))
		return error_set(err, ERR_BOX_FAILED, n < 0 ? (int)-n : 0, "wait for the engine");
	return 0;
}

int step_release(struct build *b, struct error *err)
{
	const char byte = 0;

	for (size_t i = 0; i < CGROUP_KIND_COUNT; i++)
		b->groups.tasks[i] = fd_close(b->groups.tasks[i]);
	if (send(b->sync_host, &byte, sizeof(byte), MSG_NOSIGNAL) != sizeof(byte))
		return error_set(err, ERR_BOX_FAILED, errno, "release the box");
	return 0;
}

/*
 * Keyrings are inherited across namespaces. A box with its own ids gets its own keyring. With the
 * user's id it keeps the empty one that the engine joined: the kernel counts keyrings per user.
 */
static int leave_keyring(enum engine_ids ids, struct error *err)
{
	if (ids == ENGINE_IDS_SINGLE)
		return 0;
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return error_set(err, ERR_BOX_FAILED, errno, "session keyring");
	return 0;
}

int step_session(struct build *b, struct error *err)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t none;

	if (setsid() < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "setsid");
	(void)sigaction(SIGPIPE, &standard, NULL);
	(void)sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "signal mask");
	(void)umask(022);
	return leave_keyring(b->host->ids.mode, err);
}

int step_cgroup_ns(struct build *b attr_unused, struct error *err)
{
	if (unshare(CLONE_NEWCGROUP) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "cgroup namespace");
	return 0;
}

int step_time_ns(struct build *b attr_unused, struct error *err)
{
	struct timespec mono, boot;
	char text[96];
	int r;

	/*
	 * Programs see clocks that start with the box. This does not hide the host's uptime: the
	 * offsets are readable in timens_offsets.
	 *
	 * unshare instead of clone3: the offsets can be set only while the namespace has no
	 * process. The child enters at exec; on kernels where exec does not enter (6.1), the
	 * agent's children are the first.
	 */
	if (unshare(CLONE_NEWTIME) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "time namespace");
	(void)clock_gettime(CLOCK_MONOTONIC, &mono);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	(void)snprintf(text, sizeof(text), "monotonic -%lld 0\nboottime -%lld 0\n",
	               (long long)mono.tv_sec, (long long)boot.tv_sec);
	r = file_write_at(AT_FDCWD, "/proc/self/timens_offsets", text);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "offsets of the time namespace");
	return 0;
}

/*
 * Boxes and the host share files, and a watch would show what the others do with them. The
 * payload's filter refuses inotify too.
 */
static int forbid_watches(struct error *err)
{
	static const struct {
		const char *file;
		const char *value;
	} limits[] = {
		{"/proc/sys/user/max_inotify_instances", "0"},
		{"/proc/sys/user/max_inotify_watches", "0"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		int r = file_write_at(AT_FDCWD, limits[i].file, limits[i].value);

		/* A kernel without inotify. */
		if (r < 0 && r != -ENOENT)
			return error_set(err, ERR_BOX_FAILED, -r, "write %s", limits[i].file);
	}
	return 0;
}

int step_nesting(struct build *b attr_unused, struct error *err)
{
	/* Applies to the box's user namespace, which opens the file. The other kinds of namespaces
	 * need capabilities that only a new user namespace could give. */
	int r = file_write_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0");

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "forbid nested user namespaces");
	return forbid_watches(err);
}

int step_hostname(struct build *b attr_unused, struct error *err)
{
	if (sethostname(BOX_HOSTNAME, strlen(BOX_HOSTNAME)) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "host name");
	return 0;
}
