/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/own_process.h"

#include <sys/resource.h>

#define DAEMON_NICE (-10)

void own_process_raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

void own_process_raise_priority(void)
{
	(void)setpriority(PRIO_PROCESS, 0, DAEMON_NICE);
}

void own_process_reset_priority(void)
{
	(void)setpriority(PRIO_PROCESS, 0, 0);
}
