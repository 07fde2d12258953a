/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/etc_files.h"
#include "engine/mount.h"

/*
 * Theory of operation. A box may use a root other than the host's: a subdirectory of a directory
 * that the operator named with --roots. It has three layers:
 *
 *   upper     a directory on the box's own tmpfs, whose size is the box's disk limit; the workspace
 *             is another directory on the same tmpfs
 *   skeleton  the names that every box needs; made once, read-only
 *   lower     the named root, read-only
 *
 * The skeleton is above the named root: whatever that has at a mount point (a link, a file,
 * nothing), the box finds a directory.
 *
 * The engine mounts the layers, not the box: files of a root belong to ids that are not mapped in
 * the box, and copy-up needs the right to chown to them. The layers are mounted in the engine's
 * root only while the child is cloned, which inherits them with its mount namespace.
 *
 * Attack: the content of the root (an image) is hostile. So names are resolved beneath the
 * directory and through no link, and the root is passed to the kernel by descriptor. Links inside
 * are followed only after the pivot.
 */

#define LOCKED (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
/* For the layers themselves. */
#define AREA_INODES 16

/* Parents first. The payload may write here: the box's own copy. */
static const struct {
	const char *path;
	unsigned mode;
} dirs[] = {
	{"dev", 0755},  {"etc", 0777}, {"opt", 0777},          {"opt/millibox", 0755},
	{"proc", 0555}, {"run", 0777}, {"run/millibox", 0755}, {"sys", 0555},
	{"tmp", 0777},  {"var", 0777}, {"workspace", 0755},    {"opt/millibox/runners", 0755},
};

static const struct {
	const char *path;
	const char *text;
} files[] = {
	{"etc/passwd", ETC_PASSWD},     {"etc/group", ETC_GROUP},     {"etc/hosts", ETC_HOSTS},
	{"etc/hostname", ETC_HOSTNAME}, {"opt/millibox/layered", ""}, {"etc/resolv.conf", ""},
};

int bases_open(const char *const *paths, size_t count, struct bases *ret_bases, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		int fd = fd_open(paths[i], O_PATH | O_DIRECTORY, 0);

		if (fd < 0)
			return error_set(err, ERR_UNAVAILABLE, -fd, "--roots '%s'", paths[i]);
		ret_bases->fds[ret_bases->count++] = fd;
	}
	return 0;
}

void bases_close(struct bases *bases)
{
	while (bases->count > 0)
		(void)fd_close(bases->fds[--bases->count]);
}

static int make_dir(int at, const char *path, unsigned mode)
{
	if (mkdirat(at, path, mode) < 0 || fchmodat(at, path, mode, 0) < 0)
		return -errno;
	return 0;
}

static int build_skeleton(int skeleton)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(dirs) && r >= 0; i++)
		r = make_dir(skeleton, dirs[i].path, dirs[i].mode);
	for (size_t i = 0; i < ARRAY_SIZE(files) && r >= 0; i++)
		r = file_create_at(skeleton, files[i].path, 0644, files[i].text,
		                   strlen(files[i].text));
	return r;
}

static int bind_base(int stage, const struct bases *bases, size_t i)
{
	char source[32], path[32];

	(void)snprintf(source, sizeof(source), "/proc/self/fd/%d", bases->fds[i]);
	(void)snprintf(path, sizeof(path), "%s/%zu", &ROOT_BASES[1], i);
	if (mkdirat(stage, path, 0755) < 0)
		return -errno;
	return mount_bind(source, LOCKED, true, stage, path);
}

int roots_build(int stage, const struct bases *bases, struct error *err)
{
	static const char *const names[] = {&ROOT_BASES[1], &ROOT_SKELETON[1], &ROOT_AREA[1],
	                                    &ROOT_LAYERED[1]};
	cleanup_close int skeleton = -1;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && r >= 0; i++)
		r = make_dir(stage, names[i], 0755);
	if (r >= 0)
		r = skeleton = fd_open_at(stage, &ROOT_SKELETON[1], O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0)
		r = build_skeleton(skeleton);
	for (size_t i = 0; i < bases->count && r >= 0; i++)
		r = bind_base(stage, bases, i);
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "roots of boxes");
	return 0;
}

