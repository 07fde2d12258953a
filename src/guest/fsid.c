/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/fsid.h"

#include <errno.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

/*
 * gVisor has no such ids: the effective ones own what is made. Signals and tracing go by the real
 * and saved ids too, which stay. Giving them back restores the capabilities.
 */
static int change_effective_ids(uid_t uid, gid_t gid)
{
	if (uid == getuid() && setresuid((uid_t)-1, uid, (uid_t)-1) < 0)
		return -errno;
	if (setresgid((gid_t)-1, gid, (gid_t)-1) < 0 || setresuid((uid_t)-1, uid, (uid_t)-1) < 0)
		return -errno;
	return 0;
}

/* They never fail; an invalid id reads the current one. */
static int change_fsids(uid_t uid, gid_t gid)
{
	errno = 0;
	if (setfsuid((uid_t)-1) == -1 && errno == ENOSYS)
		return change_effective_ids(uid, gid);
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	return setfsgid((gid_t)-1) == (int)gid && setfsuid((uid_t)-1) == (int)uid ? 0 : -EPERM;
}

int fsid_take(struct fsid *f, uid_t uid, gid_t gid)
{
	*f = (struct fsid){0};
	if (prctl(PR_GET_PDEATHSIG, &f->death_signal) < 0)
		return -errno;
	return change_fsids(uid, gid);
}

int fsid_give_back(const struct fsid *f)
{
	int r = change_fsids(getuid(), getgid());

	if (r < 0)
		return r;
	/*
	 * The kernel takes this for a change of identity: it clears the parent-death signal, and
	 * the host's fs.suid_dumpable decides whether the agent is dumpable. If the parent dies in
	 * between, EOF on the agent's socket still ends it.
	 */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, f->death_signal) < 0)
		return -errno;
	return 0;
}
