/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

#include "base/fd.h"

static int configure_fs(int fs, const char *type, const struct mount_option *options)
{
	if (fsconfig(fs, FSCONFIG_SET_STRING, "source", type, 0) < 0)
		return -errno;
	for (; options && options->key; options++)
		if (fsconfig(fs, FSCONFIG_SET_STRING, options->key, options->value, 0) < 0)
			return -errno;
	return fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? -errno : 0;
}

int mount_new(const char *type, const struct mount_option *options, unsigned attrs, int dir,
              const char *path)
{
	cleanup_close int fs = fsopen(type, FSOPEN_CLOEXEC);
	cleanup_close int fd = -1;
	int r = fs < 0 ? -errno : configure_fs(fs, type, options);

	if (r < 0)
		return r;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, attrs);
	if (fd < 0 || move_mount(fd, "", dir, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int mount_bind(const char *source, unsigned attrs, unsigned recursive, int dir, const char *path)
{
	unsigned deep = recursive ? AT_RECURSIVE : 0;
	cleanup_close int fd =
		open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | deep);
	struct mount_attr attr = {.attr_set = attrs};

	if (fd < 0)
		return -errno;
	/* A bind remount would change only the top mount. */
	if (attrs && mount_setattr(fd, "", AT_EMPTY_PATH | deep, &attr, sizeof(attr)) < 0)
		return -errno;
	if (move_mount(fd, "", dir, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}
