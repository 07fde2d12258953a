/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "engine/cgroup_io.h"
#include "engine/internal.h"

#define HOME_NAME   "millibox"
#define LEAF_NAME   "millibox.daemon"
#define ENGINE_NAME "engine"
#define PROC_MAX    ((size_t)1024 * 1024)
#define CONTROLLERS (CGROUP_BIT(CGROUP_MEMORY) | CGROUP_BIT(CGROUP_PIDS) | CGROUP_BIT(CGROUP_CPU))
/* Shares of all boxes together: as many as these processes have on each core. */
#define HOME_PROCESSES 2
#define PROCESS_SHARES 1024
#define CPU_SHARES_MAX 262144
/* On v1 only without a v2 tree, which needs no controller for either. */
#define V1_ONLY (CGROUP_BIT(CGROUP_CPUACCT) | CGROUP_BIT(CGROUP_FREEZER))

static const struct {
	enum cgroup_kind kind;
	enum wire_layer layer;
	const char *name;
} controllers[] = {
	{CGROUP_MEMORY, LAYER_CGROUP_MEMORY, "memory"},
	{CGROUP_PIDS, LAYER_CGROUP_PIDS, "pids"},
	{CGROUP_CPU, LAYER_CGROUP_CPU, "cpu"},
	{CGROUP_IO, LAYER_CGROUP_IO, "io"},
};

static bool is_delegated(const char *path)
{
	char value[8];

	/* systemd sets these on the group of a unit with Delegate=yes. */
	return getxattr(path, "trusted.delegate", value, sizeof(value)) > 0 ||
	       getxattr(path, "user.delegate", value, sizeof(value)) > 0;
}

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), end_len = strlen(end);

	return len >= end_len && str_equal(s + len - end_len, end);
}

/*
 * The group that holds "millibox": our own if it was delegated to us, because its limits are meant
 * for us; else the root of the hierarchy, if privileged. *ret_own is the path below the mount
 * point.
 */
static void choose_parent(const struct cgroup_mount *mount, bool privileged, char *ret_own)
{
	char path[2 * CGROUP_PATH_MAX];

	*ret_own = '\0';
	if (str_format(path, sizeof(path), "%s%s", mount->point, mount->own) < 0)
		return;
	if (privileged && !(mount->v2 && is_delegated(path)))
		return;
	if (str_copy(ret_own, CGROUP_PATH_MAX, mount->own) < 0)
		return;
	/* Our parent already moved into the leaf. */
	if (ends_with(ret_own, "/" LEAF_NAME))
		ret_own[strlen(ret_own) - strlen("/" LEAF_NAME)] = '\0';
}

