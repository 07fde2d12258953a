/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cgroup_pool.h"

#include <string.h>

#include "base/log.h"
#include "base/str.h"

void cgroup_pool_open(struct cgroup_pool *pool, const struct host *host)
{
	*pool = (struct cgroup_pool){.host = host};
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
}

static int make_groups(struct cgroup_pool *pool, struct box_groups *ret_groups, struct error *err)
{
	groups_init(ret_groups);
	if (str_format(ret_groups->name, sizeof(ret_groups->name), "box-%llu",
	               (unsigned long long)++pool->made) < 0)
		return error_set(err, ERR_BOX_FAILED, 0, "name of a group");
	return groups_make(pool->host, ret_groups, err);
}

static bool limits_are_equal(const struct engine_limits *a, const struct engine_limits *b)
{
	return memcmp(a, b, sizeof(*a)) == 0; /* it has no padding */
}

int cgroup_pool_take(struct cgroup_pool *pool, const struct engine_limits *limits,
                     struct box_groups *ret_groups, struct error *err)
{
	pool->wanted = *limits;
	pool->is_wanted = true;
	if (pool->count == 0 || !limits_are_equal(&pool->limits, limits))
		return make_groups(pool, ret_groups, err);
	*ret_groups = pool->spares[--pool->count];
	return 0;
}

static void add_spare(struct cgroup_pool *pool)
{
	struct box_groups *next = &pool->spares[pool->count];
	struct error err = {0};

	if (make_groups(pool, next, &err) == 0 &&
	    groups_limit(pool->host, next, &pool->wanted, &err) == 0) {
		pool->limits = pool->wanted;
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
	if (pool->count > 0 && !limits_are_equal(&pool->limits, &pool->wanted))
		drop_groups(pool, &pool->spares[--pool->count]);
	else if (pool->count < ARRAY_SIZE(pool->spares))
		add_spare(pool);
}
