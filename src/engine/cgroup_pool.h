/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: cgroups made ahead. Making a box's groups takes the kernel's global lock once per tree and
 * is the second most expensive part of a box. It depends only on limits and tenant, and most boxes
 * have the same ones. So the engine keeps a few spare sets like those of the latest box, with the
 * limits already written.
 *
 * A set serves one box and is removed with it: counters such as pids.peak cannot be reset, and
 * memory may be charged to a group after its last process has ended.
 */

#include "base/error.h"
#include "engine/cgroup_tenant.h"
#include "engine/internal.h"

#define CGROUP_POOL_SIZE 2

struct cgroup_pool {
	const struct host *host; /* borrowed */
	struct box_groups spares[CGROUP_POOL_SIZE];
	size_t count;
	struct cgroup_pool_key {
		struct engine_limits limits;
		char tenant[ENGINE_TENANT_LEN];
	} has, wanted; /* of all spares; of the latest box */
	bool is_wanted;
	uint64_t made; /* groups made so far; a name is never reused */
	struct tenant_groups tenants;
};

void cgroup_pool_open(struct cgroup_pool *pool, const struct host *host);
void cgroup_pool_close(struct cgroup_pool *pool);
/** cgroup_pool_take - groups for a box of @tenant with these limits. */
int cgroup_pool_take(struct cgroup_pool *pool, const struct engine_limits *limits,
                     const char *tenant, struct box_groups *ret_groups,
                     struct error *err) attr_must_check;
/** cgroup_pool_refill - make one missing spare, or remove one with another key. Call when idle. */
void cgroup_pool_refill(struct cgroup_pool *pool);