static int open_dir_at(int dir, const char *name)
{
	return fd_open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

static int make_dir_at(int dir, const char *name)
{
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	return open_dir_at(dir, name);
}

/* -ENODEV: another file system covers the mount point; limits written there would limit nothing. */
static int open_group(const struct cgroup_mount *mount, const char *path)
{
	cleanup_close int dir = fd_open(path, O_RDONLY | O_DIRECTORY, 0);
	struct statfs fs;

	if (dir < 0)
		return dir;
	if (fstatfs(dir, &fs) < 0)
		return -errno;
	if (fs.f_type != (mount->v2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC))
		return -ENODEV;
	return TAKE_FD(dir);
}

/* An unusable tree is no error: the missing layers are reported. */
static void open_tree_of(const struct cgroup_mount *mount, uint32_t kinds, bool privileged,
                         struct cgroups *groups)
{
	struct cgroup_tree tree = {
		.v2 = mount->v2,
		.per_tenant = kinds == CGROUP_BIT(CGROUP_IO),
		.kinds = kinds,
		.parent = -1,
		.home = -1,
	};
	char own[CGROUP_PATH_MAX], path[2 * CGROUP_PATH_MAX];

	tree.dir = -1;
	choose_parent(mount, privileged, own);
	if (str_format(path, sizeof(path), "%s%s", mount->point, own) < 0 ||
	    str_format(tree.path, sizeof(tree.path), "%s%s/" HOME_NAME, mount->root, own) < 0)
		return;
	tree.parent = open_group(mount, path);
	if (tree.parent < 0)
		return;
	if (tree.per_tenant && faccessat(tree.parent, io_limits_file(false), F_OK, 0) < 0) {
		tree.parent = fd_close(tree.parent);
		return;
	}
	tree.owned = !own[0] || is_delegated(path);
	tree.home = make_dir_at(tree.parent, HOME_NAME);
	/* It may be mounted read-only, as in containers. */
	if (tree.home < 0 || faccessat(tree.home, ".", W_OK, AT_EACCESS) < 0) {
		tree.parent = fd_close(tree.parent);
		tree.home = fd_close(tree.home);
		return;
	}
	groups->trees[groups->count++] = tree;
}

static int read_layout(struct cgroup_layout *ret_layout, struct error *err)
{
	cleanup_buf struct buf mounts = BUF_INIT(PROC_MAX);
	cleanup_buf struct buf self = BUF_INIT(PROC_MAX);
	int r = file_read_at(AT_FDCWD, "/proc/self/mountinfo", &mounts);

	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "read /proc/self/mountinfo");
	/* A kernel without cgroups has no such file. */
	r = file_read_at(AT_FDCWD, "/proc/self/cgroup", &self);
	if (r < 0 && r != -ENOENT)
		return error_set(err, ERR_UNAVAILABLE, -r, "read /proc/self/cgroup");
	cgroup_layout_parse(mounts.data ? mounts.data : "", self.data ? self.data : "", ret_layout);
	return 0;
}

/*
 * Limits of v1 groups for disk I/O do not hold for the groups beneath: a tree that also has groups
 * of boxes, because of another controller, is of no use for them.
 */
static uint32_t v1_wanted(uint32_t kinds, uint32_t unwanted)
{
	kinds &= ~unwanted;
	return kinds == CGROUP_BIT(CGROUP_IO) ? kinds : kinds & ~CGROUP_BIT(CGROUP_IO);
}

int cgroups_open(bool privileged, bool wants_io, struct cgroups *ret_groups, struct error *err)
{
	struct cgroup_layout layout;
	uint32_t unwanted = wants_io ? 0 : CGROUP_BIT(CGROUP_IO);

	*ret_groups = (struct cgroups){.kill_tree = -1, .freeze_tree = -1, .wants_io = wants_io};
	for (size_t i = 0; i < CGROUP_KIND_COUNT; i++)
		ret_groups->import[i] = -1;
	if (read_layout(&layout, err) < 0)
		return -1;
	/* v2 first: its kill also empties the v1 groups when sweeping. */
	for (size_t i = 0; i < layout.count; i++)
		if (layout.mounts[i].v2)
			open_tree_of(&layout.mounts[i], layout.mounts[i].kinds, privileged,
			             ret_groups);
	if (ret_groups->count > 0)
		unwanted |= V1_ONLY;
	for (size_t i = 0; i < layout.count; i++) {
		uint32_t kinds = v1_wanted(layout.mounts[i].kinds, unwanted);

		if (!layout.mounts[i].v2 && kinds != 0)
			open_tree_of(&layout.mounts[i], kinds, privileged, ret_groups);
	}
	return 0;
}

/*
 * flock alone is not enough: the owner or another engine's sweep may have removed the directory
 * before it was locked.
 */
static int lock_dir(int parent, const char *name)
{
	cleanup_close int dir = -1;
	struct stat mine, there;

	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	dir = open_dir_at(parent, name);
	if (dir < 0)
		return dir == -ENOENT ? -EBUSY : dir;
	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(dir, &mine) < 0 || fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
	    mine.st_ino != there.st_ino)
		return -EBUSY;
	return TAKE_FD(dir);
}

void cgroups_unclaim(struct cgroups *groups)
{
	for (size_t i = 0; i < groups->count; i++)
		groups->trees[i].dir = fd_close(groups->trees[i].dir);
}

