/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cgroup_tenant.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/internal.h"

#define IDLE_MAX 32 /* groups without boxes that are kept */
#define DIR_LEN  (sizeof(CGROUP_TENANT_PREFIX) + ENGINE_TENANT_LEN)

void tenant_groups_init(struct tenant_groups *all, const struct host *host)
{
	*all = (struct tenant_groups){.host = host, .tree = -1};
	for (size_t i = 0; i < host->groups.count; i++)
		if (host->groups.trees[i].kinds & CGROUP_BIT(CGROUP_CPU))
			all->tree = (int)i;
	for (size_t i = 0; i < TENANT_GROUPS_MAX; i++)
		all->list[i] = (struct tenant_group){.dir = -1, .all = all};
}

static const struct cgroup_tree *tree_of(const struct tenant_groups *all)
{
	return &all->host->groups.trees[all->tree];
}

static void format_dir(const char *name, char ret_dir[DIR_LEN])
{
	/* The name is shorter than ENGINE_TENANT_LEN. */
	(void)!str_format(ret_dir, DIR_LEN, CGROUP_TENANT_PREFIX "%s", name);
}

/* Return: whether it is gone. */
static bool remove_group(struct tenant_group *group)
{
	char dir[DIR_LEN];

	format_dir(group->name, dir);
	if (unlinkat(tree_of(group->all)->dir, dir, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return false;
	group->dir = fd_close(group->dir);
	return true;
}

void tenant_groups_close(struct tenant_groups *all)
{
	for (size_t i = 0; i < all->count; i++) {
		struct tenant_group *group = &all->list[i];

		if (group->dir >= 0 && !remove_group(group)) /* swept later */
			group->dir = fd_close(group->dir);
	}
	all->count = 0;
}

static int make_dir(const struct cgroup_tree *tree, const char *name, int *ret_dir)
{
	cleanup_close int dir = -1;
	char path[DIR_LEN];
	int r;

	format_dir(name, path);
	if (mkdirat(tree->dir, path, 0755) < 0 && errno != EEXIST)
		return -errno;
	dir = fd_open_at(tree->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0)
		return dir;
	/* The guard, which is another user, removes what a killed engine left in it. The
	 * directories above keep everybody else out. */
	if (fchmod(dir, 0777) < 0)
		return -errno;
	r = cgroup_pass_on(tree, dir);
	if (r < 0)
		return r;
	*ret_dir = TAKE_FD(dir);
	return 0;
}

static struct tenant_group *find_group(struct tenant_groups *all, const char *name)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].dir >= 0 && str_equal(all->list[i].name, name))
			return &all->list[i];
	return NULL;
}

static struct tenant_group *unused_entry(struct tenant_groups *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].dir < 0)
			return &all->list[i];
	return all->count < TENANT_GROUPS_MAX ? &all->list[all->count++] : NULL;
}

static struct tenant_group *add_group(struct tenant_groups *all, const char *name,
                                      struct error *err)
{
	struct tenant_group *group = unused_entry(all);
	int r = group ? make_dir(tree_of(all), name, &group->dir) : -ENOSPC;

	if (!group || r < 0 || str_copy(group->name, sizeof(group->name), name) < 0) {
		(void)error_set(err, ERR_BOX_FAILED, -r, "make the group of tenant '%s'", name);
		return NULL;
	}
	all->idle++;
	return group;
}

int tenant_group_get(struct tenant_groups *all, const char *name, struct tenant_group **ret,
                     struct error *err)
{
	struct tenant_group *group;

	*ret = NULL;
	if (!name[0] || all->tree < 0)
		return 0;
	group = find_group(all, name);
	if (!group)
		group = add_group(all, name, err);
	if (!group)
		return -1;
	all->idle -= group->boxes == 0;
	group->boxes++;
	*ret = group;
	return 0;
}

void tenant_group_put(struct tenant_group *group)
{
	if (!group)
		return;
	assert(group->boxes > 0);
	if (--group->boxes > 0)
		return;
	group->all->idle++;
	if (group->all->idle > IDLE_MAX && remove_group(group))
		group->all->idle--;
}
