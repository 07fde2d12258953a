/* SPDX-License-Identifier: Apache-2.0 */
#include "zygote/zygote.h"

#include <Python.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/filter.h"
#include "zygote/internal.h"

/*
 * Theory of operation. The box's agent must be the parent of a zygote's child, to reap it. The
 * kernel reparents orphans to the reaper of their parent's pid namespace, hence a short-lived
 * helper:
 *
 *   zygote   setns(pid namespace of the box): its children will be in it, not the zygote
 *   helper   clone3, shared memory, in the box's v2 group; joins the v1 groups but one; forks;
 * exits child    is in these groups from its first instruction, and a child of PID 1; joins the
 * last
 *
 * The last group is the one with the CPU quota: the zygote waits for the helper, so a small quota
 * would slow the programs of others.
 *
 * The helper shares memory and stack with the zygote, which is suspended in clone3 as after vfork.
 * After clone3 it only makes a call: the zygote would see what it wrote into this frame. The child
 * has its own copy and may return.
 *
 * The child enters the other namespaces and drops its privileges as soon as the agent is set up
 * (become.c), and then waits for its order. Before that nothing else runs in the box.
 */

static inline __attribute__((always_inline)) long clone_sharing(const struct clone_args *args)
{
	/* The helper's return would overwrite the return address on the shared stack. */
#if defined(__x86_64__)
	long r;

	__asm__ volatile("syscall"
	                 : "=a"(r)
	                 : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args))
	                 : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long r __asm__("x0") = (long)(uintptr_t)args;
	register long size __asm__("x1") = (long)sizeof(*args);
	register long number __asm__("x8") = (long)SYS_clone3;

	__asm__ volatile("svc 0" : "+r"(r) : "r"(size), "r"(number) : "memory");
	return r;
#else
#error "clone3 for this machine is missing"
#endif
}

static void attr_noreturn refuse_without_cpu(int agent)
{
	struct error err = {0};

	(void)error_set(&err, ERR_BOX_FAILED, errno, "join the box's CPU group");
	become_refuse(agent, &err);
}

/* Returns only in the child. @ret_pid is in the zygote's memory. */
static __attribute__((noinline)) void run_helper(const struct fill *fill, volatile int *ret_pid)
{
	pid_t pid = 0;
	int r = 0;

	/* "0" is the writer: one thread, one write, no RCU grace period. */
	for (size_t i = 0; i < fill->tasks_count && r == 0; i++)
		if (write(fill->tasks[i], "0", 1) != 1)
			r = -errno;
	/* libc's fork(), so that registered fork handlers run. */
	if (r == 0)
		pid = fork();
	if (r == 0 && pid == 0) {
		if (fill->cpu >= 0 && write(fill->cpu, "0", 1) != 1)
			refuse_without_cpu(fill->agent);
		return;
	}
	*ret_pid = r < 0 ? r : (pid < 0 ? -errno : pid);
	_exit(0);
}

/* Return: in the zygote, the child's pid in the box or a negative errno; in the child 0. */
static __attribute__((noinline)) int fork_into(const struct fill *fill)
{
	struct clone_args args = {.flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD};
	volatile int pid = -ECHILD;
	long helper;

	if (fill->unified >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)fill->unified;
	}
	helper = clone_sharing(&args);
	if (helper == 0) {
		run_helper(fill, &pid);
		return 0;
	}
	if (helper < 0)
		return (int)helper;
	while (waitpid((pid_t)helper, NULL, __WALL) < 0 && errno == EINTR)
		;
	return pid;
}

/* The kernel unregisters rseq when memory is shared; the child inherits that. */
static void restore_rseq(void)
{
	if (__rseq_size > 0)
		(void)syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset,
		              sizeof(struct rseq), 0, RSEQ_SIG);
}

static void fill_close(struct fill *fill)
{
	(void)fd_close(fill->pidfd);
	(void)fd_close(fill->pid_ns);
	(void)fd_close(fill->agent);
	(void)fd_close(fill->unified);
	(void)fd_close(fill->cpu);
	for (size_t i = 0; i < fill->tasks_count; i++)
		(void)fd_close(fill->tasks[i]);
}

/* Return: 1; 0 at EOF; or a negative errno. */
static int receive_fill(struct fill *ret_fill)
{
	int fds[FD_PASS_MAX];
	size_t count = 0, at = INJECT_FILL_FDS;
	struct fill fill = {.unified = -1, .cpu = -1};
	ssize_t n = fd_recv(ZYGOTE_SOCKET_FD, &fill.msg, sizeof(fill.msg), fds, &count);

	if (n <= 0)
		return (int)n;
	if (n != sizeof(fill.msg) || fill.msg.magic != INJECT_MAGIC ||
	    count < at + (fill.msg.groups & INJECT_UNIFIED ? 1 : 0) +
	                    (fill.msg.groups & INJECT_CPU ? 1 : 0)) {
		while (count > 0)
			(void)fd_close(fds[--count]);
		return -EPROTO;
	}
	fill.pidfd = fds[0];
	fill.pid_ns = fds[1];
	fill.agent = fds[2];
	if (fill.msg.groups & INJECT_UNIFIED)
		fill.unified = fds[at++];
	if (fill.msg.groups & INJECT_CPU)
		fill.cpu = fds[--count];
	while (at < count)
		fill.tasks[fill.tasks_count++] = fds[at++];
	*ret_fill = fill;
	return 1;
}