int cgroups_claim(struct cgroups *groups, uint32_t instance)
{
	char name[16];
	int r = 0;

	(void)snprintf(name, sizeof(name), "%u", instance);
	for (size_t i = 0; i < groups->count && r >= 0; i++) {
		r = lock_dir(groups->trees[i].home, name);
		if (r >= 0)
			groups->trees[i].dir = r;
	}
	if (r < 0) {
		cgroups_unclaim(groups);
		return r;
	}
	groups->instance = instance;
	return 0;
}

/* "memory" in "cpu io memory pids" */
static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return true;
	return false;
}

static bool has_controller(int dir, const char *file, const char *name)
{
	char words[512];

	return file_read_text_at(dir, file, words, sizeof(words)) >= 0 && has_word(words, name);
}

static bool is_own_pid(const char *pid)
{
	uint64_t number;

	return parse_u64(pid, &number) == 0 &&
	       (number == (uint64_t)getpid() || number == (uint64_t)getppid());
}

/*
 * A group that contains processes cannot enable controllers for its children. If that is our own
 * group, engine and daemon move into a leaf beside the boxes. Other processes are moved only if the
 * whole group is ours: a terminal's scope includes the user's shell.
 */
static int move_aside(int parent, bool owned)
{
	cleanup_buf struct buf pids = BUF_INIT(PROC_MAX);
	cleanup_close int leaf = -1;
	int r = file_read_at(parent, "cgroup.procs", &pids);
	char *save = NULL;

	if (r < 0 || !pids.data)
		return r;
	leaf = make_dir_at(parent, LEAF_NAME);
	if (leaf < 0)
		return leaf;
	for (char *pid = strtok_r(pids.data, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save)) {
		if (!owned && !is_own_pid(pid))
			return -EBUSY;
		r = file_write_at(leaf, "cgroup.procs", pid);
		if (r < 0 && r != -ESRCH)
			return r;
	}
	return 0;
}

static int enable_at(int dir, const char *name)
{
	char text[32];

	if (has_controller(dir, "cgroup.subtree_control", name))
		return 0;
	(void)snprintf(text, sizeof(text), "+%s", name);
	return file_write_at(dir, "cgroup.subtree_control", text);
}

static int enable_at_parent(const struct cgroup_tree *tree, const char *name)
{
	int r = enable_at(tree->parent, name);

	if (r == -EBUSY)
		r = move_aside(tree->parent, tree->owned);
	return r < 0 ? r : enable_at(tree->parent, name);
}

static uint32_t v1_kinds(const struct cgroups *groups)
{
	uint32_t kinds = 0;

	for (size_t i = 0; i < groups->count; i++)
		if (!groups->trees[i].v2)
			kinds |= groups->trees[i].kinds;
	return kinds;
}

/* Tenants have groups of their own where the CPU is limited. */
static bool can_limit_io(const struct cgroup_tree *tree)
{
	return (tree->kinds & CGROUP_BIT(CGROUP_CPU)) &&
	       faccessat(tree->dir, io_limits_file(true), F_OK, 0) == 0;
}

static void enable_v2(struct cgroup_tree *tree, uint32_t elsewhere)
{
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++) {
		const char *name = controllers[i].name;

		if ((elsewhere & CGROUP_BIT(controllers[i].kind)) ||
		    !has_controller(tree->parent, "cgroup.controllers", name))
			continue;
		if (enable_at_parent(tree, name) >= 0 && enable_at(tree->home, name) >= 0 &&
		    enable_at(tree->dir, name) >= 0)
			tree->kinds |= CGROUP_BIT(controllers[i].kind);
	}
	if (!can_limit_io(tree))
		tree->kinds &= ~CGROUP_BIT(CGROUP_IO);
}

int cgroup_pass_on(const struct cgroup_tree *tree, int dir)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(controllers) && tree->v2 && r >= 0; i++)
		if (controllers[i].kind != CGROUP_IO &&
		    (tree->kinds & CGROUP_BIT(controllers[i].kind)))
			r = enable_at(dir, controllers[i].name);
	return r < 0 ? r : 0;
}

