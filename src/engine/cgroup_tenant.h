/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one group per tenant in the tree with the CPU controller, with equal weight and the groups
 * of its boxes beneath: .../millibox/<instance>/t-<tenant>/<group>. The kernel then shares the
 * processor between tenants, whatever number of boxes and processes each has; what a session leaves
 * in the background is charged to its tenant.
 *
 * In a v2 tree with more controllers these are passed on. A few groups without boxes are kept: most
 * tenants come back. The limits of disk I/O belong to this group too, or to one in the v1 tree
 * "blkio" (cgroup_io.h).
 */

#include "base/attr.h"
#include "base/error.h"
#include "engine/engine.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host;

#define TENANT_GROUPS_MAX 4096 /* as many as boxes */

struct tenant_group {
	char name[ENGINE_TENANT_LEN];
	bool used;
	int dir;        /* owned; -1: no CPU controller */
	int tasks;      /* moves a process into the group in the v1 tree "blkio"; owned; or -1 */
	uint32_t boxes; /* and spare groups, and zygotes */
	struct tenant_groups *all;
};

struct tenant_groups {
	const struct host *host; /* borrowed */
	int tree;                /* index of the tree; -1: no CPU controller */
	int io_tree;             /* of the v1 tree "blkio"; -1: none */
	struct tenant_group list[TENANT_GROUPS_MAX];
	size_t count;  /* entries ever used */
	uint32_t idle; /* groups without boxes */
};

/** tenant_groups_init - *all must not move afterwards. */
void tenant_groups_init(struct tenant_groups *all, const struct host *host);
/** tenant_groups_close - remove all groups that are empty. */
void tenant_groups_close(struct tenant_groups *all);
/**
 * tenant_group_get - the group of @name, for one box. Give it back with tenant_group_put. *ret:
 * NULL for "" and without a controller.
 */
int tenant_group_get(struct tenant_groups *all, const char *name, struct tenant_group **ret,
                     struct error *err) attr_must_check;
/** tenant_group_tasks - a copy of @group->tasks for the caller; -1 if there is none. */
int tenant_group_tasks(const struct tenant_group *group, int *ret_fd) attr_must_check;
/** tenant_group_put - after the box's group is removed. @group may be NULL. */
void tenant_group_put(struct tenant_group *group);
