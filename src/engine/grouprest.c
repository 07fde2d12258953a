/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grouprest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

/* v1's for processors, by itself; -1: the host has none. */
static int find_tree(const struct cgroups *cgroups)
{
	for (size_t i = 0; i < cgroups->count; i++)
		if (!cgroups->trees[i].v2 && cgroups->trees[i].kinds == CGROUP_BIT(CGROUP_CPU))
			return (int)i;
	return -1;
}

void grouprest_open(struct grouprest *rest, const struct host *host)
{
	*rest = (struct grouprest){.host = host, .tree = find_tree(&host->groups)};
}

static const struct cgroup_tree *home_of(const struct grouprest *rest)
{
	return &rest->host->groups.trees[rest->tree];
}

static void drop(const struct grouprest *rest, struct rested_group *group)
{
	/* Empty, so somebody else is at it; the next start tries again. */
	if (unlinkat(home_of(rest)->dir, group->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		log_warn("remove the group %s: %m, ignoring", group->name);
	group->dir = fd_close(group->dir);
}

/* Takes the @i-th out of the list; its directory is the caller's. */
static struct rested_group cut(struct grouprest *rest, size_t i)
{
	struct rested_group group = rest->groups[i];

	rest->count--;
	memmove(&rest->groups[i], &rest->groups[i + 1],
	        (rest->count - i) * sizeof(rest->groups[0]));
	return group;
}

void grouprest_close(struct grouprest *rest)
{
	while (rest->count > 0)
		drop(rest, &rest->groups[--rest->count]);
}

bool limits_are_same(const struct engine_limits *a, const struct engine_limits *b)
{
	return memcmp(a, b, sizeof(*a)) == 0; /* it has no padding */
}

void grouprest_take(struct grouprest *rest, const struct engine_limits *limits,
                    struct box_groups *groups)
{
	struct rested_group group;
	size_t i = 0;

	while (i < rest->count && !limits_are_same(&rest->groups[i].limits, limits))
		i++;
	if (i == rest->count)
		return;
	group = cut(rest, i);
	if (group_renew(home_of(rest), group.dir, limits) < 0 ||
	    renameat(home_of(rest)->dir, group.name, home_of(rest)->dir, groups->name) < 0) {
		drop(rest, &group);
		return;
	}
	groups->dirs[rest->tree] = group.dir;
	groups->made[rest->tree] = true;
	groups->limited |= 1u << rest->tree;
}

static void add(struct grouprest *rest, const struct engine_limits *limits,
                struct box_groups *groups)
{
	struct rested_group group = {.limits = *limits};

	memcpy(group.name, groups->name, sizeof(group.name));
	group.dir = TAKE_FD(groups->dirs[rest->tree]);
	groups->made[rest->tree] = false;
	if (rest->count == ARRAY_SIZE(rest->groups)) {
		struct rested_group oldest = cut(rest, 0);
		drop(rest, &oldest);
	}
	rest->groups[rest->count++] = group;
}

/* Whether there is one that can rest, and another that, when it goes, proves it empty. */
static bool can_rest(const struct grouprest *rest, const struct box_groups *groups)
{
	if (rest->tree < 0 || !groups->made[rest->tree] || !(groups->limited & (1u << rest->tree)))
		return false;
	for (size_t i = 0; i < rest->host->groups.count; i++)
		if (groups->made[i] && (int)i != rest->tree)
			return true;
	return false;
}

int grouprest_give(struct grouprest *rest, const struct engine_limits *limits,
                   struct box_groups *groups)
{
	if (!can_rest(rest, groups))
		return groups_remove(rest->host, groups, ~0u);
	if (groups_remove(rest->host, groups, ~(1u << rest->tree)) < 0)
		return -EBUSY;
	add(rest, limits, groups);
	return 0;
}
