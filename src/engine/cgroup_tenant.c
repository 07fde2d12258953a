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
	*all = (struct tenant_groups){.host = host, .tree = -1, .io_tree = -1};
	for (size_t i = 0; i < host->groups.count; i++) {
		if (host->groups.trees[i].kinds & CGROUP_BIT(CGROUP_CPU))
			all->tree = (int)i;
		if (host->groups.trees[i].per_tenant)
			all->io_tree = (int)i;
	}
	for (size_t i = 0; i < TENANT_GROUPS_MAX; i++)
		all->list[i] = (struct tenant_group){.dir = -1, .tasks = -1, .all = all};
}

static void format_dir(const char *name, char ret_dir[DIR_LEN])
{
	/* The name is shorter than ENGINE_TENANT_LEN. */
	(void)!str_format(ret_dir, DIR_LEN, CGROUP_TENANT_PREFIX "%s", name);
}

static bool remove_from(const struct tenant_groups *all, int tree, const char *name)
{
	char dir[DIR_LEN];

	format_dir(name, dir);
	return tree < 0 || unlinkat(all->host->groups.trees[tree].dir, dir, AT_REMOVEDIR) == 0 ||
	       errno == ENOENT;
}

static void forget_group(struct tenant_group *group)
{
	group->dir = fd_close(group->dir);
	group->tasks = fd_close(group->tasks);
	group->used = false;
}

/* Return: whether it is gone. */
static bool remove_group(struct tenant_group *group)
{
	if (!remove_from(group->all, group->all->tree, group->name) ||
	    !remove_from(group->all, group->all->io_tree, group->name))
		return false;
	forget_group(group);
	return true;
}

void tenant_groups_close(struct tenant_groups *all)
{
	for (size_t i = 0; i < all->count; i++) {
		struct tenant_group *group = &all->list[i];

		if (group->used && !remove_group(group)) /* swept later */
			forget_group(group);
	}
	all->count = 0;
}

static int open_dir(const struct cgroup_tree *tree, const char *name, int *ret_dir)
{
	char path[DIR_LEN];

	format_dir(name, path);
	if (mkdirat(tree->dir, path, 0755) < 0 && errno != EEXIST)
		return -errno;
	*ret_dir = fd_open_at(tree->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return *ret_dir < 0 ? *ret_dir : 0;
}

/* In the tree with the CPU controller. */
static int make_dir(const struct tenant_groups *all, const char *name, int *ret_dir,
                    struct error *err)
{
	const struct cgroup_tree *tree = &all->host->groups.trees[all->tree];
	cleanup_close int dir = -1;
	int r = open_dir(tree, name, &dir);

	/* The guard, which is another user, removes what a killed engine left in it. The
	 * directories above keep all other users out. */
	if (r >= 0 && fchmod(dir, 0777) < 0)
		r = -errno;
	if (r >= 0)
		r = cgroup_pass_on(tree, dir);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "in '%s'", tree->path);
	*ret_dir = TAKE_FD(dir);
	return io_limits_write(&all->host->io, tree, *ret_dir, err);
}

/* In the v1 tree "blkio". */
static int make_io_group(const struct tenant_groups *all, const char *name, int *ret_tasks,
                         struct error *err)
{
	const struct cgroup_tree *tree = &all->host->groups.trees[all->io_tree];
	cleanup_close int dir = -1;
	int r = open_dir(tree, name, &dir);

	if (r >= 0 && io_limits_write(&all->host->io, tree, dir, err) < 0)
		return -1;
	if (r >= 0)
		r = *ret_tasks = fd_open_at(dir, "tasks", O_WRONLY, 0);
	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "in '%s'", tree->path) : 0;
}

int tenant_group_tasks(const struct tenant_group *group, int *ret_fd)
{
	*ret_fd = group->tasks < 0 ? -1 : fcntl(group->tasks, F_DUPFD_CLOEXEC, 3);
	return group->tasks >= 0 && *ret_fd < 0 ? -errno : 0;
}

static struct tenant_group *find_group(struct tenant_groups *all, const char *name)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].used && str_equal(all->list[i].name, name))
			return &all->list[i];
	return NULL;
}

static struct tenant_group *unused_entry(struct tenant_groups *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (!all->list[i].used)
			return &all->list[i];
	return all->count < TENANT_GROUPS_MAX ? &all->list[all->count++] : NULL;
}

static struct tenant_group *add_group(struct tenant_groups *all, const char *name,
                                      struct error *err)
{
	struct tenant_group *group = unused_entry(all);

	if (!group || str_copy(group->name, sizeof(group->name), name) < 0) {
		(void)error_set(err, ERR_BOX_FAILED, ENOSPC, "make the group of tenant '%s'", name);
		return NULL;
	}
	if ((all->tree >= 0 && make_dir(all, name, &group->dir, err) < 0) ||
	    (all->io_tree >= 0 && make_io_group(all, name, &group->tasks, err) < 0)) {
		(void)error_wrap(err, "make the group of tenant '%s'", name);
		(void)remove_group(group);
		forget_group(group);
		return NULL;
	}
	group->used = true;
	all->idle++;
	return group;
}

int tenant_group_get(struct tenant_groups *all, const char *name, struct tenant_group **ret,
                     struct error *err)
{
	struct tenant_group *group;

	*ret = NULL;
	if (!name[0] || (all->tree < 0 && all->io_tree < 0))
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
