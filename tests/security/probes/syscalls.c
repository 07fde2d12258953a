/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts, one per name given: prints "name ok" or "name ERRNO". Static, so that it runs in any
 * root. Run unconfined (as root in namespaces of its own) the same attempts succeed or fail for
 * another reason: that is the negative control which shows that the probe can work.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define X32_BIT 0x40000000L

static long call(long nr, long a, long b, long c, long d)
{
	return syscall(nr, a, b, c, d, 0L, 0L);
}

static long try_mount(void)
{
	return call(SYS_mount, (long)"none", (long)"/tmp", (long)"tmpfs", 0);
}

static long try_clone(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return pid < 0 ? -1 : 0;
}

static long try_clone_newuser(void)
{
	return try_clone(CLONE_NEWUSER);
}

static long try_clone_plain(void)
{
	return try_clone(0);
}

/* A time slice of 100 ms. Kernels before 6.12 accept and ignore it. */
static long try_sched_slice(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {.size = sizeof(attr), .runtime = 100000000};

	return call(SYS_sched_setattr, 0, (long)&attr, 0, 0);
}

static long try_clone3(void)
{
	uint64_t args[11] = {0};

	args[4] = SIGCHLD;
	long pid = syscall(SYS_clone3, args, sizeof(args));
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return pid < 0 ? -1 : 0;
}

static long family(int domain, int type, int protocol)
{
	/* The kernel looks at 32 bits only: garbage above must not get past a filter. */
	long fd = syscall(SYS_socket, (long)domain | 0x7700000000L, (long)type | 0x100000000L,
	                  protocol);

	if (fd >= 0)
		close((int)fd);
	return fd < 0 ? -1 : 0;
}

#define FAMILY(name, domain, type, protocol)                                                       \
	static long try_##name(void)                                                               \
	{                                                                                          \
		return family(domain, type, protocol);                                             \
	}
FAMILY(af_unix, AF_UNIX, SOCK_STREAM, 0)
FAMILY(af_inet, AF_INET, SOCK_STREAM, 0)
FAMILY(af_inet6_dgram, AF_INET6, SOCK_DGRAM, 0)
FAMILY(af_inet_raw, AF_INET, SOCK_RAW, 1)
FAMILY(af_inet_icmp, AF_INET, SOCK_DGRAM, 1)
FAMILY(af_packet, 17, SOCK_RAW, 0)
FAMILY(af_alg, 38, SOCK_SEQPACKET, 0)
FAMILY(af_vsock, 40, SOCK_STREAM, 0)
FAMILY(af_key, 15, SOCK_RAW, 2)
FAMILY(af_rxrpc, 33, SOCK_DGRAM, 0)
FAMILY(af_tipc, 30, SOCK_SEQPACKET, 0)
FAMILY(af_can, 29, SOCK_RAW, 1)
FAMILY(af_bluetooth, 31, SOCK_RAW, 0)
FAMILY(af_smc, 43, SOCK_STREAM, 0)
FAMILY(af_xdp, 44, SOCK_RAW, 0)
FAMILY(netlink_route, 16, SOCK_RAW, 0)
FAMILY(netlink_audit, 16, SOCK_RAW, 9)
FAMILY(netlink_netfilter, 16, SOCK_RAW, 12)
FAMILY(netlink_generic, 16, SOCK_RAW, 16)

static long try_tiocsti(void)
{
	char c = 'x';
	/* Upper bits set: CVE-2019-10063. A pipe is no terminal: ENOTTY when the call gets through.
	 */
	int fds[2];

	if (pipe(fds) < 0)
		return -1;
	long r = syscall(SYS_ioctl, fds[0], 0x5412L | 0xdead00000000L, &c);
	int saved = errno;
	close(fds[0]);
	close(fds[1]);
	errno = saved;
	return r;
}

static long try_tioclinux(void)
{
	char c = 2;

	return syscall(SYS_ioctl, 0, 0x541cL, &c);
}

static long try_prlimit_other(void)
{
	struct rlimit old;

	return syscall(SYS_prlimit64, (long)getppid(), (long)RLIMIT_NOFILE, NULL, &old);
}

static long try_prlimit_self(void)
{
	struct rlimit old;

	return syscall(SYS_prlimit64, 0L, (long)RLIMIT_NOFILE, NULL, &old);
}

static long with_errno_kept(long r, const char *made)
{
	int saved = errno;

	unlink(made);
	errno = saved;
	return r;
}

static long try_mknod_device(void)
{
	long r = syscall(SYS_mknodat, AT_FDCWD, (long)"probe-device", S_IFCHR | 0666, 0x0103L);

	return with_errno_kept(r, "probe-device");
}

static long try_mknod_fifo(void)
{
	long r = syscall(SYS_mknodat, AT_FDCWD, (long)"probe-fifo", S_IFIFO | 0666, 0L);

	return with_errno_kept(r, "probe-fifo");
}

