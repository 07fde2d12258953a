/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

uint32_t probe_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (uint32_t)abi;
}

bool probe_has_time_ns(void)
{
	return access("/proc/self/timens_offsets", F_OK) == 0;
}

int probe_print(const struct options *options attr_unused)
{
	return 0;
}
