/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core_limit.h"

#define KEEP_BIT(cap) (1ULL << (cap))

/* The agent needs these to set the payload's ids and to kill it; payloads do not get them. */
static const int kept[] = {CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_SETPCAP};

int step_rlimits(struct build *b attr_unused, struct error *err)
{
	const struct rlimit core = {CORE_LIMIT, CORE_LIMIT};

	/* The agent sets the other limits for each payload. */
	if (setrlimit(RLIMIT_CORE, &core) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "RLIMIT_CORE");
	(void)setpriority(PRIO_PROCESS, 0, 0); /* the engine's is higher */
	return 0;
}

int caps_drop_bounding(uint64_t keep)
{
	for (int cap = 0; cap < 64; cap++) {
		if (keep & KEEP_BIT(cap))
			continue;
		/* EINVAL: past the last capability of this kernel. */
		if (prctl(PR_CAPBSET_DROP, cap) < 0)
			return errno == EINVAL ? 0 : -errno;
	}
	return 0;
}

static int set_caps(uint64_t keep)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	for (int i = 0; i < 2; i++) {
		data[i].permitted = (uint32_t)(keep >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = data[i].permitted;
	}
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* An agent that is not uid 0 in its box would lose them all at exec. */
static int raise_ambient(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0) < 0)
			return -errno;
	return 0;
}

int step_caps(struct build *b, struct error *err)
{
	uint64_t keep = 0;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		keep |= KEEP_BIT(kept[i]);
	r = caps_drop_bounding(keep);
	if (r >= 0)
		r = set_caps(keep);
	if (r >= 0 && b->host->ids.mode == ENGINE_IDS_SINGLE)
		r = raise_ambient();
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "drop capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "no_new_privs");
	return 0;
}
