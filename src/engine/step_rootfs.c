/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "engine/roots.h"

/*
 * The root of a box: a clone of the template (read-only, made once by template.c) with four small
 * writable filesystems; or layers over a named root (roots.c). The working directory is the clone's
 * root, entered by descriptor. Only the engine can write the mount points (template or skeleton),
 * so an attacker cannot replace them with links. So mount(2) is safe; it takes half the time of
 * fsopen() and fsmount().
 */

/* Charged to the box's memory like the others. */
#define RUN_BYTES  (8ULL * 1024 * 1024)
#define RUN_INODES 256
/* One more than programs with one: that of an ended program may still be open. */
#define TERMINALS_MAX 17

/* From the template, where both are already read-only. */
static int mount_devices_and_runners(struct error *err)
{
	if (mount(ROOT_TEMPLATE "/dev", "dev", NULL, MS_BIND | MS_REC, NULL) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "devices of the box");
	if (mount(ROOT_TEMPLATE "/opt/millibox/runners", "opt/millibox/runners", NULL, MS_BIND,
	          NULL) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "runners of the box");
	return 0;
}

static bool is_image(const struct build *b)
{
	return b->plan.flags & ENGINE_FLAG_IMAGE;
}

int step_root(struct build *b, struct error *err)
{
	if (is_image(b) && roots_mount(b, err) < 0)
		return -1;
	b->root = open_tree(AT_FDCWD, is_image(b) ? ROOT_LAYERED : ROOT_TEMPLATE,
	                    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (b->root < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "clone the template");
	if (move_mount(b->root, "", AT_FDCWD, ROOT_ATTACH, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "attach the root");
	if (fchdir(b->root) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "enter the root");
	if (is_image(b) && (roots_protect(b->root, err) < 0 || mount_devices_and_runners(err) < 0))
		return -1;
	/* After the system directories: it is a mount on one of them, read-only as its source. */
	if (b->plan.flags & ENGINE_FLAG_PACKAGES &&
	    mount(ROOT_PACKAGES, "opt/millibox/packages", NULL, MS_BIND, NULL) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "packages of the box");
	return 0;
}

struct area {
	const char *path;
	uint64_t bytes;
	uint32_t inodes;
	unsigned owner;
	const char *mode;
	unsigned long flags;
};

static int mount_area(const struct area *area, struct error *err)
{
	char options[128];
	int r = str_format(options, sizeof(options), "size=%llu,nr_inodes=%u,mode=%s,uid=%u,gid=%u",
	                   (unsigned long long)area->bytes, area->inodes, area->mode, area->owner,
	                   area->owner);

	if (r >= 0 && mount("tmpfs", area->path, "tmpfs", area->flags, options) < 0)
		r = -errno;
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "mount /%s", area->path);
	return 0;
}

int step_writable(struct build *b, struct error *err)
{
	const struct engine_limits *l = &b->plan.limits;
	const unsigned long data = MS_NOSUID | MS_NODEV;
	const unsigned long tmp = b->plan.flags & ENGINE_FLAG_EXEC_TMP ? 0 : MS_NOEXEC;
	const unsigned agent = ids_inside(b->host, BOX_AGENT_ID);
	const unsigned payload = ids_inside(b->host, BOX_PAYLOAD_ID);
	/* The workspace allows exec: compiled languages run their output there. */
	const struct area areas[] = {
		{"workspace", l->workspace_bytes, l->workspace_inodes, payload, "755", data},
		{"tmp", l->tmp_bytes, l->tmp_inodes, agent, "1777", data | tmp},
		{"dev/shm", l->shm_bytes, l->tmp_inodes, agent, "1777", data | MS_NOEXEC},
		{"run/millibox", RUN_BYTES, RUN_INODES, agent, "755", data | MS_NOEXEC},
	};

	/* With an image, the workspace shares a filesystem and its limit with the upper layer. */
	if (is_image(b) && mount(ROOT_AREA "/workspace", "workspace", NULL, MS_BIND, NULL) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "mount /workspace");
	for (size_t i = is_image(b) ? 1 : 0; i < ARRAY_SIZE(areas); i++)
		if (mount_area(&areas[i], err) < 0)
			return -1;
	return 0;
}

/*
 * Of its own: no terminal of the host or of another box is in it. The payload owns its ends, so
 * that it can open its terminal by name; ptmx, which makes terminals, is the agent's. The number is
 * bounded because the kernel has a limit for all of them.
 */
int step_terminals(struct build *b, struct error *err)
{
	const unsigned payload = ids_inside(b->host, BOX_PAYLOAD_ID);
	char options[96];
	int r = str_format(options, sizeof(options),
	                   "newinstance,ptmxmode=0600,mode=0600,uid=%u,gid=%u,max=%u", payload,
	                   payload, TERMINALS_MAX);

	if (r >= 0 &&
	    mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC | MS_NOATIME, options) < 0)
		r = -errno;
	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "mount /dev/pts") : 0;
}

int step_pivot(struct build *b, struct error *err)
{
	struct stat root, above;

	/* Both roots at the same mount point: the old one ends up on top and is unmounted. */
	if (fchdir(b->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "detach the old root");
	if (stat("/", &root) < 0 || stat("..", &above) < 0 || root.st_dev != above.st_dev ||
	    root.st_ino != above.st_ino)
		return error_set(err, ERR_BOX_FAILED, 0, "the root has a parent");
	return 0;
}