static enum engine_cgroup kind_of(const struct cgroups *groups)
{
	bool v1 = false, v2 = false;

	for (size_t i = 0; i < groups->count; i++) {
		v1 = v1 || (!groups->trees[i].v2 && (groups->trees[i].kinds & CONTROLLERS));
		v2 = v2 || groups->trees[i].v2;
	}
	if (groups->layers == 0)
		return ENGINE_CGROUP_NONE;
	if (v1 && v2)
		return ENGINE_CGROUP_HYBRID;
	return v1 ? ENGINE_CGROUP_V1 : ENGINE_CGROUP_V2;
}

static void find_kill_and_freeze(struct cgroups *groups)
{
	for (size_t i = 0; i < groups->count; i++) {
		struct cgroup_tree *tree = &groups->trees[i];

		if (tree->v2 && faccessat(tree->dir, "cgroup.kill", F_OK, 0) == 0)
			groups->kill_tree = (int)i;
		if (tree->kinds & (CGROUP_BIT(CGROUP_UNIFIED) | CGROUP_BIT(CGROUP_FREEZER)))
			groups->freeze_tree = (int)i;
		groups->has_v1 = groups->has_v1 || !tree->v2;
		tree->optional = groups_find_files(tree);
	}
}

/* On v1 all boxes are one entity beside every single process at the root of the hierarchy: the
 * daemon, its clients, whatever else the host runs. On each core they weigh as much as
 * HOME_PROCESSES of those; daemon and engine weigh more. With four, programs that sleep now and
 * then delayed the daemon by 100 ms. On v2 they are a group beside the daemon's, which is fair. A
 * weight is not a limit: boxes run without it too. */
static void weigh_home(const struct cgroup_tree *tree)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	long shares = PROCESS_SHARES * HOME_PROCESSES * (cores > 0 ? cores : 1);
	char text[24]; /* any long: gcc's sanitizers lose sight of the range */

	(void)snprintf(text, sizeof(text), "%ld",
	               shares < CPU_SHARES_MAX ? shares : CPU_SHARES_MAX);
	if (file_write_at(tree->home, "cpu.shares", text) < 0)
		log_warn("could not set cpu.shares: all boxes together weigh as one process");
}

void cgroups_enable(struct cgroups *groups)
{
	uint32_t kinds = v1_kinds(groups);

	for (size_t i = 0; i < groups->count; i++)
		if (groups->trees[i].v2) {
			enable_v2(&groups->trees[i],
			          kinds | (groups->wants_io ? 0 : CGROUP_BIT(CGROUP_IO)));
			kinds |= groups->trees[i].kinds;
		}
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
		if (kinds & CGROUP_BIT(controllers[i].kind))
			groups->layers |= LAYER_BIT(controllers[i].layer);
	groups->kind = kind_of(groups);
	if (groups->kind == ENGINE_CGROUP_NONE)
		cgroups_close(groups);
	for (size_t i = 0; i < groups->count; i++)
		if (!groups->trees[i].v2 && (groups->trees[i].kinds & CGROUP_BIT(CGROUP_CPU)))
			weigh_home(&groups->trees[i]);
	find_kill_and_freeze(groups);
}

/* Limits of the instance's own group stay root's. The group keeps root's gid, with write access:
 * the guard removes what a killed engine left. */
