/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/socket.h>

#include "confine/confine.h"
#include "gateway/gateway.h"

/*
 * Theory of operation. The gateway parses what hostile code writes. It starts no program and sends
 * no signal: its starter does that, by number. It reads the files of name resolution and of
 * certificates and writes none. If the kernel lacks Landlock, it does not start.
 */

#define DESCRIPTORS 65536

#define READABLE(name)                                                                             \
	{                                                                                          \
		.path = (name),                                                                    \
		.rights = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR               \
	}

/* TCP and UDP over IPv4 and IPv6, the kernel's routes (getaddrinfo), and pairs (libcurl). */
static int allow_sockets(scmp_filter_ctx filter)
{
	static const uint64_t families[] = {AF_INET, AF_INET6, AF_NETLINK};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(families) && r >= 0; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
		                     SCMP_A0(SCMP_CMP_EQ, families[i]));
	return r;
}

/* Threads, for libcurl's name resolution; no process. */
static int allow_threads(scmp_filter_ctx filter)
{
	const uint64_t thread = CLONE_VM | CLONE_THREAD;
	int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

	if (r >= 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
		                     SCMP_A0(SCMP_CMP_MASKED_EQ, thread, thread));
	return r;
}

static int add_rules(scmp_filter_ctx filter)
{
	int r = allow_sockets(filter);

	return r < 0 ? r : allow_threads(filter);
}

static const int allowed[] = {
	SCMP_SYS(accept4),
	SCMP_SYS(access),
	SCMP_SYS(bind),
	SCMP_SYS(brk),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(close),
	SCMP_SYS(connect),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(fcntl),
	SCMP_SYS(fstat),
	SCMP_SYS(futex),
	SCMP_SYS(getdents64),
	SCMP_SYS(getegid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getpeername),
	SCMP_SYS(getpid),
	SCMP_SYS(getrandom),
	SCMP_SYS(getsockname),
	SCMP_SYS(getsockopt),
	SCMP_SYS(gettid),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(getuid),
	SCMP_SYS(ioctl),
	SCMP_SYS(lseek),
	SCMP_SYS(madvise),
	SCMP_SYS(memfd_create),
	SCMP_SYS(mmap),
	SCMP_SYS(mprotect),
	SCMP_SYS(mremap),
	SCMP_SYS(munmap),
	SCMP_SYS(nanosleep),
	SCMP_SYS(newfstatat),
	SCMP_SYS(open),
	SCMP_SYS(openat),
	SCMP_SYS(pipe2),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(pread64),
	SCMP_SYS(read),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(readv),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(rseq),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(setsockopt),
	SCMP_SYS(shutdown),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(socketpair),
	SCMP_SYS(stat),
	SCMP_SYS(statx),
	SCMP_SYS(time),
	SCMP_SYS(uname),
	SCMP_SYS(write),
	SCMP_SYS(writev),
};

static int limit_files(struct error *err)
{
	static const struct confine_path paths[] = {
		READABLE("/etc"),
		READABLE("/usr/lib"),
		READABLE("/usr/lib64"),
		READABLE("/lib"),
		READABLE("/lib64"),
		READABLE("/usr/share/ca-certificates"),
		READABLE("/usr/local/share/ca-certificates"),
		READABLE("/run/systemd/resolve"),
	};
	int r = confine_files(1, paths, ARRAY_SIZE(paths));

	if (r == -EOPNOTSUPP)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "boxes have no tools on this host: the kernel lacks Landlock");
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "Landlock rules of the gateway") : 0;
}

int confine(uint64_t memory_bytes, uint32_t *ret_files, struct error *err)
{
	static const struct confine_calls calls = {EPERM, allowed, ARRAY_SIZE(allowed), add_rules};
	int r = confine_begin();

	if (r >= 0 && limit_files(err) < 0)
		return -1;
	if (r >= 0)
		r = confine_descriptors(DESCRIPTORS);
	*ret_files = r < 0 ? 0 : (uint32_t)r;
	if (r >= 0)
		r = confine_memory(memory_bytes);
	if (r >= 0)
		r = confine_calls(&calls);
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "confine the gateway") : 0;
}
