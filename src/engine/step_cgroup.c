/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/cgroup_pool.h"
#include "engine/runtime.h"

/* Less CPU than daemon and engine, which have the defaults (1024, 100). */
#define CPU_PERIOD_US 100000
#define CPU_SHARES    256
#define CPU_WEIGHT    25
#define IMPORT_NAME   "import"
/* The importer, two per import, of which there are at most 64, one per root being removed. */
#define IMPORT_PIDS 256

/* Cache that a removed group may keep, see group_empty(). */
#define CACHE_KEPT (1024u * 1024)
#define USAGE_KEPT (2 * CACHE_KEPT)
#define STAT_MAX   8192
#define EVENTS_MAX 256

enum value {
	VALUE_MEMORY,
	VALUE_ZERO,
	VALUE_ONE,
	VALUE_PIDS,
	VALUE_QUOTA,
	VALUE_PERIOD,
	VALUE_SHARES,
	VALUE_CPU_MAX,
	VALUE_WEIGHT,
};

/*
 * In order of writing: v1 rejects a memory+swap limit below the memory limit, and the quota depends
 * on the period.
 */
static const struct limit {
	enum cgroup_kind kind;
	bool v2;
	bool optional; /* depends on how the kernel was built */
	const char *file;
	enum value value;
} limits[] = {
	{CGROUP_MEMORY, false, false, "memory.limit_in_bytes", VALUE_MEMORY},
	{CGROUP_MEMORY, false, true, "memory.memsw.limit_in_bytes", VALUE_MEMORY},
	{CGROUP_MEMORY, false, true, "memory.swappiness", VALUE_ZERO},
	/* v1 counts socket buffers separately, and only if this is set. */
	{CGROUP_MEMORY, false, true, "memory.kmem.tcp.limit_in_bytes", VALUE_MEMORY},
	{CGROUP_MEMORY, true, false, "memory.max", VALUE_MEMORY},
	{CGROUP_MEMORY, true, true, "memory.swap.max", VALUE_ZERO},
	{CGROUP_MEMORY, true, true, "memory.oom.group", VALUE_ONE},
	{CGROUP_PIDS, false, false, "pids.max", VALUE_PIDS},
	{CGROUP_PIDS, true, false, "pids.max", VALUE_PIDS},
	{CGROUP_CPU, false, false, "cpu.cfs_period_us", VALUE_PERIOD},
	{CGROUP_CPU, false, false, "cpu.cfs_quota_us", VALUE_QUOTA},
	{CGROUP_CPU, false, false, "cpu.shares", VALUE_SHARES},
	{CGROUP_CPU, true, false, "cpu.max", VALUE_CPU_MAX},
	{CGROUP_CPU, true, false, "cpu.weight", VALUE_WEIGHT},
};

static_assert(ARRAY_SIZE(limits) <= 32, "one bit each in cgroup_tree.optional");

static bool is_for(const struct limit *limit, const struct cgroup_tree *tree)
{
	return limit->v2 == tree->v2 && (tree->kinds & CGROUP_BIT(limit->kind));
}

uint32_t groups_find_files(const struct cgroup_tree *tree)
{
	uint32_t found = 0;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (is_for(&limits[i], tree) && faccessat(tree->dir, limits[i].file, F_OK, 0) == 0)
			found |= 1u << i;
	return found;
}

static void format_value(const struct engine_limits *l, enum value value, char *ret_text,
                         size_t size)
{
	const bool is_bounded = l->cpu_millicores > 0;
	uint64_t quota = (uint64_t)l->cpu_millicores * CPU_PERIOD_US / 1000;
	const uint64_t numbers[] = {
		[VALUE_MEMORY] = l->memory_bytes,
		[VALUE_ZERO] = 0,
		[VALUE_ONE] = 1,
		[VALUE_PIDS] = l->pids,
		[VALUE_QUOTA] = quota,
		[VALUE_PERIOD] = CPU_PERIOD_US,
		[VALUE_SHARES] = CPU_SHARES,
		[VALUE_CPU_MAX] = quota,
		[VALUE_WEIGHT] = CPU_WEIGHT,
	};

	if (value == VALUE_CPU_MAX && !is_bounded)
		(void)snprintf(ret_text, size, "max %d", CPU_PERIOD_US);
	else if (value == VALUE_QUOTA && !is_bounded)
		(void)snprintf(ret_text, size, "-1");
	else if (value == VALUE_CPU_MAX)
		(void)snprintf(ret_text, size, "%llu %d", (unsigned long long)quota, CPU_PERIOD_US);
	else
		(void)snprintf(ret_text, size, "%llu", (unsigned long long)numbers[value]);
}