struct layers {
	int lower;
	uint64_t bytes;
	uint32_t inodes;
	uint32_t owner; /* of the workspace, as the engine numbers it */
};

static int make_area(const struct layers *l)
{
	char options[96];
	struct stat st;
	int r = str_format(options, sizeof(options), "size=%llu,nr_inodes=%u,mode=755",
	                   (unsigned long long)l->bytes, l->inodes + AREA_INODES);

	if (r < 0)
		return r;
	if (fstat(l->lower, &st) < 0 ||
	    mount("tmpfs", ROOT_AREA, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return -errno;
	r = make_dir(AT_FDCWD, ROOT_AREA "/upper", st.st_mode & 0777);
	if (r >= 0)
		r = make_dir(AT_FDCWD, ROOT_AREA "/work", 0700);
	if (r >= 0)
		r = make_dir(AT_FDCWD, ROOT_AREA "/workspace", 0755);
	if (r >= 0 && chown(ROOT_AREA "/workspace", l->owner, l->owner) < 0)
		r = -errno;
	return r;
}

/*
 * overlayfs in a user namespace uses xattrs user.*. A tmpfs before Linux 6.6 has none: there, a
 * removed directory of the root cannot be created again.
 */
static int mount_layers(const struct layers *l)
{
	char options[192];
	int r = str_format(
		options, sizeof(options),
		"lowerdir=%s:/proc/self/fd/%d,upperdir=%s/upper,workdir=%s/work,userxattr",
		ROOT_SKELETON, l->lower, ROOT_AREA, ROOT_AREA);

	if (r >= 0 && mount("overlay", ROOT_LAYERED, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		r = -errno;
	return r;
}

void roots_unmount(void)
{
	(void)umount2(ROOT_LAYERED, MNT_DETACH);
	(void)umount2(ROOT_AREA, MNT_DETACH);
}

/* Return: descriptor of the first root with this name, or a negative errno. */
static int open_root(size_t bases, const char *name)
{
	int r = -ENOENT;

	for (size_t i = 0; i < bases && r == -ENOENT; i++) {
		cleanup_close int base = -1;
		char path[32];

		(void)snprintf(path, sizeof(path), ROOT_BASES "/%zu", i);
		r = base = fd_open(path, O_PATH | O_DIRECTORY, 0);
		if (r >= 0)
			r = fd_open_beneath(base, name, O_PATH | O_DIRECTORY, 0);
	}
	return r;
}

int step_layers(struct build *b, struct error *err)
{
	const struct host *host = b->host;
	cleanup_close int lower = open_root(host->bases_count, b->root_name);
	const struct layers layers = {
		.lower = lower,
		.bytes = b->plan.limits.workspace_bytes,
		.inodes = b->plan.limits.workspace_inodes,
		.owner = ids_payload(&host->ids, b->slot),
	};
	int r = lower;

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "no root '%s'", b->root_name);
	r = make_area(&layers);
	if (r >= 0)
		r = mount_layers(&layers);
	if (r < 0) {
		roots_unmount();
		return error_set(err, ERR_BOX_FAILED, -r, "layers over root '%s'", b->root_name);
	}
	return 0;
}

bool roots_work(void)
{
	cleanup_close int lower = fd_open(ROOT_MASK_DIR, O_PATH | O_DIRECTORY, 0);
	struct layers layers = {
		.lower = lower,
		.bytes = 1024 * 1024,
		.inodes = AREA_INODES,
	};
	int r = lower < 0 ? lower : make_area(&layers);

	if (r >= 0)
		r = mount_layers(&layers);
	roots_unmount();
	if (r < 0)
		log_debug("overlayfs: %s", strerror(-r));
	return r >= 0;
}
