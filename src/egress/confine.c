/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/landlock.h>
#include <sys/socket.h>

#include "confine/confine.h"
#include "egress/egress.h"

/*
 * Theory of operation. The proxy parses what hostile code writes and is the only program with
 * outgoing sockets, so it has little else: it reads the files of name resolution, starts no
 * program, and sends no signal. If the kernel lacks Landlock, it does not start.
 */

#define DESCRIPTORS 65536

/* c-ares reads them again for each name. */
#define READABLE(name)                                                                             \
	{                                                                                          \
		.path = (name), .rights = LANDLOCK_ACCESS_FS_READ_FILE                             \
	}

/* TCP and UDP over IPv4 and IPv6. */
static int allow_sockets(scmp_filter_ctx filter)
{
	static const uint64_t families[] = {AF_INET, AF_INET6};
	static const uint64_t types[] = {SOCK_STREAM, SOCK_DGRAM};
	const uint64_t type_mask = ~(uint64_t)(SOCK_CLOEXEC | SOCK_NONBLOCK);
	int r = 0;

	for (size_t i = 0; i < 4 && r >= 0; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
		                     SCMP_A0(SCMP_CMP_EQ, families[i / 2]),
		                     SCMP_A1(SCMP_CMP_MASKED_EQ, type_mask, types[i % 2]));
	return r;
}

static const int allowed[] = {
	SCMP_SYS(accept4),        SCMP_SYS(brk),          SCMP_SYS(clock_gettime),
	SCMP_SYS(close),          SCMP_SYS(connect),      SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_pwait),    SCMP_SYS(epoll_wait),   SCMP_SYS(exit),
	SCMP_SYS(exit_group),     SCMP_SYS(fcntl),        SCMP_SYS(fstat),
	SCMP_SYS(futex),          SCMP_SYS(getpeername),  SCMP_SYS(getpid),
	SCMP_SYS(getrandom),      SCMP_SYS(getsockname),  SCMP_SYS(getsockopt),
	SCMP_SYS(gettid),         SCMP_SYS(gettimeofday), SCMP_SYS(ioctl),
	SCMP_SYS(lseek),          SCMP_SYS(madvise),      SCMP_SYS(mmap),
	SCMP_SYS(mprotect),       SCMP_SYS(mremap),       SCMP_SYS(munmap),
	SCMP_SYS(newfstatat),     SCMP_SYS(open),         SCMP_SYS(openat),
	SCMP_SYS(poll),           SCMP_SYS(read),         SCMP_SYS(readv),
	SCMP_SYS(recvfrom),       SCMP_SYS(recvmsg),      SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sched_yield),
	SCMP_SYS(sendmsg),        SCMP_SYS(sendmmsg),     SCMP_SYS(sendto),
	SCMP_SYS(setsockopt),     SCMP_SYS(shutdown),     SCMP_SYS(time),
	SCMP_SYS(write),          SCMP_SYS(writev),       SCMP_SYS(bind),
	SCMP_SYS(uname),          SCMP_SYS(getuid),       SCMP_SYS(geteuid),
	SCMP_SYS(getgid),         SCMP_SYS(getegid),      SCMP_SYS(pipe2),
	SCMP_SYS(splice),
};

static int limit_files(const char *ca_file, struct error *err)
{
	const struct confine_path paths[] = {
		READABLE("/etc/hosts"),
		READABLE("/etc/resolv.conf"),
		READABLE("/etc/nsswitch.conf"),
		READABLE("/etc/host.conf"),
		READABLE(ca_file),
	};
	int r = confine_files(1, paths, ARRAY_SIZE(paths) - (ca_file ? 0 : 1));

	if (r == -EOPNOTSUPP)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "boxes have no network on this host: the kernel lacks Landlock");
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "Landlock rules of the proxy") : 0;
}

int confine(const char *ca_file, uint64_t memory_bytes, uint32_t *ret_files, struct error *err)
{
	static const struct confine_calls calls = {EPERM, allowed, ARRAY_SIZE(allowed),
	                                           allow_sockets};
	int r = confine_begin();

	if (r >= 0 && limit_files(ca_file, err) < 0)
		return -1;
	if (r >= 0)
		r = confine_descriptors(DESCRIPTORS);
	*ret_files = r < 0 ? 0 : (uint32_t)r;
	if (r >= 0)
		r = confine_memory(memory_bytes);
	if (r >= 0)
		r = confine_calls(&calls);
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "confine the proxy") : 0;
}
