/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/roots.h"

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
#include "wire/system_dirs.h"

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
 * The engine binds the root to a fixed place before it clones the child, which inherits that mount.
 * The child mounts the layers, in the box's user namespace: overlayfs acts with the credentials of
 * who mounted it, and these have no power outside the box. Copy-up needs the right to chown to the
 * owner of a file, so that owner is mapped in the box, as an id that no process has. With
 * subordinate ids it would be the user who started the engine, who is not mapped: then there is no
 * upper layer and the root is read-only.
 *
 * All names are relative: /proc/self/mounts of the box shows them.
 *
 * Attack: the content of the root (an image) is hostile. So names are resolved beneath the
 * directory and through no link, and the root is passed to the kernel by descriptor. Links inside
 * are followed only after the pivot.
 */

#define LOCKED (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
/* For the layers themselves. */
#define AREA_INODES 16

/* Parents first. */
static const struct {
	const char *path;
	unsigned mode;
} dirs[] = {
	{"dev", 0755},
	{"etc", 0755},
	{"opt", 0755},
	{"opt/millibox", 0755},
	{"proc", 0555},
	{"run", 0755},
	{"run/millibox", 0755},
	{"sys", 0555},
	{"tmp", 0777},
	{"var", 0777},
	{"workspace", 0755},
	{"opt/millibox/runners", 0755},
	{"opt/millibox/packages", 0755},
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

static int give_to(int at, const char *path, uint32_t owner)
{
	return fchownat(at, path, owner, owner, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int build_skeleton(int skeleton, uint32_t owner)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(dirs) && r >= 0; i++) {
		r = make_dir(skeleton, dirs[i].path, dirs[i].mode);
		if (r >= 0)
			r = give_to(skeleton, dirs[i].path, owner);
	}
	for (size_t i = 0; i < ARRAY_SIZE(files) && r >= 0; i++) {
		r = file_create_at(skeleton, files[i].path, 0644, files[i].text,
		                   strlen(files[i].text));
		if (r >= 0)
			r = give_to(skeleton, files[i].path, owner);
	}
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

int roots_build(int stage, const struct ids *ids, const struct bases *bases, struct error *err)
{
	static const char *const names[] = {&ROOT_BASES[1], &ROOT_SKELETON[1], &ROOT_LOWER[1],
	                                    &ROOT_AREA[1],  &ROOT_LAYERED[1],  &ROOT_PACKAGES[1]};
	cleanup_close int skeleton = -1;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && r >= 0; i++)
		r = make_dir(stage, names[i], 0755);
	if (r >= 0)
		r = skeleton = fd_open_at(stage, &ROOT_SKELETON[1], O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0)
		r = build_skeleton(skeleton, ids_of_images(ids));
	for (size_t i = 0; i < bases->count && r >= 0; i++)
		r = bind_base(stage, bases, i);
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "roots of boxes");
	return 0;
}

struct layers {
	uint64_t bytes;
	uint32_t inodes;
	uint32_t owner; /* of the workspace */
	bool is_writable;
};

static int make_area(const struct layers *l)
{
	char options[96];
	int r = str_format(options, sizeof(options), "size=%llu,nr_inodes=%u,mode=755",
	                   (unsigned long long)l->bytes, l->inodes + AREA_INODES);

	if (r < 0)
		return r;
	if (mount("tmpfs", ROOT_AREA, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return -errno;
	r = make_dir(AT_FDCWD, ROOT_AREA "/upper", 0755);
	if (r >= 0)
		r = make_dir(AT_FDCWD, ROOT_AREA "/work", 0700);
	if (r >= 0)
		r = make_dir(AT_FDCWD, ROOT_AREA "/workspace", 0755);
	return r < 0 ? r : give_to(AT_FDCWD, ROOT_AREA "/workspace", l->owner);
}

/*
 * overlayfs in a user namespace uses xattrs user.*. A tmpfs before Linux 6.6 has none: there, a
 * removed directory of the root cannot be created again.
 */
static int mount_layers(const struct layers *l)
{
	const char *options = "lowerdir=skeleton:lower";

	if (l->is_writable)
		options = "lowerdir=skeleton:lower,upperdir=area/upper,workdir=area/work,"
			  "userxattr";
	if (chdir("/") < 0 ||
	    mount("overlay", ROOT_LAYERED, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		return -errno;
	return 0;
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

static int bind_to(const char *place, int root)
{
	char source[32];

	(void)snprintf(source, sizeof(source), "/proc/self/fd/%d", root);
	return mount(source, place, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

int step_layers(struct build *b, struct error *err)
{
	cleanup_close int root = open_root(b->host->bases_count, b->root_name);
	int r = root < 0 ? root : bind_to(ROOT_LOWER, root);

	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "root '%s'", b->root_name) : 0;
}

int step_packages(struct build *b, struct error *err)
{
	cleanup_close int root = open_root(b->host->bases_count, b->packages);
	int r = root < 0 ? root : bind_to(ROOT_PACKAGES, root);

	if (r >= 0)
		return 0;
	roots_unmount(b->plan.flags & ENGINE_FLAG_IMAGE); /* no clone follows */
	return error_set(err, ERR_BOX_FAILED, -r, "packages '%s'", b->packages);
}

void roots_unmount(uint32_t flags)
{
	if (flags & ENGINE_FLAG_IMAGE)
		(void)umount2(ROOT_LOWER, MNT_DETACH);
	if (flags & ENGINE_FLAG_PACKAGES)
		(void)umount2(ROOT_PACKAGES, MNT_DETACH);
}

int roots_mount(const struct build *b, struct error *err)
{
	const struct layers layers = {
		.bytes = b->plan.limits.workspace_bytes,
		.inodes = b->plan.limits.workspace_inodes,
		.owner = ids_inside(b->host, BOX_PAYLOAD_ID),
		.is_writable = b->host->ids.mode != ENGINE_IDS_SUBID,
	};
	int r = make_area(&layers);

	if (r >= 0)
		r = mount_layers(&layers);
	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "layers over the root") : 0;
}

/* A link leads to another of these directories, or to nothing that the loader uses. */
int roots_protect(int root, struct error *err)
{
	static const char *const names[] = {SYSTEM_DIRS};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct stat st;
		int r = fstatat(root, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;

		if (r == -ENOENT || (r == 0 && !S_ISDIR(st.st_mode)))
			continue;
		if (r >= 0)
			r = mount_bind(names[i], LOCKED, false, root, names[i]);
		if (r < 0)
			return error_set(err, ERR_BOX_FAILED, -r, "protect /%s", names[i]);
	}
	return 0;
}

bool roots_work(void)
{
	cleanup_close int lower = fd_open(ROOT_MASK_DIR, O_PATH | O_DIRECTORY, 0);
	const struct layers layers = {
		.bytes = 1024 * 1024,
		.inodes = AREA_INODES,
		.is_writable = true,
	};
	int r = lower < 0 ? lower : bind_to(ROOT_LOWER, lower);

	if (r >= 0)
		r = make_area(&layers);
	if (r >= 0)
		r = mount_layers(&layers);
	(void)umount2(ROOT_LAYERED, MNT_DETACH);
	(void)umount2(ROOT_AREA, MNT_DETACH);
	roots_unmount(ENGINE_FLAG_IMAGE);
	if (r < 0)
		log_debug("overlayfs: %s", strerror(-r));
	return r >= 0;
}
