/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <errno.h>
#include <linux/landlock.h>
#include <sys/resource.h>

#include "confine/confine.h"

/*
 * Theory of operation. Landlock restricts the child to one directory, without execution. The
 * seccomp filter allows only the calls that this needs: no process, no exec, no socket, no mount.
 * Rlimits bound memory, CPU time and file size.
 */

#define DESCRIPTORS 400 /* tree.c holds a directory open per level */

#define FS_NEEDED                                                                                  \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |                              \
	 LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SYM | CONFINE_REFER |               \
	 CONFINE_TRUNCATE)

/* ABI 1 forbids hard links across directories, which images need. */
#define ABI_NEEDED 2

static const int allowed[] = {
	SCMP_SYS(read),           SCMP_SYS(write),        SCMP_SYS(close),
	SCMP_SYS(lseek),          SCMP_SYS(fstat),        SCMP_SYS(newfstatat),
	SCMP_SYS(openat),         SCMP_SYS(openat2),      SCMP_SYS(getdents64),
	SCMP_SYS(mkdirat),        SCMP_SYS(unlinkat),     SCMP_SYS(linkat),
	SCMP_SYS(symlinkat),      SCMP_SYS(readlinkat),   SCMP_SYS(fchmod),
	SCMP_SYS(fcntl),          SCMP_SYS(brk),          SCMP_SYS(mmap),
	SCMP_SYS(munmap),         SCMP_SYS(mremap),       SCMP_SYS(madvise),
	SCMP_SYS(mprotect),       SCMP_SYS(futex),        SCMP_SYS(getrandom),
	SCMP_SYS(exit),           SCMP_SYS(exit_group),   SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigprocmask), SCMP_SYS(getpid),       SCMP_SYS(gettid),
	SCMP_SYS(clock_gettime),  SCMP_SYS(gettimeofday), SCMP_SYS(time),
	SCMP_SYS(umask),          SCMP_SYS(sched_yield),
};

static int limit_files(int dir, struct error *err)
{
	const struct confine_path path = {.fd = dir, .rights = FS_NEEDED};
	int r = confine_files(ABI_NEEDED, &path, 1);

	if (r == -EOPNOTSUPP)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "images cannot be imported on this host: the kernel lacks "
		                 "Landlock ABI %d (Linux 5.19 with landlock in lsm=)",
		                 ABI_NEEDED);
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "Landlock rules of the importer") : 0;
}

static int limit_resources(const struct import_limits *limits)
{
	/* Second line of defence: sizes are checked before writing. */
	rlim_t most = limits->file_bytes > limits->archive_bytes ? limits->file_bytes
	                                                         : limits->archive_bytes;
	const struct rlimit cpu = {limits->cpu_seconds, limits->cpu_seconds}, file = {most, most};
	const struct rlimit descriptors = {DESCRIPTORS, DESCRIPTORS};

	if (setrlimit(RLIMIT_CPU, &cpu) < 0 || setrlimit(RLIMIT_FSIZE, &file) < 0 ||
	    setrlimit(RLIMIT_NOFILE, &descriptors) < 0)
		return -errno;
	return confine_memory(limits->memory_bytes);
}

int confine(int dir, const struct import_limits *limits, struct error *err)
{
	static const struct confine_calls calls = {ENOSYS, allowed, ARRAY_SIZE(allowed), NULL};
	int r = confine_begin();

	if (r >= 0 && limit_files(dir, err) < 0)
		return -1;
	if (r >= 0)
		r = limit_resources(limits);
	if (r >= 0)
		r = confine_calls(&calls);
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "confine the importer") : 0;
}
