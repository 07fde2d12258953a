/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/lockdown.h"

#include "base/core_limit.h"
#include "base/error.h"
#include "base/sanitized.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Theory of operation. The daemon parses untrusted input. The filter leaves little to an attacker
 * who takes it over: no program to start, no process or thread to create, no socket to connect, no
 * file to write, no executable memory. Everything the daemon uses was opened before.
 *
 * Calls not in the table fail with ENOSYS: a newer libc falls back, and a healthy daemon never dies
 * of it. The database thread has its own table: it writes to open files and has no socket call.
 * Calls in the second table are used by no library of ours: they kill the daemon, and the engine
 * then ends all boxes.
 *
 * Sanitizers need more: their leak check clones a thread and traces. Such builds are not for
 * production.
 */

/* The argument that decides, under a mask. */
struct arg_rule {
	unsigned index;
	bool used;
	scmp_datum_t mask, value;
};

struct call_rule {
	int number;
	struct arg_rule arg;
};

/* clang-format off */
#define ANY(name)                    {SCMP_SYS(name), {0}}
#define IF(name, index, mask, value) {SCMP_SYS(name), {index, true, mask, value}}
#define INT_MASK                     0xffffffffU

#define EVERY_THREAD \
	/* memory that is never executable */ \
	IF(mmap, 2, PROT_EXEC, 0), IF(mprotect, 2, PROT_EXEC, 0), ANY(munmap), ANY(mremap), \
	ANY(brk), ANY(madvise), \
	/* waiting */ \
	ANY(futex), ANY(restart_syscall), ANY(sched_yield), \
	/* used by libc */ \
	ANY(clock_gettime), ANY(gettimeofday), ANY(getpid), ANY(gettid), ANY(rt_sigprocmask), \
	ANY(rt_sigreturn), ANY(rseq), ANY(set_robust_list), \
	/* the end */ \
	ANY(exit), ANY(exit_group)

static const struct call_rule allowed[] = {
	EVERY_THREAD,
	/* bytes in and out */
	ANY(read), ANY(write), ANY(readv), ANY(writev), ANY(pread64), ANY(lseek), ANY(recvfrom),
	ANY(recvmsg), ANY(sendto), ANY(sendmsg), ANY(sendmmsg), ANY(shutdown), ANY(close),
	ANY(close_range),
	/* accept only. A WebSocket over TLS is one end of a pair */
	IF(socketpair, 0, INT_MASK, AF_UNIX), ANY(accept4), ANY(accept), ANY(getsockname),
	ANY(getpeername), ANY(getsockopt), ANY(setsockopt),
	/* waiting */
	ANY(epoll_wait), ANY(epoll_pwait), ANY(epoll_pwait2), ANY(epoll_ctl), ANY(epoll_create1),
	ANY(eventfd2), ANY(pipe2), ANY(poll), ANY(ppoll), ANY(select), ANY(pselect6),
	ANY(nanosleep), ANY(clock_nanosleep),
	/* counters of boxes: read-only */
	IF(openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY),
	IF(open, 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY),
	ANY(fstat), ANY(newfstatat), ANY(stat), ANY(lstat), ANY(statx), ANY(readlink),
	ANY(readlinkat), ANY(getdents64), ANY(fcntl),
	IF(ioctl, 1, INT_MASK, FIONBIO), IF(ioctl, 1, INT_MASK, FIONREAD),
	/* the socket's name, at the end */
	ANY(unlink), ANY(unlinkat),
	ANY(membarrier),
	/* wait for engine and boxes */
	ANY(wait4), ANY(waitid), ANY(pidfd_open), ANY(pidfd_send_signal), ANY(kill), ANY(tgkill),
	ANY(getppid),
	/* signals to ourselves */
	ANY(rt_sigaction), ANY(sigaltstack), ANY(signalfd4),
	/* libc queries */
	ANY(clock_getres), ANY(time), ANY(getrandom), ANY(getrusage), ANY(sysinfo), ANY(uname),
	ANY(getuid), ANY(geteuid), ANY(getgid), ANY(getegid), ANY(sched_getaffinity),
	ANY(sched_getparam), ANY(sched_getscheduler), ANY(prlimit64), ANY(getrlimit),
};

/* The audit log's thread: append durably, rename a full file, delete the oldest. */
static const struct call_rule allowed_audit[] = {
	EVERY_THREAD,
	ANY(write), ANY(pwrite64), ANY(fsync), ANY(fdatasync), ANY(ftruncate), ANY(openat),
	ANY(close), ANY(renameat), ANY(renameat2), ANY(unlinkat), ANY(getdents64), ANY(fcntl),
	ANY(fstat), ANY(newfstatat), ANY(lseek),
};

/* The database thread: open files, and removing the journal at the end. */
static const struct call_rule allowed_store[] = {
	EVERY_THREAD,
	/* pages, durably; write also wakes the loop and logs */
	ANY(read), ANY(write), ANY(pread64), ANY(pwrite64), ANY(lseek), ANY(fsync),
	ANY(fdatasync), ANY(ftruncate), ANY(close), ANY(fstat), ANY(newfstatat), ANY(stat),
	ANY(lstat), ANY(access), ANY(faccessat2),
	ANY(fcntl), /* locks against other readers */
	/* the directory, to make the journal's name durable; creates nothing */
	IF(openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY), ANY(unlink),
	ANY(nanosleep), ANY(clock_nanosleep),
	/* libc queries */
	ANY(time), ANY(getrandom), ANY(geteuid), ANY(sched_getaffinity),
	ANY(tgkill), /* abort */
};

