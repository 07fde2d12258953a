/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <errno.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core_limit.h"
#include "base/fd.h"
#include "base/sanitized.h"

/*
 * Theory of operation. Landlock restricts the child to one directory, without execution. The
 * seccomp filter allows only the calls that this needs: no process, no exec, no socket, no mount.
 * Rlimits bound memory, CPU time and file size.
 */

#define FILES_OPEN 400 /* tree.c holds a directory open per level */

#define FS_REFER    (1ULL << 13)
#define FS_TRUNCATE (1ULL << 14)
#define FS_ALL      ((1ULL << 16) - 1)
#define FS_ABI1     ((1ULL << 13) - 1)

#define FS_NEEDED                                                                                  \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |                              \
	 LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SYM | FS_REFER | FS_TRUNCATE)

/* ABI 1 forbids hard links across directories, which images need. */
#define ABI_NEEDED 2

static uint64_t known_rights(long abi)
{
	if (abi >= 5)
		return FS_ALL;
	return abi >= 3 ? FS_ABI1 | FS_REFER | FS_TRUNCATE : FS_ABI1 | FS_REFER;
}

static int limit_files(int dir, struct error *err)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	uint64_t handled = known_rights(abi);
	struct landlock_path_beneath_attr rule = {.allowed_access = FS_NEEDED & handled,
	                                          .parent_fd = dir};
	cleanup_close int ruleset = -1;

	if (abi < ABI_NEEDED)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "images cannot be imported on this host: the kernel lacks "
		                 "Landlock ABI %d (Linux 5.19 with landlock in lsm=)",
		                 ABI_NEEDED);
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
	if (ruleset < 0 ||
	    syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "Landlock rules of the importer");
	return 0;
}

static int limit_resources(const struct import_limits *limits)
{
	/* The sanitizer's shadow memory would count. */
	rlim_t memory = SANITIZED ? RLIM_INFINITY : limits->memory_bytes;
	/* Second line of defence: sizes are checked before writing. */
	rlim_t file = limits->file_bytes > limits->archive_bytes ? limits->file_bytes
	                                                         : limits->archive_bytes;
	const struct {
		__rlimit_resource_t what;
		rlim_t most;
	} rows[] = {
		{RLIMIT_CORE, CORE_LIMIT}, {RLIMIT_CPU, limits->cpu_seconds}, {RLIMIT_DATA, memory},
		{RLIMIT_FSIZE, file},      {RLIMIT_NOFILE, FILES_OPEN},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct rlimit limit = {rows[i].most, rows[i].most};

		if (setrlimit(rows[i].what, &limit) < 0)
			return -errno;
	}
	return 0;
}

static int allow_calls(scmp_filter_ctx filter, const int *calls, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r >= 0; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	return r;
}

static int limit_calls(void)
{
	static const int allowed[] = {
		SCMP_SYS(read),           SCMP_SYS(write),         SCMP_SYS(close),
		SCMP_SYS(lseek),          SCMP_SYS(fstat),         SCMP_SYS(newfstatat),
		SCMP_SYS(openat),         SCMP_SYS(openat2),       SCMP_SYS(getdents64),
		SCMP_SYS(mkdirat),        SCMP_SYS(unlinkat),      SCMP_SYS(linkat),
		SCMP_SYS(symlinkat),      SCMP_SYS(readlinkat),    SCMP_SYS(fchmod),
		SCMP_SYS(fcntl),          SCMP_SYS(brk),           SCMP_SYS(mmap),
		SCMP_SYS(munmap),         SCMP_SYS(mremap),        SCMP_SYS(madvise),
		SCMP_SYS(mprotect),       SCMP_SYS(futex),         SCMP_SYS(getrandom),
		SCMP_SYS(exit),           SCMP_SYS(exit_group),    SCMP_SYS(rt_sigreturn),
		SCMP_SYS(rt_sigprocmask), SCMP_SYS(getpid),        SCMP_SYS(gettid),
		SCMP_SYS(tgkill),         SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday),
		SCMP_SYS(time),           SCMP_SYS(umask),         SCMP_SYS(sched_yield),
	};
	/* For a sanitizer's report. */
	static const int sanitizers[] = {SCMP_SYS(readlink), SCMP_SYS(sigaltstack),
	                                 SCMP_SYS(rt_sigaction)};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int r = filter ? 0 : -ENOMEM;

	if (r >= 0)
		r = allow_calls(filter, allowed, ARRAY_SIZE(allowed));
	if (r >= 0 && SANITIZED)
		r = allow_calls(filter, sanitizers, ARRAY_SIZE(sanitizers));
	if (r >= 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}

int confine(int dir, const struct import_limits *limits, struct error *err)
{
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "confine the importer");
	if (limit_files(dir, err) < 0)
		return -1;
	r = limit_resources(limits);
	if (r >= 0)
		r = limit_calls();
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "confine the importer") : 0;
}
