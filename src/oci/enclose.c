/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/mount.h"
#include "oci/runtimes.h"
#include "wire/container.h"
#include "wire/reattach.h"

/*
 * Theory of operation. What a runtime sees instead of the host: its libraries, a few devices, a
 * /proc of the box's outer pid namespace, and the finished root of the box. The part that all boxes
 * share is built once (enclose_build); each box clones it and adds its own (step_enclose):
 *
 *   /usr, /lib, ...   of the host, read-only; a static program needs none of them
 *   /run/root         the root of the box, made by the steps before this one
 *   /run/bundle       config.json
 *   /run/state        what the runtime notes
 *   /mask             an empty file and directory, to cover names of /proc
 *
 * All of it disappears with the mount namespace of the box: no runtime is asked to delete anything.
 */

#define LOCKED     (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define RUN_LIMITS "size=8m,nr_inodes=1024,mode=755"
#define TMP_LIMITS "size=8m,nr_inodes=1024,mode=700"

#define BOOT_ID PLACE_ROOT "/" PROC_BOOT_ID

/* Parents first. */
static const char *const dirs[] = {
	"dev", "etc",    "mask",          "mask/dir", "proc", "run",
	"sys", "sys/fs", "sys/fs/cgroup", "tmp",      "usr",
};
/* In the template: directories to bind, or links on merged systems. */
static const char *const parts[] = {
	"usr", "etc", "bin", "sbin", "lib", "lib32", "lib64", "libx32",
};

static int add_part(int template, int outside, const char *name)
{
	char source[64], target[256];
	ssize_t len;
	struct stat st;
	int r;

	if (fstatat(template, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode)) {
		len = readlinkat(template, name, target, sizeof(target) - 1);
		if (len < 0)
			return -errno;
		target[len] = '\0';
		return symlinkat(target, outside, name) < 0 ? -errno : 0;
	}
	if (mkdirat(outside, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	r = str_format(source, sizeof(source), ROOT_STAGE ROOT_TEMPLATE "/%s", name);
	return r < 0 ? r : mount_bind(source, LOCKED, true, outside, name);
}

static int build_outside(int stage)
{
	static const struct mount_option options[] = {{"mode", "755"}, {NULL, NULL}};
	const struct mount_attr lock = {.attr_set = LOCKED};
	cleanup_close int template = -1, outside = -1;
	int r = mkdirat(stage, &ROOT_OUTSIDE[1], 0755) < 0 ||
	                        mkdirat(stage, &ROOT_ENCLOSE[1], 0755) < 0
	                ? -errno
	                : 0;

	if (r >= 0)
		r = template = fd_open_at(stage, &ROOT_TEMPLATE[1], O_PATH | O_DIRECTORY, 0);
	if (r >= 0)
		r = outside = mount_new("tmpfs", options, LOCKED & ~MOUNT_ATTR_RDONLY, stage,
		                        &ROOT_OUTSIDE[1]);
	for (size_t i = 0; i < ARRAY_SIZE(dirs) && r >= 0; i++)
		r = mkdirat(outside, dirs[i], 0755) < 0 ? -errno : 0;
	if (r >= 0)
		r = file_create_at(outside, "mask/file", 0444, "", 0);
	for (size_t i = 0; i < ARRAY_SIZE(parts) && r >= 0; i++)
		r = add_part(template, outside, parts[i]);
	/* Its devices are mounts of their own, without nodev. */
	if (r >= 0)
		r = mount_bind(ROOT_STAGE ROOT_TEMPLATE "/dev", 0, true, outside, "dev");
	if (r >= 0 &&
	    mount_setattr(outside, "", AT_EMPTY_PATH, (struct mount_attr *)&lock, sizeof(lock)) < 0)
		r = -errno;
	return r;
}

int enclose_build(struct host *host attr_unused, struct error *err)
{
	cleanup_close int stage = fd_open(ROOT_STAGE, O_RDONLY | O_DIRECTORY, 0);
	int r = stage < 0 ? stage : build_outside(stage);

	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "surroundings of the runtime") : 0;
}

/* In the engine. */

static int write_description(struct build *b)
{
	const struct runtime_row *row = runtime_row_of(b->host);
	cleanup_buf struct buf text = BUF_INIT(SPEC_MAX);
	const char *agent[6] = {SPEC_AGENT_PATH};
	char lacks[32];
	size_t count = 1;
	struct spec spec = {
		.agent = agent,
		.masks = b->host->masks,
		.mask_count = b->host->mask_count,
		.is_single = b->host->ids.mode == ENGINE_IDS_SINGLE,
		.is_guest = row->runtime.grade == ENGINE_GRADE_GVISOR,
	};
	int r = str_format(lacks, sizeof(lacks), CONTAINER_LACKS "%u", row->runtime.lacks);

	if (b->plan.flags & ENGINE_FLAG_KEEP)
		agent[count++] = REATTACH_ARG;
	agent[count++] = row->by_stdio ? CONTAINER_STDIO_WORD : CONTAINER_WORD;
	agent[count++] = lacks;
	if (r >= 0)
		r = row->describe(&spec, &text);
	if (r >= 0)
		r = b->description = fd_memfd("millibox-description", 0);
	if (r >= 0)
		r = fd_write_all(b->description, text.data, text.len);
	return r >= 0 && lseek(b->description, 0, SEEK_SET) < 0 ? -errno : r;
}

int step_describe(struct build *b, struct error *err)
{
	int r = write_description(b);

	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "describe the box") : 0;
}

