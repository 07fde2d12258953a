/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/start.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core_limit.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/filter.h"

/*
 * Theory of operation. The guard is the process that the daemon started; the engine is its child,
 * in namespaces of its own. The engine cannot remove its lock, its socket and its cgroups, because
 * their directories belong to the user who started it. The guard does that after the engine has
 * ended, however it ended, and exits with its status. If the guard dies, the engine
 * ends at once (serve.c).
 *
 * It waits with descriptors of those directories, without a capability, and under Landlock and a
 * filter that allow it to remove names there and nothing else.
 */

#define REMOVE                                                                                     \
	(LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                          \
	 LANDLOCK_ACCESS_FS_READ_DIR)

static int drop_caps(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};
	int r = geteuid() == 0 ? caps_drop_bounding(0) : 0;

	if (r >= 0 && syscall(SYS_capset, &header, none) < 0)
		r = -errno;
	return r;
}

static int allow_removal(int ruleset, int dir)
{
	const struct landlock_path_beneath_attr beneath = {.allowed_access = REMOVE,
	                                                   .parent_fd = dir};

	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) < 0
	               ? -errno
	               : 0;
}

static int confine_paths(const struct host *host)
{
	/* All rights of the first version: files have no use for the later ones without them. */
	const struct landlock_ruleset_attr attr = {.handled_access_fs =
	                                                   (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
	cleanup_close int ruleset = -1;
	int r;

	if (host->landlock_abi == 0)
		return 0;
	r = ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (r < 0)
		return -errno;
	r = allow_removal(ruleset, host->instance.dir);
	for (size_t i = 0; i < host->groups.count && r >= 0; i++)
		r = allow_removal(ruleset, host->groups.trees[i].parent);
	if (r >= 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		r = -errno;
	return r;
}

/* Return: 0 or a negative errno. */
static int confine(const struct host *host)
{
	const struct rlimit core = {CORE_LIMIT, CORE_LIMIT};
	int r;

	(void)prctl(PR_SET_NAME, "millibox-guard");
	if (chdir("/") < 0 || setrlimit(RLIMIT_CORE, &core) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	r = drop_caps();
	if (r >= 0)
		r = confine_paths(host);
	return r < 0 ? r : filter_install_guard();
}

int guard_engine(struct host *host, pid_t engine)
{
	int status = 0;
	int r = confine(host);

	if (r < 0) {
		log_warn("the guard of the engine cannot confine itself (%s)", strerror(-r));
		host->guard = fd_close(host->guard); /* ends the engine (serve.c) */
	}
	while (waitpid(engine, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && r >= 0 ? WEXITSTATUS(status) : 1;
}
