/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grouprest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

void grouprest_open(struct grouprest *rest, const struct host *host)
{
	*rest = (struct grouprest){.host = host};
}

static const struct cgroup_tree *tree_of(const struct grouprest *rest, size_t i)
{
	return &rest->host->groups.trees[i];
}

static void remove_named(const struct cgroup_tree *tree, const char *name)
{
	/* Empty, so somebody else is at it; the next start tries again. */
	if (unlinkat(tree->dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		log_warn("remove the group %s: %m, ignoring", name);
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

static void drop(struct grouprest *rest, size_t i)
{
	struct rested_group group = cut(rest, i);

	remove_named(tree_of(rest, group.tree), group.name);
	(void)fd_close(group.dir);
}

void grouprest_close(struct grouprest *rest)
{
	while (rest->count > 0)
		drop(rest, rest->count - 1);
}

bool limits_are_same(const struct engine_limits *a, const struct engine_limits *b)
{
	return memcmp(a, b, sizeof(*a)) == 0; /* it has no padding */
}

/* The longest rested of a tree, or the count if there is none. */
static size_t find(const struct grouprest *rest, size_t tree, const struct engine_limits *limits)
{
	size_t i = 0;

	while (i < rest->count &&
	       (rest->groups[i].tree != tree || !limits_are_same(&rest->groups[i].limits, limits)))
		i++;
	return i;
}

static void take_one(struct grouprest *rest, size_t tree, const struct engine_limits *limits,
                     struct box_groups *groups)
{
	const struct cgroup_tree *home = tree_of(rest, tree);
	size_t i = find(rest, tree, limits);
	struct rested_group group;

	if (i == rest->count)
		return;
	group = cut(rest, i);
	if (group_renew(home, group.dir, limits) < 0 ||
	    renameat(home->dir, group.name, home->dir, groups->name) < 0) {
		remove_named(home, group.name);
		(void)fd_close(group.dir);
		return;
	}
	groups->dirs[tree] = group.dir;
	groups->made[tree] = true;
	groups->limited |= 1u << tree;
}

void grouprest_take(struct grouprest *rest, const struct engine_limits *limits,
                    struct box_groups *groups)
{
	for (size_t i = 0; i < rest->host->groups.count; i++)
		take_one(rest, i, limits, groups);
}

static bool can_rest(const struct cgroup_tree *tree)
{
	return !tree->v2 && tree->kinds == CGROUP_BIT(CGROUP_CPU);
}

static void add(struct grouprest *rest, size_t tree, const struct engine_limits *limits,
                struct box_groups *groups)
{
	struct rested_group group = {.tree = tree, .limits = *limits};

	memcpy(group.name, groups->name, sizeof(group.name));
	group.dir = TAKE_FD(groups->dirs[tree]);
	groups->made[tree] = false;
	if (rest->count == ARRAY_SIZE(rest->groups))
		drop(rest, 0);
	rest->groups[rest->count++] = group;
}

int grouprest_give(struct grouprest *rest, const struct engine_limits *limits,
                   struct box_groups *groups)
{
	const struct cgroups *cgroups = &rest->host->groups;
	uint32_t resting = 0, gone = 0;

	for (size_t i = 0; i < cgroups->count; i++)
		if (can_rest(tree_of(rest, i)) && groups->made[i] && (groups->limited & (1u << i)))
			resting |= 1u << i;
		else if (groups->made[i])
			gone |= 1u << i;
	/* None that goes, none that proves the others empty. */
	if (gone == 0)
		return groups_remove(rest->host, groups, ~0u);
	if (groups_remove(rest->host, groups, gone) < 0)
		return -EBUSY;
	for (size_t i = 0; i < cgroups->count; i++)
		if (resting & (1u << i))
			add(rest, i, limits, groups);
	return 0;
}
