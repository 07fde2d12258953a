/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cgroup_pool.h"

#include <string.h>

#include "base/log.h"
#include "base/str.h"

void cgroup_pool_open(struct cgroup_pool *pool, const struct host *host)
{
	*pool = (struct cgroup_pool){.host = host};
	tenant_groups_init(&pool->tenants, host);
}

static void drop_groups(struct cgroup_pool *pool, struct box_groups *groups)
{
	int r = groups_remove(pool->host, groups);

	if (r < 0) /* another process holds it; the next start sweeps it */
		log_warn("remove the group %s: %s, ignoring", groups->name, strerror(-r));
	groups_close(groups);
}

void cgroup_pool_close(struct cgroup_pool *pool)
{
	while (pool->count > 0)
		drop_groups(pool, &pool->spares[--pool->count]);
	tenant_groups_close(&pool->tenants);
}

static int make_groups(struct cgroup_pool *pool, const char *tenant, struct box_groups *ret_groups,
                       struct error *err)
{
	groups_init(ret_groups);
	if (tenant_group_get(&pool->tenants, tenant, &ret_groups->tenant, err) < 0)
		return -1;
	if (str_format(ret_groups->name, sizeof(ret_groups->name), "box-%llu",
	               (unsigned long long)++pool->made) < 0)
		return error_set(err, ERR_BOX_FAILED, 0, "name of a group");
	return groups_make(pool->host, ret_groups, err);
}

static bool keys_are_equal(const struct cgroup_pool_key *a, const struct cgroup_pool_key *b)
{
	return memcmp(&a->limits, &b->limits, sizeof(a->limits)) == 0 && /* it has no padding */
	       str_equal(a->tenant, b->tenant);
}

int cgroup_pool_take(struct cgroup_pool *pool, const struct engine_limits *limits,
                     const char *tenant, struct box_groups *ret_groups, struct error *err)
{
	pool->wanted.limits = *limits;
	if (str_copy(pool->wanted.tenant, sizeof(pool->wanted.tenant), tenant) < 0)
		return error_set(err, ERR_BOX_FAILED, 0, "name of the tenant");
	pool->is_wanted = true;
	if (pool->count == 0 || !keys_are_equal(&pool->has, &pool->wanted))
		return make_groups(pool, tenant, ret_groups, err);
	*ret_groups = pool->spares[--pool->count];
	return 0;
}

static void add_spare(struct cgroup_pool *pool)
{
	struct box_groups *next = &pool->spares[pool->count];
	struct error err = {0};

	if (make_groups(pool, pool->wanted.tenant, next, &err) == 0 &&
	    groups_limit(pool->host, next, &pool->wanted.limits, &err) == 0) {
		pool->has = pool->wanted;
		pool->count++;
		return;
	}
	/* The next box makes its own groups and reports the error. */
	log_debug("make a spare group: %s", err.msg);
	drop_groups(pool, next);
	pool->is_wanted = false;
}

void cgroup_pool_refill(struct cgroup_pool *pool)
{
	if (!pool->is_wanted)
		return;
	if (pool->count > 0 && !keys_are_equal(&pool->has, &pool->wanted))
		drop_groups(pool, &pool->spares[--pool->count]);
	else if (pool->count < ARRAY_SIZE(pool->spares))
		add_spare(pool);
}
