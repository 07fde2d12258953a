/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"
#include "engine/start.h"

static enum probe_state set_value(char *ret_value, size_t size, bool there, const char *text)
{
	(void)snprintf(ret_value, size, "%s", text);
	return there ? PROBE_OK : PROBE_MISSING;
}

static enum probe_state check_kernel(char *ret_value, size_t size)
{
	struct utsname name;

	if (uname(&name) < 0)
		return set_value(ret_value, size, false, "unknown");
	(void)snprintf(ret_value, size, "%s %s %s", name.sysname, name.release, name.machine);
	return PROBE_INFO;
}

static enum probe_state read_setting(const char *path, char *ret_value, size_t size)
{
	if (file_read_text_at(AT_FDCWD, path, ret_value, size) < 0)
		(void)snprintf(ret_value, size, "no such setting");
	for (char *p = ret_value; *p; p++)
		if (*p == '\t' || *p == '\n')
			*p = ' ';
	return PROBE_INFO;
}

static enum probe_state check_max_user(char *ret_value, size_t size)
{
	uint64_t max = 0;
	int r = file_read_u64_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", &max);

	(void)snprintf(ret_value, size, r < 0 ? "unknown" : "%llu", (unsigned long long)max);
	return r >= 0 && max == 0 ? PROBE_MISSING : PROBE_OK;
}

/* Debian's kernels. */
static enum probe_state check_userns_clone(char *ret_value, size_t size)
{
	uint64_t on = 1;
	bool there =
		file_read_u64_at(AT_FDCWD, "/proc/sys/kernel/unprivileged_userns_clone", &on) < 0 ||
		on != 0 || geteuid() == 0;

	return set_value(ret_value, size, there,
	                 there ? "ordinary users may create user namespaces"
	                       : "ordinary users may not create user namespaces");
}

static enum probe_state check_apparmor(char *ret_value, size_t size)
{
	uint64_t on = 0;

	/* Ubuntu: user namespaces need an AppArmor profile. */
	if (file_read_u64_at(AT_FDCWD, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
	                     &on) < 0)
		return set_value(ret_value, size, true, "user namespaces are not restricted");
	if (on == 0 || geteuid() == 0)
		return set_value(ret_value, size, true,
		                 on ? "restricted, but not for root" : "off");
	return set_value(ret_value, size, false,
	                 "user namespaces are restricted for ordinary users");
}

static enum probe_state check_openat2(char *ret_value, size_t size)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
	long fd = syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof(how));

	(void)fd_close((int)fd);
	return set_value(ret_value, size, fd >= 0, fd >= 0 ? "works" : "not in this kernel");
}

static enum probe_state check_pidfd(char *ret_value, size_t size)
{
	cleanup_close int fd = fd_pidfd_open(getpid());

	return set_value(ret_value, size, fd >= 0, fd >= 0 ? "works" : "not in this kernel");
}

static enum probe_state check_clone3(char *ret_value, size_t size)
{
	/* A kernel with this call rejects size 0. */
	bool there = syscall(SYS_clone3, NULL, 0) < 0 && errno != ENOSYS;

	return set_value(ret_value, size, there, there ? "works" : "not in this kernel");
}

static enum probe_state check_notify(char *ret_value, size_t size)
{
	uint32_t action = SECCOMP_RET_USER_NOTIF;
	bool there = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;

	return set_value(ret_value, size, there, there ? "works" : "denials are not counted");
}

/* 32-bit system calls; the setting exists only if they are enabled. */
static enum probe_state check_ia32(char *ret_value, size_t size)
{
	bool there = access("/proc/sys/abi/vsyscall32", F_OK) == 0;

	(void)snprintf(ret_value, size, "%s", there ? "enabled" : "not enabled");
	return PROBE_INFO;
}

static enum probe_state check_x32(char *ret_value, size_t size)
{
	/* getpid with the x32 bit; ENOSYS on a kernel without x32. A filter may kill for it. */
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(syscall(0x40000000L + SYS_getpid) > 0 ? 0 : 1);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	(void)snprintf(ret_value, size, "%s",
	               WIFSIGNALED(status)                             ? "refused by a filter"
	               : WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "enabled"
	                                                               : "not enabled");
	return PROBE_INFO;
}

static enum probe_state check_caps(char *ret_value, size_t size)
{
	static const struct {
		int cap;
		const char *name;
	} caps[] = {
		{CAP_SYS_ADMIN, "SYS_ADMIN"},
		{CAP_SETUID, "SETUID"},
		{CAP_SETGID, "SETGID"},
		{CAP_NET_ADMIN, "NET_ADMIN"},
		{CAP_SYS_RESOURCE, "SYS_RESOURCE"},
		{CAP_SYS_PTRACE, "SYS_PTRACE"},
	};
	size_t len = 0;

