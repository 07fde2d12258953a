/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/fsid.h"

#include <errno.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

/* These calls have no failure; asking for an id that does not exist tells the one in force. */
static int change(uid_t uid, gid_t gid)
{
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	return setfsgid((gid_t)-1) == (int)gid && setfsuid((uid_t)-1) == (int)uid ? 0 : -EPERM;
}

int fsid_take(struct fsid *f, uid_t uid, gid_t gid)
{
	*f = (struct fsid){0};
	if (prctl(PR_GET_PDEATHSIG, &f->death_signal) < 0)
		return -errno;
	return change(uid, gid);
}

int fsid_give_back(const struct fsid *f)
{
	int r = change(geteuid(), getegid());

	if (r < 0)
		return r;
	/*
	 * The kernel takes a change of these ids for a change of identity: it forgets the signal,
	 * and fs.suid_dumpable of the host decides whether the agent can be dumped. Should the
	 * parent die in between, the end of the agent's socket still tells.
	 */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, f->death_signal) < 0)
		return -errno;
	return 0;
}
