/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "remote/remote.h"

/*
 * Whoever may connect to Docker's socket is root of its host in the end. So this is no wall between
 * the program and the host; it keeps the parser of the server's answers from everything that is not
 * that socket, and Landlock and the filter keep it from using the socket in any but this program's
 * words only as long as it runs this program.
 */

#define KEPT_CAP CAP_DAC_READ_SEARCH
#define CAPS_END 64

static int set_caps(uint32_t caps)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct data[2] = {{.effective = caps, .permitted = caps}};

	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

static int drop_bounding_set(void)
{
	for (unsigned long cap = 0; cap < CAPS_END; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) > 0 &&
		    prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	return 0;
}

static int become(uid_t uid, gid_t gid)
{
	int r = drop_bounding_set();

	if (r < 0)
		return r;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0 ||
	    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return -errno;
	return set_caps(1u << KEPT_CAP);
}

int privilege_drop(const char *socket, uint32_t uid, struct error *err)
{
	struct stat st = {.st_gid = uid};
	int r;

	if (geteuid() != 0)
		return 0;
	/* Without a socket the first call says so. */
	if (stat(socket, &st) < 0)
		st.st_gid = uid;
	r = become(uid, st.st_gid);
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "give up the rights of root") : 0;
}
