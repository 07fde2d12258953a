/* SPDX-License-Identifier: Apache-2.0 */
#include "confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core_limit.h"
#include "base/fd.h"
#include "base/sanitized.h"

#define FS_ABI1 ((1ULL << 13) - 1)
#define FS_ABI5 ((1ULL << 16) - 1)

int confine_begin(void)
{
	const struct rlimit core = {CORE_LIMIT, CORE_LIMIT};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &core) < 0)
		return -errno;
	return 0;
}

static uint64_t known_rights(long abi)
{
	if (abi >= 5)
		return FS_ABI5;
	return FS_ABI1 | (abi >= 2 ? CONFINE_REFER : 0) | (abi >= 3 ? CONFINE_TRUNCATE : 0);
}

static int add_path(int ruleset, const struct confine_path *path, uint64_t handled)
{
	cleanup_close int opened = path->path ? fd_open(path->path, O_PATH, 0) : -1;
	const struct landlock_path_beneath_attr rule = {
		.allowed_access = path->rights & handled,
		.parent_fd = path->path ? opened : path->fd,
	};

	if (path->path && opened < 0)
		return opened == -ENOENT ? 0 : opened;
	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
	               ? -errno
	               : 0;
}

static long landlock_abi(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

uint32_t confine_landlock_abi(void)
{
	long abi = landlock_abi();

	return abi > 0 ? (uint32_t)abi : 0;
}

int confine_files(long abi_min, const struct confine_path *paths, size_t count)
{
	long abi = landlock_abi();
	uint64_t handled = known_rights(abi);
	cleanup_close int ruleset = -1;
	int r;

	if (abi < abi_min)
		return -EOPNOTSUPP;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
	r = ruleset < 0 ? -errno : 0;
	for (size_t i = 0; i < count && r >= 0; i++)
		r = add_path(ruleset, &paths[i], handled);
	if (r >= 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		r = -errno;
	return r;
}

int confine_memory(uint64_t bytes)
{
	const struct rlimit memory = {bytes, bytes};

	return !SANITIZED && setrlimit(RLIMIT_DATA, &memory) < 0 ? -errno : 0;
}

int confine_descriptors(uint32_t most)
{
	struct rlimit files = {.rlim_cur = 0};

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max < most ? files.rlim_max : most;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? -errno : (int)files.rlim_cur;
}

static int allow(scmp_filter_ctx filter, const int *calls, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r >= 0; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	return r;
}

int confine_calls(const struct confine_calls *calls)
{
	static const int sanitizers[] = {SCMP_SYS(readlink), SCMP_SYS(sigaltstack),
	                                 SCMP_SYS(rt_sigaction)};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO((uint32_t)calls->refusal));
	int r = filter ? allow(filter, calls->allowed, calls->count) : -ENOMEM;

	if (r >= 0 && calls->add)
		r = calls->add(filter);
	/* For abort(). */
	if (r >= 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
		                     SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	if (r >= 0 && SANITIZED)
		r = allow(filter, sanitizers, ARRAY_SIZE(sanitizers));
	if (r >= 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}