/* For sanitizers: end of a thread, report and exit. */
static const struct call_rule allowed_sanitized[] = {
	ANY(clone), ANY(ptrace), ANY(prctl), ANY(mmap), ANY(mprotect), ANY(openat), ANY(ioctl),
	ANY(sched_setaffinity), ANY(getdents), ANY(munmap), ANY(write), ANY(close),
	ANY(sigaltstack), ANY(readlink), ANY(getpid), ANY(rt_sigaction), ANY(madvise), ANY(read),
	ANY(gettid), ANY(sched_yield),
};

static const int fatal[] = {
	SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(ptrace), SCMP_SYS(mount),
	SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(setns),
	SCMP_SYS(unshare), SCMP_SYS(bpf), SCMP_SYS(init_module), SCMP_SYS(finit_module),
	SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(process_vm_readv),
	SCMP_SYS(pidfd_getfd), SCMP_SYS(process_vm_writev), SCMP_SYS(userfaultfd),
	SCMP_SYS(perf_event_open), SCMP_SYS(io_uring_setup), SCMP_SYS(keyctl),
	SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(open_by_handle_at),
};
/* clang-format on */

int lockdown_drop_ids(uid_t uid, gid_t gid, struct error *err)
{
	uid_t real, effective, saved;

	/* No executed program regains capabilities; no_new_privs ensures the same. */
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return error_set(err, ERR_SYSTEM, errno,
			                 "drop capability %d from the bounding set", cap);
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return error_set(err, ERR_SYSTEM, errno, "become user %u", (unsigned)uid);
	if (getresuid(&real, &effective, &saved) < 0 || real != uid || effective != uid ||
	    saved != uid)
		return error_set(err, ERR_SYSTEM, 0, "become user %u: the kernel reports other ids",
		                 (unsigned)uid);
	if (setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0)
		return error_set(err, ERR_SYSTEM, 0, "user %u can become root again",
		                 (unsigned)uid);
	return 0;
}

/* Return: 0 or a negative errno, as from libseccomp. */
static int add_rules(scmp_filter_ctx filter, const struct call_rule *rules, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		const struct arg_rule *a = &rules[i].arg;
		struct scmp_arg_cmp cmp = {a->index, SCMP_CMP_MASKED_EQ, a->mask, a->value};

		r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].number, a->used, &cmp);
	}
	return r;
}

static bool is_for_sanitizers(int number)
{
	for (size_t i = 0; SANITIZED && i < ARRAY_SIZE(allowed_sanitized); i++)
		if (allowed_sanitized[i].number == number)
			return true;
	return false;
}

static int build_filter(scmp_filter_ctx filter, const struct call_rule *rules, size_t count)
{
	int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	/* A tree, not a list: the daemon makes many calls. */
	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0 && SANITIZED)
		r = add_rules(filter, allowed_sanitized, ARRAY_SIZE(allowed_sanitized));
	if (r == 0)
		r = add_rules(filter, rules, count);
	for (size_t i = 0; i < ARRAY_SIZE(fatal) && r == 0; i++)
		if (!is_for_sanitizers(fatal[i]))
			r = seccomp_rule_add_array(filter, SCMP_ACT_KILL_PROCESS, fatal[i], 0,
			                           NULL);
	return r;
}

int lockdown_core_limit(struct error *err)
{
	const struct rlimit core = {CORE_LIMIT, CORE_LIMIT};

	if (setrlimit(RLIMIT_CORE, &core) == 0)
		return 0;
	return error_set(err, ERR_SYSTEM, errno,
	                 "core files: the hard limit is 0, with which a core_pattern program still "
	                 "gets the memory of a crashed box. Start with a limit of at least 1 "
	                 "(ulimit -H -c; LimitCORE=1 in a unit)");
}

/* For the calling thread; process-wide where they do not differ. */
static int seal_process(const struct call_rule *rules, size_t count, struct error *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};
	const struct rlimit core = {CORE_LIMIT, CORE_LIMIT};
	scmp_filter_ctx filter;
	int r;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return error_set(err, ERR_SYSTEM, errno, "clear ambient capabilities");
	if (syscall(SYS_capset, &header, none) < 0)
		return error_set(err, ERR_SYSTEM, errno, "drop capabilities");
	/* A dump would contain what callers sent; a debugger would have the sockets. */
	if (setrlimit(RLIMIT_CORE, &core) < 0 || prctl(PR_SET_DUMPABLE, SANITIZED, 0, 0, 0) < 0)
		return error_set(err, ERR_SYSTEM, errno, "forbid core dumps");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set(err, ERR_SYSTEM, errno, "forbid new privileges");
	filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	r = filter ? build_filter(filter, rules, count) : -ENOMEM;
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r < 0 ? error_set(err, ERR_SYSTEM, -r, "install the system call filter") : 0;
}

int lockdown_seal(struct error *err)
{
	return seal_process(allowed, ARRAY_SIZE(allowed), err);
}

int lockdown_seal_audit(struct error *err)
{
	return seal_process(allowed_audit, ARRAY_SIZE(allowed_audit), err);
}

int lockdown_seal_store(struct error *err)
{
	return seal_process(allowed_store, ARRAY_SIZE(allowed_store), err);
}
