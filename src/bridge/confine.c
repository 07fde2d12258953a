/* SPDX-License-Identifier: Apache-2.0 */
#include "confine/confine.h"
#include "bridge/bridge.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * What is left to a program that can change the network of the host: that, through sockets it has
 * open. It makes no socket, opens no file, starts nothing, sends no signal.
 */

#define MEMORY_BYTES (64ULL << 20)

static const int allowed[] = {
	SCMP_SYS(brk),       SCMP_SYS(clock_gettime),  SCMP_SYS(close),
	SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_pwait),    SCMP_SYS(epoll_wait),
	SCMP_SYS(exit),      SCMP_SYS(exit_group),     SCMP_SYS(fcntl),
	SCMP_SYS(fstat),     SCMP_SYS(futex),          SCMP_SYS(getpid),
	SCMP_SYS(getrandom), SCMP_SYS(gettid),         SCMP_SYS(gettimeofday),
	SCMP_SYS(ioctl),     SCMP_SYS(lseek),          SCMP_SYS(madvise),
	SCMP_SYS(mmap),      SCMP_SYS(mprotect),       SCMP_SYS(mremap),
	SCMP_SYS(munmap),    SCMP_SYS(newfstatat),     SCMP_SYS(poll),
	SCMP_SYS(ppoll),     SCMP_SYS(read),           SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),   SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sendmsg),   SCMP_SYS(sendto),         SCMP_SYS(write),
	SCMP_SYS(writev),
};

bool bridge_is_capable(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	return syscall(SYS_capget, &header, data) == 0 && data[0].effective & 1U << CAP_NET_ADMIN;
}

static int drop_capabilities(void)
{
	const uint32_t keep = 1U << CAP_NET_ADMIN;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{.effective = keep, .permitted = keep}};

	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (cap != CAP_NET_ADMIN && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 &&
		    errno != EINVAL)
			return -errno;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int bridge_confine(struct error *err)
{
	static const struct confine_calls calls = {EPERM, allowed, ARRAY_SIZE(allowed), NULL};
	int r = drop_capabilities();

	if (r >= 0)
		r = confine_begin();
	if (r >= 0)
		r = confine_files(1, NULL, 0);
	if (r >= 0)
		r = confine_memory(MEMORY_BYTES);
	if (r >= 0)
		r = confine_calls(&calls);
	if (r == -EOPNOTSUPP)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "the kernel lacks Landlock: use network mode allowlist");
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "confine millibox-bridge") : 0;
}
