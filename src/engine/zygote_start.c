/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core_limit.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/cgroup_pool.h"
#include "engine/request.h"
#include "wire/inject.h"

/*
 * Theory of operation. A zygote sees what a box on the host's root sees: a clone of the template,
 * read-only, no network. It has the privileges over the namespaces of boxes that its children need
 * to enter a box, and which they drop there. It shares the engine's user and pid namespaces: only
 * from there, above those of boxes, can a process enter the pid namespace of a box.
 */

#define RUNNERS ROOT_TEMPLATE "/opt/millibox/runners/"
#define MIB     (1024ULL * 1024)
/* Bounds a runaway import; slow growth is noticed earlier (needs_replacement). */
#define MEMORY_MAX (2048 * MIB)
#define PIDS_MAX   64
/* As for boxes: children inherit it. */
#define OOM_SCORE "500"

static const int kept_caps[] = {
	CAP_SYS_ADMIN,  /* setns */
	CAP_SYS_CHROOT, /* setns of a mount namespace */
	CAP_SETUID,     /* the kernel requires these three while entering a box */
	CAP_SETGID,     CAP_SETPCAP,
};

static bool is_variable(const char *line)
{
	size_t len = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

	return len > 0 && line[len] == '=';
}

/* One word per line: variables first, then the command. */
static int split_command(struct zygote *z)
{
	size_t argc = 0, envc = 0;
	char *save = NULL;

	for (char *line = strtok_r(z->text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		bool variable = argc == 0 && is_variable(line);

		if (line[0] == '#')
			continue;
		/* Room for NULL and our own variable. */
		if (argc + 2 > ARRAY_SIZE(z->argv) || envc + 3 > ARRAY_SIZE(z->env))
			return -E2BIG;
		if (variable)
			z->env[envc++] = line;
		else
			z->argv[argc++] = line;
	}
	z->env[envc++] = z->variable;
	return argc > 0 && z->argv[0][0] == '/' ? 0 : -ENOEXEC;
}

int zygote_read_command(struct zygote *z, struct error *err)
{
	char path[sizeof(RUNNERS) + ENGINE_COMMAND_LEN];
	int r = str_format(path, sizeof(path), RUNNERS "%s", z->command);

	memset(z->argv, 0, sizeof(z->argv));
	memset(z->env, 0, sizeof(z->env));
	if (r >= 0)
		r = str_format(z->variable, sizeof(z->variable), "%s=%d %s", ZYGOTE_VARIABLE,
		               ZYGOTE_LIBRARY_FD, z->modules);
	if (r >= 0)
		r = file_read_text_at(AT_FDCWD, path, z->text, sizeof(z->text));
	if (r >= 0)
		r = split_command(z);
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "command of the zygote '%s'",
		                 z->command);
	return 0;
}

static int make_groups(struct zygote *z, struct error *err)
{
	struct build *b = &z->build;
	struct engine_limits limits = request_limits_default();
	int dir;

	limits.memory_bytes = MEMORY_MAX;
	limits.pids = PIDS_MAX;
	limits.cpu_millicores = b->host->maxima.cpu_millicores;
	groups_init(&b->groups);
	if (str_format(b->groups.name, sizeof(b->groups.name), "zygote-%u-%llu", z->number,
	               (unsigned long long)z->starts) < 0)
		return error_set(err, ERR_BOX_FAILED, 0, "name of a group");
	/* It has the CPU share of a tenant of its own, but its children inherit the group that
	 * limits disk I/O on v1. */
	b->groups.outside = true;
	if (tenant_group_get(&b->cgroup_pool->tenants, z->tenant, &b->groups.tenant, err) < 0 ||
	    groups_make(b->host, &b->groups, err) < 0 ||
	    groups_limit(b->host, &b->groups, &limits, err) < 0)
		return -1;
	/* Boxes wait for it: more CPU than theirs. */
	dir = groups_dir(b->host, &b->groups, CGROUP_CPU);
	if (dir >= 0) {
		(void)!file_write_at(dir, "cpu.shares", "1024");
		(void)!file_write_at(dir, "cpu.weight", "100");
	}
	return 0;
}

/* In the child, which logs an error and exits. */

