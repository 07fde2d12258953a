/* SPDX-License-Identifier: Apache-2.0 */
#include "service/helper_group.h"

#include "base/fd.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static_assert(HELPER_GROUP_FILES == FD_PASS_MAX, "all that a message can carry");

int helper_group_join(const struct helper_group *group, pid_t pid)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	for (size_t i = 0; i < group->count; i++)
		if (write(group->files[i], text, strlen(text)) < 0)
			return -errno;
	return 0;
}

void helper_group_close(struct helper_group *group)
{
	while (group->count > 0)
		(void)fd_close(group->files[--group->count]);
}
