/* SPDX-License-Identifier: Apache-2.0 */
#include "confine/confine.h"

#include <errno.h>
#include <linux/landlock.h>
#include <sys/socket.h>

#include "remote/remote.h"

/*
 * Theory of operation. The program parses what a server says. It starts no program, sends no
 * signal, listens nowhere and connects to Unix sockets only. It reads the roots that become images
 * and writes no file. If the kernel lacks Landlock, it does not start.
 */

/* Of a box: the socket to the daemon, the stream, the open call to /wait. */
#define DESCRIPTORS_PER_BOX 3
#define DESCRIPTORS_OWN     256
#define MEMORY_BYTES        (1ULL << 30)

static int allow_sockets(scmp_filter_ctx filter)
{
	int r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
	                         SCMP_A0(SCMP_CMP_EQ, AF_UNIX));

	if (r >= 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1,
		                     SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	return r;
}

static const int allowed[] = {
	SCMP_SYS(brk),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(close),
	SCMP_SYS(connect),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(eventfd2),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(fcntl),
	SCMP_SYS(fstat),
	SCMP_SYS(futex),
	SCMP_SYS(getdents64),
	SCMP_SYS(getpeername),
	SCMP_SYS(getpid),
	SCMP_SYS(getrandom),
	SCMP_SYS(getsockname),
	SCMP_SYS(getsockopt),
	SCMP_SYS(gettid),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(ioctl),
	SCMP_SYS(landlock_create_ruleset), /* to ask for its version */
	SCMP_SYS(lseek),
	SCMP_SYS(madvise),
	SCMP_SYS(mmap),
	SCMP_SYS(mprotect),
	SCMP_SYS(mremap),
	SCMP_SYS(munmap),
	SCMP_SYS(newfstatat),
	SCMP_SYS(openat),
	SCMP_SYS(openat2),
	SCMP_SYS(pipe2),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(read),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(setsockopt),
	SCMP_SYS(shutdown),
	SCMP_SYS(time),
	SCMP_SYS(uname),
	SCMP_SYS(write),
	SCMP_SYS(writev),
};

static int limit_files(const struct remote_options *options, struct error *err)
{
	struct confine_path paths[ENGINE_BASES_MAX + 1] = {
		/* Which groups a process is in. */
		{.path = "/proc", .rights = LANDLOCK_ACCESS_FS_READ_FILE},
	};
	int r;

	for (size_t i = 0; i < options->bases_count; i++)
		paths[i + 1] = (struct confine_path){.path = options->bases[i],
		                                     .rights = LANDLOCK_ACCESS_FS_READ_FILE |
		                                               LANDLOCK_ACCESS_FS_READ_DIR};
	r = confine_files(1, paths, options->bases_count + 1);
	if (r == -EOPNOTSUPP)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "boxes of servers do not work on this host: the kernel lacks "
		                 "Landlock");
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "Landlock rules") : 0;
}

int confine(const struct remote_options *options, struct error *err)
{
	static const struct confine_calls calls = {EPERM, allowed, ARRAY_SIZE(allowed),
	                                           allow_sockets};
	int r = confine_begin();

	if (r >= 0 && limit_files(options, err) < 0)
		return -1;
	if (r >= 0)
		r = confine_descriptors(DESCRIPTORS_OWN + DESCRIPTORS_PER_BOX * REMOTE_BOXES_MAX);
	if (r >= 0)
		r = confine_memory(MEMORY_BYTES);
	if (r >= 0)
		r = confine_calls(&calls);
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "confine the program") : 0;
}