static int child_begin(struct build *b, struct error *err)
{
	/* struct kernel_sigaction: SIG_DFL, no flags, no mask. */
	static const unsigned long standard[4];
	const struct rlimit core = {CORE_LIMIT, CORE_LIMIT};
	sigset_t empty;
	int r;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0 || setsid() < 0 ||
	    setrlimit(RLIMIT_CORE, &core) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "begin");
	(void)setpriority(PRIO_PROCESS, 0, 0); /* the engine's is higher */
	/* The interpreter would leave ignored signals ignored. Raw calls: sigaction() rejects two
	 * signals that libc reserves, and the daemon's parent may have ignored those too. */
	for (int signo = 1; signo < NSIG; signo++)
		(void)syscall(SYS_rt_sigaction, signo, standard, NULL, sizeof(standard[0]));
	(void)sigemptyset(&empty);
	(void)sigprocmask(SIG_SETMASK, &empty, NULL);
	r = file_write_at(AT_FDCWD, "/proc/self/oom_score_adj", OOM_SCORE);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "raise oom_score_adj");
	if (b->host->ids.mode != ENGINE_IDS_SINGLE && setgroups(0, NULL) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "drop supplementary groups");
	return 0;
}

static int child_root(struct build *b, struct error *err)
{
	if (step_root(b, err) < 0)
		return -1;
	if (mount("tmpfs", "tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
	          "size=1m,nr_inodes=64,mode=700") < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "mount /tmp");
	/* The library is loaded through /proc/self/fd. */
	if (mount("/proc", "proc", NULL, MS_BIND | MS_REC, NULL) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "bind /proc");
	return step_pivot(b, err);
}

/* Children leave this namespace. While the engine keeps it, their /proc/PID/exe shows the
 * interpreter's whole path. */
static int child_files(int sock, struct error *err)
{
	const struct inject_news news = {.magic = INJECT_MAGIC, .word = INJECT_FILES};
	cleanup_close int files = fd_open("/proc/self/ns/mnt", O_RDONLY, 0);
	int r = files < 0 ? files : fd_send(sock, &news, sizeof(news), &files, 1);

	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "pass on the mount namespace") : 0;
}

static int child_descriptors(struct build *b, int sock, struct error *err)
{
	int null = fd_open("/dev/null", O_RDWR, 0);
	int high_sock = fcntl(sock, F_DUPFD_CLOEXEC, 16);
	int high_lib = fcntl(b->host->zygote_lib, F_DUPFD_CLOEXEC, 16);

	if (null < 0 || high_sock < 0 || high_lib < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(high_sock, ZYGOTE_SOCKET_FD) < 0 ||
	    dup2(high_lib, ZYGOTE_LIBRARY_FD) < 0 || close_range(ZYGOTE_LIBRARY_FD + 1, ~0U, 0) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "descriptors");
	return 0;
}

static int child_caps(struct error *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	uint32_t keep = 0;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(kept_caps); i++)
		keep |= 1u << kept_caps[i]; /* all are below 32 */
	data[0].permitted = data[0].effective = keep;
	r = caps_drop_bounding(keep);
	if (r >= 0 && syscall(SYS_capset, &header, data) < 0)
		r = -errno;
	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "drop capabilities") : 0;
}

static void run_child(struct zygote *z, int sock) attr_noreturn;
static void run_child(struct zygote *z, int sock)
{
	struct build *b = &z->build;
	struct error err = {0};

	if (child_begin(b, &err) == 0 && step_cgroup_join(b, &err) == 0 &&
	    (b->host->groups.count == 0 || step_cgroup_verify(b, &err) == 0) &&
	    child_root(b, &err) == 0 && child_files(sock, &err) == 0 &&
	    child_descriptors(b, sock, &err) == 0 && child_caps(&err) == 0) {
		(void)execve(z->argv[0], z->argv, z->env);
		(void)error_set(&err, ERR_BOX_FAILED, errno, "execute '%s'", z->argv[0]);
	}
	log_error("zygote", &err);
	_exit(1);
}

static int clone_child(struct zygote *z, int sock, struct error *err)
{
	struct build *b = &z->build;
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD,
		.exit_signal = SIGCHLD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
	};
	int unified = groups_dir(b->host, &b->groups, CGROUP_UNIFIED);
	long pid;

	if (unified >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)unified;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		run_child(z, sock);
	if (pid < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "clone3");
	b->pid = (pid_t)pid;
	b->pidfd = pidfd;
	for (size_t i = 0; i < CGROUP_KIND_COUNT; i++)
		b->groups.tasks[i] = fd_close(b->groups.tasks[i]);
	return 0;
}

int zygote_start(struct zygote *z, struct error *err)
{
	cleanup_close int theirs = -1;
	int pair[2];
	int r;

	z->starts++;
	if (make_groups(z, err) < 0)
		return -1;
	r = fd_socketpair(SOCK_SEQPACKET, pair);
	if (r >= 0) {
		z->sock = pair[0];
		theirs = pair[1];
		/* A zygote that does not read must not block the engine. */
		r = fd_set_nonblock(z->sock, true);
	}
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "socket of the zygote");
	return clone_child(z, theirs, err);
}
