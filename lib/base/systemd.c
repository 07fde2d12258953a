/* SPDX-License-Identifier: Apache-2.0 */
#include "base/systemd.h"

#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/alloc.h"

#define GROUPS_DIR "/sys/fs/cgroup"
#define BOOTED_DIR "/run/systemd/system" /* as sd_booted(3) */

static bool is_v2(void)
{
	struct statfs fs;

	return statfs(GROUPS_DIR, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* Its own: after su the variable may be the caller's. */
static bool has_manager(const char *runtime_dir)
{
	cleanup_free char *path = xasprintf("%s/systemd/private", runtime_dir);
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid();
}

/* Without the variable: su -, and clients that start servers in an environment of their own. */
char *systemd_runtime_dir(void)
{
	const char *named = getenv("XDG_RUNTIME_DIR");
	cleanup_free char *dir =
		named && *named ? xstrdup(named) : xasprintf("/run/user/%u", (unsigned)geteuid());

	return has_manager(dir) ? xasprintf("XDG_RUNTIME_DIR=%s", dir) : NULL;
}

enum systemd_delegation systemd_delegation(void)
{
	cleanup_free char *dir = NULL;

	if (access(BOOTED_DIR, F_OK) < 0)
		return SYSTEMD_NONE;
	if (!is_v2())
		return SYSTEMD_V1;
	dir = systemd_runtime_dir();
	if (!dir)
		return SYSTEMD_NO_MANAGER;
	return access(SYSTEMD_RUN, X_OK) == 0 ? SYSTEMD_DELEGATES : SYSTEMD_NO_PROGRAM;
}