static long try_setuid_bit(void)
{
	/* Making the file is allowed; that it has no effect is shown elsewhere. */
	return setuid(0);
}

static long try_personality(void)
{
	return syscall(SYS_personality, 0x0040000L);
}

static long try_ptrace(void)
{
	return syscall(SYS_ptrace, 16L /* ATTACH */, (long)getppid(), 0L, 0L);
}

static long try_int80(void)
{
	/* getpid by the 32-bit entry; must kill the process: run in a child. */
	pid_t pid = fork();

	if (pid == 0) {
		long r = 20;
		__asm__ volatile("int $0x80" : "+a"(r)::"memory", "r8", "r9", "r10", "r11");
		_exit(r > 0 ? 0 : 1);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status)) {
		errno = EKEYREJECTED; /* stands for "killed" in the output */
		return -1;
	}
	return WEXITSTATUS(status) ? -1 : 0;
}

static long try_x32(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(syscall(39L | X32_BIT) > 0 ? 0 : errno);
	int status = 0;
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status)) {
		errno = EKEYREJECTED;
		return -1;
	}
	errno = WEXITSTATUS(status);
	return errno ? -1 : 0;
}

static long try_prctl_dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static long try_prctl_mm(void)
{
	return prctl(35 /* PR_SET_MM */, 14, 0, 0, 0);
}

static long try_memfd(void)
{
	return syscall(SYS_memfd_create, (long)"x", 0L);
}

static long try_unknown(void)
{
	return syscall(1023L);
}

static long try_jit(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
	               -1, 0);

	return p == MAP_FAILED ? -1 : 0;
}

#define RAW(name, nr, a, b, c, d)                                                                  \
	static long try_##name(void)                                                               \
	{                                                                                          \
		return call(nr, (long)(a), (long)(b), (long)(c), (long)(d));                       \
	}
RAW(umount, SYS_umount2, "/tmp", 0, 0, 0)
RAW(pivot_root, SYS_pivot_root, "/", "/", 0, 0)
RAW(chroot, SYS_chroot, "/", 0, 0, 0)
RAW(unshare_user, SYS_unshare, CLONE_NEWUSER, 0, 0, 0)
RAW(unshare_net, SYS_unshare, CLONE_NEWNET, 0, 0, 0)
RAW(setns, SYS_setns, 0, 0, 0, 0)
RAW(process_vm_readv, SYS_process_vm_readv, 1, 0, 0, 0)
RAW(process_vm_writev, SYS_process_vm_writev, 1, 0, 0, 0)
RAW(kcmp, SYS_kcmp, getpid(), getpid(), 0, 0)
RAW(pidfd_getfd, 438, -1, 0, 0, 0)
RAW(perf_event_open, SYS_perf_event_open, 0, 0, -1, -1)
RAW(bpf, SYS_bpf, 0, 0, 0, 0)
RAW(userfaultfd, SYS_userfaultfd, 0, 0, 0, 0)
RAW(io_uring_setup, 425, 0, 0, 0, 0)
RAW(keyctl, SYS_keyctl, 0, -3, 0, 0)
RAW(add_key, SYS_add_key, "user", "k", "v", 1)
RAW(request_key, SYS_request_key, "user", "k", 0, 0)
RAW(fsopen, 430, "tmpfs", 0, 0, 0)
RAW(open_tree, 428, -100, "/", 1, 0)
RAW(move_mount, 429, -1, "", -1, "")
RAW(mount_setattr, 442, -1, "", 0, 0)
RAW(open_by_handle_at, SYS_open_by_handle_at, -100, 0, 0, 0)
RAW(name_to_handle_at, SYS_name_to_handle_at, -100, "/", 0, 0)
RAW(init_module, SYS_init_module, 0, 0, "", 0)
RAW(finit_module, SYS_finit_module, -1, "", 0, 0)
RAW(delete_module, SYS_delete_module, "x", 0, 0, 0)
RAW(kexec_load, SYS_kexec_load, 0, 0, 0, 0xffff)
RAW(acct, SYS_acct, "/nonexistent", 0, 0, 0)
RAW(swapon, SYS_swapon, "/nonexistent", 0, 0, 0)
RAW(reboot, SYS_reboot, 0, 0, 0, 0)
RAW(syslog, SYS_syslog, 10, 0, 0, 0)
RAW(settimeofday, SYS_settimeofday, 0, 0, 0, 0)
RAW(sethostname, SYS_sethostname, "x", 1, 0, 0)
RAW(iopl, SYS_iopl, 3, 0, 0, 0)
RAW(modify_ldt, SYS_modify_ldt, 0, 0, 0, 0)
RAW(quotactl, SYS_quotactl, -1, 0, 0, 0)
RAW(fanotify_init, SYS_fanotify_init, 0, 0, 0, 0)
RAW(move_pages, SYS_move_pages, 0, 0, 0, 0)
RAW(ioprio_set, SYS_ioprio_set, 1, 0, 0, 0)
RAW(vhangup, SYS_vhangup, 0, 0, 0, 0)
RAW(seccomp, SYS_seccomp, 0, 1, 0, 0)