static int delegate_tree(const struct cgroup_tree *tree, uid_t owner)
{
	static const char *const files[] = {"tasks", "cgroup.procs", "cgroup.threads",
	                                    "cgroup.subtree_control"};

	/* No other user may search the directory above: the engine holds a descriptor beneath it.
	 */
	if (fchmod(tree->home, 0700) < 0 || fchown(tree->dir, owner, (gid_t)-1) < 0 ||
	    fchmod(tree->dir, 0775) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (fchownat(tree->dir, files[i], owner, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0 &&
		    errno != ENOENT)
			return -errno;
	return 0;
}

int cgroups_delegate(const struct cgroups *groups, uint32_t owner, int *ret_group)
{
	int r = 0;

	*ret_group = -1;
	for (size_t i = 0; i < groups->count && r >= 0; i++) {
		r = delegate_tree(&groups->trees[i], owner);
		if (r >= 0 && groups->trees[i].v2)
			r = *ret_group = make_dir_at(groups->trees[i].dir, ENGINE_NAME);
	}
	return r < 0 ? r : 0;
}

void cgroups_close(struct cgroups *groups)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "%u", groups->instance);
	for (size_t i = 0; i < groups->count; i++) {
		struct cgroup_tree *tree = &groups->trees[i];

		/* If it is not empty, another engine uses it, or the next start sweeps it. */
		if (tree->dir >= 0)
			(void)unlinkat(tree->home, name, AT_REMOVEDIR);
		(void)unlinkat(tree->parent, HOME_NAME, AT_REMOVEDIR);
		tree->dir = fd_close(tree->dir);
		tree->home = fd_close(tree->home);
		tree->parent = fd_close(tree->parent);
		groups->import[i] = fd_close(groups->import[i]);
	}
	groups->count = 0;
}

static void probe_mount(const struct cgroup_mount *mount, bool privileged, const char *name,
                        const char *file, struct cgroup_report *ret_report)
{
	char own[CGROUP_PATH_MAX], path[2 * CGROUP_PATH_MAX];
	cleanup_close int dir = -1;
	const char *lack = "";

	choose_parent(mount, privileged, own);
	if (str_format(path, sizeof(path), "%s%s", mount->point, own) < 0)
		return;
	dir = open_group(mount, path);
	if (dir < 0)
		lack = dir == -ENODEV ? ": covered by another mount" : ": not readable";
	else if (faccessat(dir, ".", W_OK, 0) < 0)
		lack = ": not delegated to this user";
	else if (mount->v2 && name && !has_controller(dir, "cgroup.controllers", name))
		lack = ": the controller is missing";
	else if (mount->v2 && name && faccessat(dir, "cgroup.subtree_control", W_OK, 0) < 0)
		lack = ": controllers cannot be enabled";
	/* The root of a hierarchy has no such files. */
	else if (file && own[0] && faccessat(dir, file, F_OK, 0) < 0)
		lack = ": the kernel is too old";
	ret_report->usable = !*lack;
	(void)snprintf(ret_report->text, sizeof(ret_report->text), "v%d at %.120s%s",
	               mount->v2 ? 2 : 1, path, lack);
}

void cgroups_probe(bool privileged, struct cgroup_report ret_reports[CGROUP_KIND_COUNT])
{
	struct cgroup_layout layout = {0};
	struct error err = {0};
	uint32_t on_v1 = 0;

	for (int kind = 0; kind < CGROUP_KIND_COUNT; kind++)
		ret_reports[kind] = (struct cgroup_report){.text = "not mounted"};
	if (read_layout(&layout, &err) < 0)
		return;
	for (size_t i = 0; i < layout.count; i++)
		on_v1 |= layout.mounts[i].v2 ? 0 : layout.mounts[i].kinds;
	for (size_t i = 0; i < layout.count; i++) {
		const struct cgroup_mount *mount = &layout.mounts[i];
		/* A controller is on v1 or v2, never on both. */
		uint32_t kinds =
			mount->v2 ? (CONTROLLERS | CGROUP_BIT(CGROUP_IO)) & ~on_v1 : mount->kinds;

		for (size_t c = 0; c < ARRAY_SIZE(controllers); c++)
			if (kinds & CGROUP_BIT(controllers[c].kind))
				probe_mount(mount, privileged, controllers[c].name, NULL,
				            &ret_reports[controllers[c].kind]);
		if (mount->v2)
			probe_mount(mount, privileged, NULL, "cgroup.kill",
			            &ret_reports[CGROUP_UNIFIED]);
	}
}