/* In the child. */

/* runc looks there for the version of cgroups. It sees the group of the box, which it cannot
 * change. Without it some runtimes fail and say why. */
static void mount_group(void)
{
	if (mount("cgroup2", "sys/fs/cgroup", "cgroup2",
	          MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		(void)mount("tmpfs", "sys/fs/cgroup", "tmpfs",
		            MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=755");
}

static int mount_own_parts(int box)
{
	static const char *const made[] = {&PLACE_ROOT[1], &PLACE_BUNDLE[1], &PLACE_STATE[1]};
	const unsigned long flags = MS_NOSUID | MS_NODEV;

	if (mount("proc", "proc", "proc", flags | MS_NOEXEC, NULL) < 0 ||
	    mount("tmpfs", "run", "tmpfs", flags, RUN_LIMITS) < 0 ||
	    mount("tmpfs", "tmp", "tmpfs", flags, TMP_LIMITS) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		if (mkdir(made[i], 0755) < 0)
			return -errno;
	mount_group();
	return move_mount(box, "", AT_FDCWD, &PLACE_ROOT[1], MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno
	                                                                                  : 0;
}

static int write_bundle(int description, const char *name)
{
	char path[64], text[4096];
	cleanup_close int to = -1;
	int r = str_format(path, sizeof(path), "%s/%s", &PLACE_BUNDLE[1], name);
	ssize_t n = 0;

	if (r >= 0)
		r = to = fd_open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	while (r >= 0 && (n = fd_read_all(description, text, sizeof(text))) > 0)
		r = fd_write_all(to, text, (size_t)n);
	return r >= 0 && n < 0 ? (int)n : r;
}

int step_enclose(struct build *b, struct error *err)
{
	const struct runtime_row *row = runtime_row_of(b->host);
	int outside = open_tree(AT_FDCWD, ROOT_OUTSIDE,
	                        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	int box = b->root, r = 0;

	if (outside < 0 ||
	    move_mount(outside, "", AT_FDCWD, ROOT_ENCLOSE, MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
	    fchdir(outside) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "surroundings of the runtime");
	r = mount_own_parts(box);
	if (r >= 0)
		r = proc_make_boot_id(&BOOT_ID[1]);
	if (r >= 0 && row->bundle_file)
		r = write_bundle(b->description, row->bundle_file);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "surroundings of the runtime");
	(void)fd_close(box);
	b->root = outside; /* what step_pivot enters */
	return 0;
}