static void send_news(enum inject_word word, int sys)
{
	const struct inject_news news = {.magic = INJECT_MAGIC, .word = word, .sys = sys};

	/* If the engine is gone, the next receive_fill() returns 0. */
	(void)!fd_send(ZYGOTE_SOCKET_FD, &news, sizeof(news), NULL, 0);
}

int zygote_act_as(uid_t owner)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (owner == 0)
		return 0;
	if (syscall(SYS_capget, &header, data) < 0 || setresuid((uid_t)-1, owner, (uid_t)-1) < 0)
		return -errno;
	/* The change of uid has cleared the effective set only. */
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int enter_pid_namespace(const struct fill *fill)
{
	int r = zygote_act_as(fill->msg.owner);

	if (r >= 0 && setns(fill->pid_ns, CLONE_NEWPID) < 0)
		r = -errno;
	if (fill->msg.owner && setresuid((uid_t)-1, 0, (uid_t)-1) < 0)
		_exit(1);
	return r;
}

/* Return: whether this is the child. */
static bool fill_box(const struct fill *fill, int home)
{
	int r = enter_pid_namespace(fill);

	if (r >= 0) {
		PyOS_BeforeFork();
		r = fork_into(fill);
		if (r == 0)
			return true;
		PyOS_AfterFork_Parent();
	}
	/* Leave the box's namespace, to not keep it alive. */
	if (setns(home, CLONE_NEWPID) < 0)
		_exit(1);
	send_news(INJECT_FILLED, r < 0 ? -r : 0);
	return false;
}

/* Leaves the mount namespace for one with an empty, read-only root: a zygote opens nothing any
 * more. Landlock is no way to get there: children inherit it and could not open files of their box.
 */
static int leave_files(void)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	/* On /proc, which was needed only to load this library. */
	if (unshare(CLONE_NEWNS) < 0 || umount2("/proc", MNT_DETACH) < 0 ||
	    mount("tmpfs", "/proc", "tmpfs", flags, "size=4k,nr_inodes=1,mode=500") < 0 ||
	    chdir("/proc") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0 ||
	    mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, NULL) < 0)
		return -errno;
	return 0;
}

int zygote_harden(void)
{
	int r;

	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	r = leave_files();
	return r < 0 ? r : filter_install(FILTER_ZYGOTE);
}

/* Undoes the engine's pin_to_this_cpu(): children must not inherit it. */
static void reset_affinity(const cpu_set_t *own)
{
	cpu_set_t any;

	if (sched_setaffinity(0, sizeof(*own), own) == 0)
		return;
	memset(&any, 0xff, sizeof(any)); /* none is online any more: use any CPU */
	if (sched_setaffinity(0, sizeof(any), &any) < 0)
		_exit(1);
}

void zygote_serve(struct fill *ret_box)
{
	int home = fd_pidfd_open(getpid());
	struct fill fill = {0};
	char name[16] = "";
	cpu_set_t own;

	if (sched_getaffinity(0, sizeof(own), &own) < 0)
		memset(&own, 0xff, sizeof(own)); /* more CPUs than the set can hold */
	/* For ps; children get the interpreter's name back. */
	if (home < 0 || prctl(PR_GET_NAME, name) < 0 || prctl(PR_SET_NAME, "millibox-zygote") < 0)
		_exit(1);
	send_news(INJECT_READY, 0);
	for (;;) {
		int r = receive_fill(&fill);

		if (r <= 0)
			_exit(r < 0);
		reset_affinity(&own);
		if (fill_box(&fill, home))
			break;
		fill_close(&fill);
	}
	(void)prctl(PR_SET_NAME, name);
	restore_rseq();
	become_alone(&fill);
	PyOS_AfterFork_Child();
	*ret_box = fill;
}

void zygote_leaving(int code)
{
	/* The filter rejects it; the agent is notified first (wire/inject.h). */
	(void)syscall(SYS_exit_group, code, INJECT_LEAVING);
}

bool zygote_has_usual_streams(void)
{
	struct stat st[3];

	for (int fd = 0; fd < 3; fd++)
		if (fstat(fd, &st[fd]) < 0)
			return false;
	return S_ISCHR(st[0].st_mode) && st[0].st_rdev == makedev(1, 3) &&
	       S_ISFIFO(st[1].st_mode) && S_ISFIFO(st[2].st_mode);
}
