/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core_limit.h"
#include "base/fd.h"
#include "base/sanitized.h"
#include "egress/egress.h"

/*
 * Theory of operation. The proxy parses what hostile code writes and is the only program with
 * outgoing sockets, so it has little else: it reads the files of name resolution, starts no
 * program, and sends no signal. If the kernel lacks Landlock, it does not start.
 */

#define FS_ALL  ((1ULL << 16) - 1)
#define FS_ABI1 ((1ULL << 13) - 1)

#define FILES_OPEN   65536
#define MEMORY_BYTES (1ULL << 30)

/* c-ares reads them again for each name. */
static const char *const readable[] = {"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf",
                                       "/etc/host.conf"};

static int allow_file(int ruleset, const char *path)
{
	cleanup_close int fd = fd_open(path, O_PATH, 0);
	const struct landlock_path_beneath_attr rule = {
		.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
		.parent_fd = fd,
	};

	if (fd == -ENOENT)
		return 0;
	return fd < 0 ? fd
	       : syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
	               ? -errno
	               : 0;
}

static int limit_files(struct error *err)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	uint64_t handled = abi >= 5 ? FS_ALL : FS_ABI1;
	cleanup_close int ruleset = -1;
	int r = 0;

	if (abi < 1)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "boxes have no network on this host: the kernel lacks Landlock");
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
	r = ruleset < 0 ? -errno : 0;
	for (size_t i = 0; i < ARRAY_SIZE(readable) && r >= 0; i++)
		r = allow_file(ruleset, readable[i]);
	if (r >= 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		r = -errno;
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "Landlock rules of the proxy") : 0;
}

static int limit_resources(uint32_t *ret_files)
{
	struct rlimit files = {.rlim_cur = 0};
	const struct rlimit core = {CORE_LIMIT, CORE_LIMIT};
	const struct rlimit memory = {MEMORY_BYTES, MEMORY_BYTES};

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max < FILES_OPEN ? files.rlim_max : FILES_OPEN;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &core) < 0)
		return -errno;
	*ret_files = (uint32_t)files.rlim_cur;
	/* The sanitizer's shadow memory would count. */
	if (!SANITIZED && setrlimit(RLIMIT_DATA, &memory) < 0)
		return -errno;
	return 0;
}

static int allow_calls(scmp_filter_ctx filter, const int *calls, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r >= 0; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	return r;
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

static int limit_calls(void)
{
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
		SCMP_SYS(getgid),         SCMP_SYS(getegid),
	};
	/* For a sanitizer's report. */
	static const int sanitizers[] = {SCMP_SYS(readlink), SCMP_SYS(sigaltstack)};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = filter ? 0 : -ENOMEM;

	if (r >= 0)
		r = allow_calls(filter, allowed, ARRAY_SIZE(allowed));
	if (r >= 0)
		r = allow_sockets(filter);
	/* For abort(). */
	if (r >= 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
		                     SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	if (r >= 0 && SANITIZED)
		r = allow_calls(filter, sanitizers, ARRAY_SIZE(sanitizers));
	if (r >= 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}

int confine(uint32_t *ret_files, struct error *err)
{
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "confine the proxy");
	if (limit_files(err) < 0)
		return -1;
	r = limit_resources(ret_files);
	if (r >= 0)
		r = limit_calls();
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "confine the proxy") : 0;
}