void groups_init(struct box_groups *groups)
{
	*groups = (struct box_groups){0};
	for (size_t i = 0; i < CGROUP_KIND_COUNT; i++) {
		groups->dirs[i] = -1;
		groups->tasks[i] = -1;
	}
}

void groups_close(struct box_groups *groups)
{
	for (size_t i = 0; i < CGROUP_KIND_COUNT; i++) {
		groups->dirs[i] = fd_close(groups->dirs[i]);
		groups->tasks[i] = fd_close(groups->tasks[i]);
	}
}

/* Whether the group of a tenant holds the box's. */
static bool is_of_tenant(const struct cgroup_tree *tree, const struct box_groups *groups)
{
	return groups->tenant && !groups->outside && (tree->kinds & CGROUP_BIT(CGROUP_CPU));
}

/* The directory that has the box's group of tree @i. */
static int parent_of(const struct host *host, const struct box_groups *groups, size_t i)
{
	const struct cgroup_tree *tree = &host->groups.trees[i];

	return is_of_tenant(tree, groups) ? groups->tenant->dir : tree->dir;
}

static int make_group(const struct host *host, struct box_groups *groups, size_t i)
{
	const struct cgroup_tree *tree = &host->groups.trees[i];
	int parent = parent_of(host, groups, i);

	if (tree->per_tenant)
		return groups->tenant ? tenant_group_tasks(groups->tenant, &groups->tasks[i]) : 0;
	/* The daemon, which has another uid, reads counters by descriptor. */
	if (mkdirat(parent, groups->name, 0755) < 0)
		return -errno;
	groups->made[i] = true;
	groups->dirs[i] = fd_open_at(parent, groups->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (groups->dirs[i] < 0)
		return groups->dirs[i];
	if (tree->v2)
		return 0;
	groups->tasks[i] = fd_open_at(groups->dirs[i], "tasks", O_WRONLY, 0);
	return groups->tasks[i];
}

int groups_make(const struct host *host, struct box_groups *groups, struct error *err)
{
	const struct cgroups *cgroups = &host->groups;

	for (size_t i = 0; i < cgroups->count; i++) {
		int r = make_group(host, groups, i);

		if (r < 0)
			return error_set(err, ERR_BOX_FAILED, -r, "make the group in '%s'",
			                 cgroups->trees[i].path);
	}
	return 0;
}

int step_cgroup_make(struct build *b, struct error *err)
{
	return cgroup_pool_take(b->cgroup_pool, &b->plan.limits, b->tenant, &b->groups, err);
}

static int limit_group(const struct cgroup_tree *tree, int dir, const struct engine_limits *l,
                       struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		char text[64];
		int r;

		if (!is_for(&limits[i], tree) ||
		    (limits[i].optional && !(tree->optional & (1u << i))))
			continue;
		format_value(l, limits[i].value, text, sizeof(text));
		r = file_write_at(dir, limits[i].file, text);
		if (r < 0)
			return error_set(err, ERR_BOX_FAILED, -r, "write '%s' into %s", text,
			                 limits[i].file);
	}
	return 0;
}

int groups_limit(const struct host *host, struct box_groups *groups, const struct engine_limits *l,
                 struct error *err)
{
	const struct cgroups *cgroups = &host->groups;

	struct engine_limits all = *l;

	if (groups->limited) /* a spare: already written */
		return 0;
	if (host->runtime) {
		all.pids += host->runtime->pids_starting;
		all.memory_bytes += host->runtime->memory_bytes;
	}
	for (size_t i = 0; i < cgroups->count; i++)
		if (groups->dirs[i] >= 0 &&
		    limit_group(&cgroups->trees[i], groups->dirs[i], &all, err) < 0)
			return -1;
	groups->limited = true;
	return 0;
}

void groups_settle(const struct host *host, const struct box_groups *groups,
                   const struct engine_limits *l)
{
	int dir = groups_dir(host, groups, CGROUP_PIDS);
	char text[32];
	int r;

	if (!host->runtime || dir < 0)
		return;
	(void)snprintf(text, sizeof(text), "%u", l->pids + host->runtime->pids_running);
	r = file_write_at(dir, "pids.max", text);
	if (r < 0) /* the larger limit stays */
		log_warn("lower pids.max of the group %s: %s, ignoring", groups->name,
		         strerror(-r));
}

