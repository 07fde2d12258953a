/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a group of the host with limits, for a process of the daemon that works for tenants. A
 * holder of these files can move its processes there: the engine opened them with its privileges.
 */

#include "base/attr.h"
#include <stddef.h>
#include <sys/types.h>

#define HELPER_GROUP_FILES 9 /* as FD_PASS_MAX */

struct helper_group {
	size_t count; /* 0: the host has no groups for us */
	int files[HELPER_GROUP_FILES];
};

/** helper_group_join - move process @pid there. Return: 0 or a negative errno. */
int helper_group_join(const struct helper_group *group, pid_t pid) attr_must_check;
void helper_group_close(struct helper_group *group);
