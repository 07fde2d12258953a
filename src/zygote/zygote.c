/* SPDX-License-Identifier: Apache-2.0 */
#include "zygote/zygote.h"

#include <Python.h>
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
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
 * Theory of operation. The child of a zygote has to be a child of the box's agent, which waits for
 * it as for any other. The kernel gives orphans to the reaper of their parent's pid namespace; so
 * there is a helper between, which lives for a moment:
 *
 *   zygote   setns(pid of the box)        its children will be in there, itself not
 *   helper   clone3, memory shared, in the box's v2 group; joins the v1 groups; forks; exits
 *   child    is in all of the box's groups from its first instruction, and PID 1's child
 *
 * The helper shares the zygote's memory and stack while the zygote is held up in clone3, as after
 * vfork. Nothing but a call is done on its side of the return: what it would write into this frame
 * the zygote would find there. The child has a copy of everything and may return.
 *
 * The child waits for an order of the agent before it enters the rest (become.c). Until then it is
 * as powerful as the zygote, and does nothing but wait in a system call.
 */

static inline __attribute__((always_inline)) long clone_sharing(const struct clone_args *args)
{
	/* No function around it: its return address would be gone when the second one returns. */
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

/* In the helper; returns only in the child. @ret_pid is in the zygote's memory. */
static __attribute__((noinline)) void help(const struct fill *fill, volatile int *ret_pid)
{
	pid_t pid = 0;
	int r = 0;

	/* "0" is the writer: one thread, one write, no grace period of the kernel. */
	for (size_t i = 0; i < fill->tasks_count && r == 0; i++)
		if (write(fill->tasks[i], "0", 1) != 1)
			r = -errno;
	/* The library's own: what others registered to be done at a fork is done. */
	if (r == 0)
		pid = fork();
	if (r == 0 && pid == 0)
		return;
	*ret_pid = r < 0 ? r : (pid < 0 ? -errno : pid);
	_exit(0);
}

/* Return: in the zygote the child's pid inside the box, or a negative errno; 0 in the child. */
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
		help(fill, &pid);
		return 0;
	}
	if (helper < 0)
		return (int)helper;
	while (waitpid((pid_t)helper, NULL, __WALL) < 0 && errno == EINTR)
		;
	return pid;
}

/* The kernel forgets it where memory is shared, and the child inherited that from the helper. */
static void restore_rseq(void)
{
	if (__rseq_size > 0)
		(void)syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset,
		              sizeof(struct rseq), 0, RSEQ_SIG);
}

static void fill_close(struct fill *fill)
{
	(void)fd_close(fill->pidfd);
	(void)fd_close(fill->agent);
	(void)fd_close(fill->unified);
	for (size_t i = 0; i < fill->tasks_count; i++)
		(void)fd_close(fill->tasks[i]);
}

/* Return: 1, 0 when the engine is gone, or a negative errno. */
static int receive(struct fill *ret_fill)
{
	int fds[FD_PASS_MAX];
	size_t count = 0, at = INJECT_FILL_FDS;
	struct fill fill = {.unified = -1};
	ssize_t n = fd_recv(ZYGOTE_SOCKET_FD, &fill.say, sizeof(fill.say), fds, &count);

	if (n <= 0)
		return (int)n;
	if (n != sizeof(fill.say) || fill.say.magic != INJECT_MAGIC ||
	    count < (fill.say.groups & INJECT_UNIFIED ? at + 1 : at)) {
		while (count > 0)
			(void)fd_close(fds[--count]);
		return -EPROTO;
	}
	fill.pidfd = fds[0];
	fill.agent = fds[1];
	if (fill.say.groups & INJECT_UNIFIED)
		fill.unified = fds[at++];
	while (at < count)
		fill.tasks[fill.tasks_count++] = fds[at++];
	*ret_fill = fill;
	return 1;
}

static void tell(enum inject_word word, int sys)
{
	const struct inject_news news = {.magic = INJECT_MAGIC, .word = word, .sys = sys};

	/* An engine that is gone is seen where it is read from. */
	(void)!fd_send(ZYGOTE_SOCKET_FD, &news, sizeof(news), NULL, 0);
}

/* Return: whether this is the child. */
static bool fill_box(const struct fill *fill, int home)
{
	int r = setns(fill->pidfd, CLONE_NEWPID) < 0 ? -errno : 0;

	if (r >= 0) {
		PyOS_BeforeFork();
		r = fork_into(fill);
		if (r == 0)
			return true;
		PyOS_AfterFork_Parent();
	}
	/*
	 * Not to keep the box's namespace alive. The host's belongs to the host's user namespace:
	 * an ordinary user's zygote cannot go back, and lets go of this one with the next box.
	 */
	if (setns(home, CLONE_NEWPID) < 0 && errno != EPERM)
		_exit(1);
	tell(INJECT_FILLED, r < 0 ? -r : 0);
	return false;
}

int zygote_harden(void)
{
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return filter_install(FILTER_ZYGOTE);
}

/* The engine names one to wake on (pin_to_this_cpu); the child is not to be held to it. */
static void take_back_processors(const cpu_set_t *own)
{
	cpu_set_t any;

	if (sched_setaffinity(0, sizeof(*own), own) == 0)
		return;
	memset(&any, 0xff, sizeof(any)); /* none of its own is left: those that there are */
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
		memset(&own, 0xff, sizeof(own)); /* more than the set has room for */
	/* For people who look at processes; children are called what they are. */
	if (home < 0 || prctl(PR_GET_NAME, name) < 0 || prctl(PR_SET_NAME, "millibox-zygote") < 0)
		_exit(1);
	tell(INJECT_READY, 0);
	for (;;) {
		int r = receive(&fill);

		if (r <= 0)
			_exit(r < 0);
		take_back_processors(&own);
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
	/* Refused everywhere; who hears it is told first. */
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