static int open_import(const struct cgroup_tree *tree, const struct io_limits *io,
                       const struct engine_limits *l, struct error *err)
{
	cleanup_close int dir = -1;
	int fd;

	if (mkdirat(tree->dir, IMPORT_NAME, 0755) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "group for imports in '%s'",
		                 tree->path);
	dir = fd_open_at(tree->dir, IMPORT_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0)
		return error_set(err, ERR_UNAVAILABLE, -dir, "group for imports in '%s'",
		                 tree->path);
	if (limit_group(tree, dir, l, err) < 0 || io_limits_write(io, tree, dir, err) < 0)
		return error_wrap(err, "group for imports");
	fd = fd_open_at(dir, tree->v2 ? "cgroup.procs" : "tasks", O_WRONLY, 0);
	return fd < 0 ? error_set(err, ERR_UNAVAILABLE, -fd, "group for imports") : fd;
}

int groups_make_import(struct host *host, uint64_t memory_bytes, struct error *err)
{
	struct cgroups *groups = &host->groups;
	const struct engine_limits l = {.memory_bytes = memory_bytes, .pids = IMPORT_PIDS};

	for (size_t i = 0; i < groups->count; i++) {
		int fd = open_import(&groups->trees[i], &host->io, &l, err);

		if (fd < 0)
			return -1;
		groups->import[i] = fd;
	}
	return 0;
}

int step_cgroup_limit(struct build *b, struct error *err)
{
	return groups_limit(b->host, &b->groups, &b->plan.limits, err);
}

int step_cgroup_join(struct build *b, struct error *err)
{
	/* "0" is the writer. `tasks` moves one thread, the only one here, and avoids the global
	 * kernel lock that cgroup.procs needs. */
	for (size_t i = 0; i < b->host->groups.count; i++)
		if (b->groups.tasks[i] >= 0 && write(b->groups.tasks[i], "0", 1) != 1)
			return error_set(err, ERR_BOX_FAILED, errno, "join '%s'",
			                 b->host->groups.trees[i].path);
	return 0;
}

static bool is_member(const char *text, const struct cgroup_tree *tree, uint32_t instance,
                      const struct box_groups *groups)
{
	bool of_tenant = tree->per_tenant || is_of_tenant(tree, groups);
	char path[CGROUP_PATH_MAX], want[CGROUP_PATH_MAX];

	if (tree->per_tenant && !groups->tenant)
		return true;
	return cgroup_line_path(text, tree->v2, tree->kinds, path, sizeof(path)) == 0 &&
	       str_format(want, sizeof(want), "%s/%u%s%s%s%s", tree->path, instance,
	                  of_tenant ? "/" CGROUP_TENANT_PREFIX : "",
	                  of_tenant ? groups->tenant->name : "", tree->per_tenant ? "" : "/",
	                  tree->per_tenant ? "" : groups->name) >= 0 &&
	       str_equal(path, want);
}

int step_cgroup_verify(struct build *b, struct error *err)
{
	const struct cgroups *cgroups = &b->host->groups;
	char text[4096];
	/* The engine's /proc, before the cgroup namespace: the paths are the engine's. */
	int r = file_read_text_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text));

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "read /proc/self/cgroup");
	for (size_t i = 0; i < cgroups->count; i++)
		if (!is_member(text, &cgroups->trees[i], cgroups->instance, &b->groups))
			return error_set(err, ERR_BOX_FAILED, 0,
			                 "the box is not in its group in '%s'",
			                 cgroups->trees[i].path);
	return 0;
}

/* v1 or v2, or neither. */
void group_lift_quota(int dir)
{
	(void)!file_write_at(dir, "cpu.cfs_quota_us", "-1");
	(void)!file_write_at(dir, "cpu.max", "max");
}

void groups_kill(const struct host *host, const struct box_groups *groups)
{
	int kill_tree = host->groups.kill_tree;
	int cpu = groups_dir(host, groups, CGROUP_CPU);

	/* Dying takes CPU time: with a hundredth of a core, hundreds of processes would take
	 * minutes. */
	if (cpu >= 0)
		group_lift_quota(cpu);
	/* The second means: killing PID 1 ended its namespace. */
	if (kill_tree >= 0 && groups->dirs[kill_tree] >= 0 &&
	    file_write_at(groups->dirs[kill_tree], "cgroup.kill", "1") >= 0)
		return;
	for (size_t i = 0; i < host->groups.count; i++) {
		if (groups->dirs[i] < 0)
			continue;
		(void)group_kill_listed(groups->dirs[i]);
		if (host->groups.trees[i].kinds & CGROUP_BIT(CGROUP_FREEZER))
			(void)!file_write_at(groups->dirs[i], "freezer.state", "THAWED");
	}
}

