/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/root_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "engine/etc_files.h"
#include "remote/remote.h"
#include "remote/root_tar.h"

/* Agent and runners are mounted here: no name of an image may lead elsewhere. */
#define OURS "opt/millibox/"

/* Parents first. */
static const struct root_name names[] = {
	{TAR_DIR, 0755, "dev/", NULL},
	{TAR_DIR, 0755, "etc/", NULL},
	{TAR_DIR, 0755, "opt/", NULL},
	{TAR_DIR, 0755, "opt/millibox/", NULL},
	{TAR_DIR, 0755, "opt/millibox/packages/", NULL},
	{TAR_DIR, 0755, "opt/millibox/runners/", NULL},
	{TAR_DIR, 0755, "proc/", NULL},
	{TAR_DIR, 0755, "run/", NULL},
	{TAR_DIR, 0755, "run/millibox/", NULL},
	{TAR_DIR, 0755, "sys/", NULL},
	{TAR_DIR, 01777, "tmp/", NULL},
	{TAR_DIR, 0755, "workspace/", NULL},
	{TAR_FILE, 0755, OURS "agent", ""},
	{TAR_FILE, 0644, "etc/hostname", ETC_HOSTNAME},
	{TAR_FILE, 0644, "etc/hosts", ETC_HOSTS},
	{TAR_FILE, 0644, "etc/resolv.conf", ""},
};

static const struct root_name host_names[] = {
	{TAR_DIR, 0755, "etc/fonts/", NULL},
	{TAR_DIR, 0755, "etc/ssl/", NULL},
	{TAR_DIR, 0755, "usr/", NULL},
	{TAR_DIR, 0755, "var/", NULL},
	{TAR_FILE, 0644, "etc/ld.so.cache", ""},
	{TAR_FILE, 0644, "etc/nsswitch.conf",
         "passwd: files\ngroup: files\nhosts: files\nservices: files\n"},
	/* The box is the environment: its user may install into its own site directory. */
	{TAR_FILE, 0644, "etc/pip.conf",
         "[global]\nbreak-system-packages = true\nno-cache-dir = true\nretries = 0\n"
         "disable-pip-version-check = true\n"},
	{TAR_FILE, 0644, "etc/fonts/fonts.conf",
         "<?xml version=\"1.0\"?>\n<fontconfig><dir>/usr/share/fonts</dir>"
         "<cachedir>/tmp/fontconfig</cachedir></fontconfig>\n"},
	{TAR_SYMLINK, 0777, "etc/mtab", "/proc/mounts"},
	{TAR_SYMLINK, 0777, "var/tmp", "../tmp"},
};

/* Links into /usr on merged systems, else directories. */
static const char *const system_dirs[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

/* Each may be missing. */
static const char *const host_paths[] = {
	"/usr",
	"/etc/alternatives",
	"/etc/ssl/certs",
	"/etc/R",
	"/etc/java-11-openjdk",
	"/etc/java-17-openjdk",
	"/etc/java-21-openjdk",
	"/etc/java-25-openjdk",
	"/etc/mono",
	"/etc/ld.so.cache",
};

static int add_all(struct buf *b, const struct root_name *list, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r >= 0; i++)
		r = root_tar_add(b, &list[i]);
	return r;
}

static int add_link(struct buf *b, const char *path)
{
	char target[256];
	ssize_t len = readlink(path, target, sizeof(target) - 1);

	if (len < 0)
		return errno == EINVAL || errno == ENOENT ? 0 : -errno;
	target[len] = '\0';
	return root_tar_add(b, &(struct root_name){TAR_SYMLINK, 0777, path + 1, target});
}

/* Every box has an id of its own, and all of them are the same user to programs. */
static int add_users(struct buf *b, uint32_t first_uid)
{
	cleanup_buf struct buf passwd = BUF_INIT(ROOT_NAMES_MAX / 2);
	cleanup_buf struct buf group = BUF_INIT(ROOT_NAMES_MAX / 2);
	int r = buf_add_str(&passwd, "root:x:0:0:root:/:/usr/sbin/nologin\n");

	if (r >= 0)
		r = buf_add_str(&group, "root:x:0:\n");
	for (uint32_t i = 0; i < REMOTE_BOXES_MAX && r >= 0; i++) {
		r = buf_addf(&passwd, "user:x:%u:%u:user:/workspace:/bin/sh\n", first_uid + i,
		             first_uid + i);
		if (r >= 0)
			r = buf_addf(&group, "user:x:%u:\n", first_uid + i);
	}
	if (r >= 0)
		r = root_tar_add(b, &(struct root_name){TAR_FILE, 0644, "etc/passwd", passwd.data});
	if (r >= 0)
		r = root_tar_add(b, &(struct root_name){TAR_FILE, 0644, "etc/group", group.data});
	return r;
}

/* A directory has a slash at its end. */
static bool is_name(const struct root_name *row, const char *path)
{
	size_t len = strlen(path);

	return strncmp(row->name, path, len) == 0 &&
	       (row->name[len] == '\0' || str_equal(row->name + len, "/"));
}

bool root_names_has(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (is_name(&names[i], path))
			return true;
	return str_has_prefix(path, OURS) || str_equal(path, "etc/passwd") ||
	       str_equal(path, "etc/group");
}

int root_names(struct buf *b, uint32_t first_uid, bool is_host)
{
	int r = add_all(b, names, ARRAY_SIZE(names));

	if (r >= 0)
		r = add_users(b, first_uid);
	if (r >= 0 && is_host)
		r = add_all(b, host_names, ARRAY_SIZE(host_names));
	for (size_t i = 0; i < ARRAY_SIZE(system_dirs) && is_host && r >= 0; i++)
		r = add_link(b, system_dirs[i]);
	return r;
}

void root_host_dirs(void (*add)(void *ctx, const char *path), void *ctx)
{
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(host_paths); i++)
		if (stat(host_paths[i], &st) == 0)
			add(ctx, host_paths[i]);
	for (size_t i = 0; i < ARRAY_SIZE(system_dirs); i++)
		if (lstat(system_dirs[i], &st) == 0 && S_ISDIR(st.st_mode))
			add(ctx, system_dirs[i]);
}