struct probe {
	const char *name;
	long (*run)(void);
};

#define PROBE(n)                                                                                   \
	{                                                                                          \
#n, try_##n                                                                        \
	}
static const struct probe probes[] = {
	PROBE(mount),
	PROBE(umount),
	PROBE(pivot_root),
	PROBE(chroot),
	PROBE(unshare_user),
	PROBE(unshare_net),
	PROBE(setns),
	PROBE(clone_newuser),
	PROBE(clone_plain),
	PROBE(clone3),
	PROBE(sched_slice),
	PROBE(process_vm_readv),
	PROBE(process_vm_writev),
	PROBE(kcmp),
	PROBE(pidfd_getfd),
	PROBE(perf_event_open),
	PROBE(bpf),
	PROBE(userfaultfd),
	PROBE(io_uring_setup),
	PROBE(keyctl),
	PROBE(add_key),
	PROBE(request_key),
	PROBE(fsopen),
	PROBE(open_tree),
	PROBE(move_mount),
	PROBE(mount_setattr),
	PROBE(open_by_handle_at),
	PROBE(name_to_handle_at),
	PROBE(init_module),
	PROBE(finit_module),
	PROBE(delete_module),
	PROBE(kexec_load),
	PROBE(acct),
	PROBE(swapon),
	PROBE(reboot),
	PROBE(syslog),
	PROBE(settimeofday),
	PROBE(sethostname),
	PROBE(iopl),
	PROBE(modify_ldt),
	PROBE(quotactl),
	PROBE(fanotify_init),
	PROBE(move_pages),
	PROBE(ioprio_set),
	PROBE(vhangup),
	PROBE(seccomp),
	PROBE(ptrace),
	PROBE(personality),
	PROBE(prlimit_other),
	PROBE(prlimit_self),
	PROBE(mknod_device),
	PROBE(mknod_fifo),
	PROBE(setuid_bit),
	PROBE(int80),
	PROBE(x32),
	PROBE(tiocsti),
	PROBE(tioclinux),
	PROBE(prctl_mm),
	PROBE(prctl_dumpable),
	PROBE(memfd),
	PROBE(unknown),
	PROBE(jit),
	PROBE(af_unix),
	PROBE(af_inet),
	PROBE(af_inet6_dgram),
	PROBE(af_inet_raw),
	PROBE(af_inet_icmp),
	PROBE(af_packet),
	PROBE(af_alg),
	PROBE(af_vsock),
	PROBE(af_key),
	PROBE(af_rxrpc),
	PROBE(af_tipc),
	PROBE(af_can),
	PROBE(af_bluetooth),
	PROBE(af_smc),
	PROBE(af_xdp),
	PROBE(netlink_route),
	PROBE(netlink_audit),
	PROBE(netlink_netfilter),
	PROBE(netlink_generic),
};

static const char *errno_name(int e)
{
	static const struct {
		int value;
		const char *name;
	} names[] = {
		{EPERM, "EPERM"},
		{ENOSYS, "ENOSYS"},
		{EINVAL, "EINVAL"},
		{EFAULT, "EFAULT"},
		{EACCES, "EACCES"},
		{EBADF, "EBADF"},
		{ENOENT, "ENOENT"},
		{ENOTTY, "ENOTTY"},
		{EAFNOSUPPORT, "EAFNOSUPPORT"},
		{EPROTONOSUPPORT, "EPROTONOSUPPORT"},
		{ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"},
		{ESRCH, "ESRCH"},
		{EKEYREJECTED, "KILLED"},
		{EBUSY, "EBUSY"},
		{E2BIG, "E2BIG"},
		{ENODEV, "ENODEV"},
		{ENOKEY, "ENOKEY"},
	};
	static char number[16];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].value == e)
			return names[i].name;
	snprintf(number, sizeof(number), "E%d", e);
	return number;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const struct probe *probe = NULL;

		for (size_t k = 0; k < sizeof(probes) / sizeof(probes[0]); k++)
			if (strcmp(probes[k].name, argv[i]) == 0)
				probe = &probes[k];
		if (!probe) {
			fprintf(stderr, "no probe '%s'\n", argv[i]);
			return 2;
		}
		errno = 0;
		long r = probe->run();
		printf("%s %s\n", argv[i], r < 0 ? errno_name(errno) : "ok");
		fflush(stdout);
	}
	return 0;
}