int groups_freeze(const struct host *host, const struct box_groups *groups, bool frozen)
{
	int tree = host->groups.freeze_tree;

	if (tree < 0 || groups->dirs[tree] < 0)
		return -ENOTSUP;
	if (host->groups.trees[tree].v2)
		return file_write_at(groups->dirs[tree], "cgroup.freeze", frozen ? "1" : "0");
	return file_write_at(groups->dirs[tree], "freezer.state", frozen ? "FROZEN" : "THAWED");
}

int groups_are_frozen(const struct host *host, const struct box_groups *groups)
{
	int tree = host->groups.freeze_tree;
	bool v2 = tree >= 0 && host->groups.trees[tree].v2;
	char text[EVENTS_MAX];
	int r;

	if (tree < 0 || groups->dirs[tree] < 0)
		return -ENOTSUP;
	r = file_read_text_at(groups->dirs[tree], v2 ? "cgroup.events" : "freezer.state", text,
	                      sizeof(text));
	if (r < 0)
		return r;
	/* v1 reports FREEZING until the last process has stopped. */
	return strstr(text, v2 ? "frozen 1" : "FROZEN") != NULL;
}

int groups_open_kill(const struct host *host, const struct box_groups *groups)
{
	int tree = host->groups.kill_tree;

	if (tree < 0 || groups->dirs[tree] < 0)
		return -ENOENT;
	return fd_open_at(groups->dirs[tree], "cgroup.kill", O_WRONLY, 0);
}

int groups_dir(const struct host *host, const struct box_groups *groups, enum cgroup_kind kind)
{
	for (size_t i = 0; i < host->groups.count; i++)
		if (host->groups.trees[i].kinds & CGROUP_BIT(kind))
			return groups->dirs[i];
	return -1;
}

uint32_t groups_count(const struct host *host, const struct box_groups *groups)
{
	char text[4096];
	uint32_t lines = 0;
	size_t i = 0;

	while (i < host->groups.count && groups->dirs[i] < 0)
		i++;
	if (i == host->groups.count ||
	    file_read_text_at(groups->dirs[i], "cgroup.procs", text, sizeof(text)) < 0)
		return 0;
	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	return lines + (text[0] != '\0');
}

/*
 * Pages of the host's files that a box was the first to read stay charged to its group, and keep
 * the kernel's part of the group, 35 to 80 KiB, after its removal. Attack: boxes that read a page
 * each fill the memory of the host with such remains. So a small cache is dropped. A larger one
 * stays: the next boxes need those files too, and the remains are small beside it.
 *
 * Looked up first because dropping takes up to milliseconds: the kernel flushes lists on every CPU.
 * It also frees what the kernel keeps of names that the box looked up, which takes seconds for a
 * million of them, and boxes wait for the engine. So the whole charge must be small.
 */
static void group_empty(const struct cgroup_tree *tree, int dir)
{
	char text[STAT_MAX];
	uint64_t cache, shared, usage;
	int r = file_read_text_at(dir, "memory.stat", text, sizeof(text));

	/* What is shared belongs to the box's own file systems and goes with them. */
	if (r < 0 || file_find_key(text, tree->v2 ? "file" : "cache", &cache) < 0 ||
	    file_find_key(text, "shmem", &shared) < 0 || cache <= shared ||
	    cache - shared > CACHE_KEPT ||
	    file_read_u64_at(dir, tree->v2 ? "memory.current" : "memory.usage_in_bytes", &usage) <
	            0 ||
	    usage > shared + USAGE_KEPT)
		return;
	if (!tree->v2)
		r = file_write_at(dir, "memory.force_empty", "0");
	else if (str_format(text, sizeof(text), "%llu", (unsigned long long)(cache - shared)) >= 0)
		r = file_write_at(dir, "memory.reclaim", text);
	/* Pages that others use just now stay: the remains go with them. */
	if (r < 0)
		log_debug("empty a group: %s, ignoring", strerror(-r));
}

int groups_remove(const struct host *host, struct box_groups *groups)
{
	int r = 0;

	for (size_t i = 0; i < host->groups.count; i++) {
		if (!groups->made[i])
			continue;
		if (host->groups.trees[i].kinds & CGROUP_BIT(CGROUP_MEMORY))
			group_empty(&host->groups.trees[i], groups->dirs[i]);
		if (unlinkat(parent_of(host, groups, i), groups->name, AT_REMOVEDIR) < 0 &&
		    errno != ENOENT)
			r = -errno;
		else
			groups->made[i] = false;
	}
	if (r == 0)
		tenant_group_put(TAKE_PTR(groups->tenant));
	return r;
}