	ret_value[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		int n = snprintf(ret_value + len, size - len, "%s%s%s", i ? " " : "",
		                 privilege_has(caps[i].cap) ? "+" : "-", caps[i].name);

		if (n < 0 || (size_t)n >= size - len)
			break;
		len += (size_t)n;
	}
	return PROBE_INFO;
}

static enum probe_state check_swap(char *ret_value, size_t size)
{
	uint64_t kib = 0;
	cleanup_buf struct buf text = BUF_INIT(65536);
	const char *at;
	char number[24];

	if (file_read_at(AT_FDCWD, "/proc/meminfo", &text) < 0 || !text.data)
		return read_setting("/proc/swaps", ret_value, size);
	at = strstr(text.data, "SwapTotal:");
	if (at) {
		at += strlen("SwapTotal:");
		at += strspn(at, " ");
		(void)snprintf(number, sizeof(number), "%.*s", (int)strspn(at, "0123456789"), at);
		if (parse_u64(number, &kib) < 0)
			kib = 0;
	}
	(void)snprintf(ret_value, size, "%llu KiB", (unsigned long long)kib);
	return PROBE_INFO;
}

static enum probe_state check_vsock(char *ret_value, size_t size)
{
	bool there = access("/dev/vsock", F_OK) == 0 || access("/dev/vhost-vsock", F_OK) == 0;

	/* vsock ignores network namespaces; the seccomp filter rejects the address family. */
	(void)snprintf(ret_value, size, "%s", there ? "device present" : "no device");
	return PROBE_INFO;
}

static enum probe_state check_newuidmap(char *ret_value, size_t size)
{
	bool there =
		access("/usr/bin/newuidmap", X_OK) == 0 && access("/usr/bin/newgidmap", X_OK) == 0;

	(void)snprintf(ret_value, size, "%s", there ? "newuidmap and newgidmap" : "not installed");
	return PROBE_INFO;
}

/* Network bridge needs it, and forwarding. */
static enum probe_state check_nft(char *ret_value, size_t size)
{
	bool there = access("/usr/sbin/nft", X_OK) == 0;

	(void)snprintf(ret_value, size, "%s",
	               there ? "installed" : "not installed: network bridge needs it");
	return PROBE_INFO;
}

const struct probe_fact probe_facts[] = {
	{"kernel", check_kernel, NULL},
	{"max_user_namespaces", check_max_user, NULL},
	{"userns_clone", check_userns_clone, NULL},
	{"apparmor_userns", check_apparmor, NULL},
	{"openat2", check_openat2, NULL},
	{"pidfd", check_pidfd, NULL},
	{"clone3", check_clone3, NULL},
	{"seccomp_notify", check_notify, NULL},
	{"newuidmap", check_newuidmap, NULL},
	{"capabilities", check_caps, NULL},
	{"ia32", check_ia32, NULL},
	{"x32", check_x32, NULL},
	{"io_uring_disabled", NULL, "/proc/sys/kernel/io_uring_disabled"},
	{"userfaultfd", NULL, "/proc/sys/vm/unprivileged_userfaultfd"},
	{"bpf_disabled", NULL, "/proc/sys/kernel/unprivileged_bpf_disabled"},
	{"tiocsti", NULL, "/proc/sys/dev/tty/legacy_tiocsti"},
	{"yama", NULL, "/proc/sys/kernel/yama/ptrace_scope"},
	{"protected_symlinks", NULL, "/proc/sys/fs/protected_symlinks"},
	{"protected_hardlinks", NULL, "/proc/sys/fs/protected_hardlinks"},
	{"protected_regular", NULL, "/proc/sys/fs/protected_regular"},
	{"protected_fifos", NULL, "/proc/sys/fs/protected_fifos"},
	{"ip_forward", NULL, "/proc/sys/net/ipv4/ip_forward"},
	{"nft", check_nft, NULL},
	{"swap", check_swap, NULL},
	{"core_pattern", NULL, "/proc/sys/kernel/core_pattern"},
	{"vsock", check_vsock, NULL},
	{NULL, NULL, NULL},
};

enum probe_state probe_fact_read(const struct probe_fact *fact, char *ret_value, size_t size)
{
	return fact->check ? fact->check(ret_value, size)
	                   : read_setting(fact->setting, ret_value, size);
}
