/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "engine/etc_files.h"
#include "engine/mount.h"
#include "engine/roots.h"

/*
 * Theory of operation. At start the engine builds a tmpfs in its private mount namespace, its
 * future root. It contains only
 *
 *   /template   the root of most boxes, without what is private to a box; read-only
 *   /roots ...  for boxes on other roots, see roots.c
 *   /box        where a child attaches its clone
 *   /mask       an empty file and an empty directory, to cover names of /proc
 *   /proc       of the engine's pid namespace: no process of the host is in it
 *
 * Then it leaves the host's tree. A child of clone3 starts with a copy of these mounts only: no
 * path of the host is reachable while a box is built, and copying few mounts is fast.
 */

#define FILE_MAX_BYTES ((size_t)8 * 1024 * 1024)
#define AGENT_MAX      ((size_t)16 * 1024 * 1024)
#define RUNNERS_DEPTH  6
#define RUNNERS_FILES  512
#define RESOLVERS_MAX  4096

#define LOCKED (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* Parents first. */
static const char *const dirs[] = {
	"dev",
	"dev/pts",
	"dev/shm",
	"etc",
	"etc/fonts",
	"etc/ssl",
	"opt",
	"opt/millibox",
	"opt/millibox/runners",
	"proc",
	"run",
	"run/millibox",
	"tmp",
	"opt/millibox/packages",
	"usr",
	"var",
	"workspace",
};

static const struct {
	const char *path;
	const char *text;
} files[] = {
	{"etc/passwd", ETC_PASSWD},
	{"etc/group", ETC_GROUP},
	{"etc/hosts", ETC_HOSTS},
	{"etc/hostname", ETC_HOSTNAME},
	{"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\n"},
	{"etc/resolv.conf", ""},
	/* The box is the environment: its user may install into its own site directory. */
	{"etc/pip.conf",
         "[global]\nbreak-system-packages = true\nno-cache-dir = true\nretries = 0\n"
         "disable-pip-version-check = true\n"},
	{"etc/fonts/fonts.conf", "<?xml version=\"1.0\"?>\n<fontconfig><dir>/usr/share/fonts</dir>"
                                 "<cachedir>/tmp/fontconfig</cachedir></fontconfig>\n"},
};

static const struct {
	const char *path;
	const char *target;
} links[] = {
	{"dev/fd", "/proc/self/fd"},
	{"dev/stdin", "/proc/self/fd/0"},
	{"dev/stdout", "/proc/self/fd/1"},
	{"dev/stderr", "/proc/self/fd/2"},
	{"var/tmp", "../tmp"},
	{"etc/mtab", "/proc/mounts"},
};

static const struct {
	const char *name;
	unsigned major, minor;
} nodes[] = {
	{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
	{"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0},
};

/* Links into /usr on merged systems, else directories. */
static const char *const system_dirs[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

static int make_names(int root, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(dirs) && r >= 0; i++)
		r = mkdirat(root, dirs[i], 0755) < 0 ? -errno : 0;
	for (size_t i = 0; i < ARRAY_SIZE(files) && r >= 0; i++)
		r = file_create_at(root, files[i].path, 0644, files[i].text, strlen(files[i].text));
	for (size_t i = 0; i < ARRAY_SIZE(links) && r >= 0; i++)
		r = symlinkat(links[i].target, root, links[i].path) < 0 ? -errno : 0;
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "files of the template");
	return 0;
}

static int add_nodes(int root, struct error *err)
{
	char source[32], path[32];

	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		struct stat st;
		int r;

		(void)snprintf(source, sizeof(source), "/dev/%s", nodes[i].name);
		(void)snprintf(path, sizeof(path), "dev/%s", nodes[i].name);
		if (stat(source, &st) < 0 || !S_ISCHR(st.st_mode) ||
		    st.st_rdev != makedev(nodes[i].major, nodes[i].minor))
			return error_set(err, ERR_UNAVAILABLE, 0, "%s is not the device %u:%u",
			                 source, nodes[i].major, nodes[i].minor);
		r = file_create_at(root, path, 0444, "", 0);
		/* Without nodev: boxes use these devices. */
		if (r >= 0)
			r = mount_bind(source,
			               MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
			               false, root, path);
		if (r < 0)
			return error_set(err, ERR_UNAVAILABLE, -r, "device %s", source);
	}
	return 0;
}

static int add_tree(int root, const char *source, const char *path, struct error *err)
{
	int r = mkdirat(root, path, 0755) < 0 && errno != EEXIST ? -errno : 0;

	if (r >= 0)
		r = mount_bind(source, LOCKED, true, root, path);
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "bind %s read-only", source);
	return 0;
}

static int add_system_dir(int root, const char *name, struct error *err)
{
	char source[32], target[256];
	ssize_t len;
	struct stat st;

	(void)snprintf(source, sizeof(source), "/%s", name);
	if (lstat(source, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return add_tree(root, source, name, err);
	len = readlink(source, target, sizeof(target) - 1);
	if (len < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "read link %s", source);
	target[len] = '\0';
	if (symlinkat(target, root, name) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "link %s", source);
	return 0;
}

/* A copy hides the file's owner and its path on the host. */
static int copy_file(int from, const char *name, int to, const char *path)
{
	cleanup_buf struct buf data = BUF_INIT(FILE_MAX_BYTES);
	struct stat st;
	int r;

	if (fstatat(from, name, &st, 0) < 0)
		return -errno;
	r = file_read_at(from, name, &data);
	if (r < 0)
		return r;
	return file_create_at(to, path, st.st_mode & S_IXUSR ? 0755 : 0644,
	                      data.data ? data.data : "", data.len);
}

/* Parts of /etc that programs in /usr need; each may be missing. Links in /usr/lib lead to those of
 * toolchains. */
static const char *const etc_dirs[] = {
	"etc/alternatives",
	"etc/ssl/certs",
	"etc/R",
	"etc/java-11-openjdk",
	"etc/java-17-openjdk",
	"etc/java-21-openjdk",
	"etc/java-25-openjdk",
	"etc/mono",
};

static int add_etc_dir(int root, const char *name, struct error *err)
{
	char source[40];
	struct stat st;

	(void)snprintf(source, sizeof(source), "/%s", name);
	return stat(source, &st) == 0 ? add_tree(root, source, name, err) : 0;
}

static int add_system(int root, struct error *err)
{
	int r;

	if (add_tree(root, "/usr", "usr", err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(system_dirs); i++)
		if (add_system_dir(root, system_dirs[i], err) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_SIZE(etc_dirs); i++)
		if (add_etc_dir(root, etc_dirs[i], err) < 0)
			return -1;
	r = copy_file(AT_FDCWD, "/etc/ld.so.cache", root, "etc/ld.so.cache");
	if (r < 0 && r != -ENOENT)
		return error_set(err, ERR_UNAVAILABLE, -r, "copy /etc/ld.so.cache");
	return 0;
}

/* A stack of bounded depth instead of recursion. */
struct copy {
	struct copy_level {
		DIR *from; /* owned */
		int to;    /* owned */
	} levels[RUNNERS_DEPTH];
	size_t depth;
	int files;
};

static void copy_pop(struct copy *copy)
{
	struct copy_level *level = &copy->levels[--copy->depth];

	(void)closedir(level->from);
	(void)fd_close(level->to);
}

static void copy_done(struct copy *copy)
{
	while (copy->depth > 0)
		copy_pop(copy);
}

static int copy_push(struct copy *copy, int from, int to, const char *name)
{
	cleanup_close int source = -1, target = -1;
	DIR *dir;

	if (copy->depth == RUNNERS_DEPTH)
		return -E2BIG;
	source = fd_open_at(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	target = fd_open_at(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (source < 0 || target < 0)
		return source < 0 ? source : target;
	dir = fdopendir(source);
	if (!dir)
		return -errno;
	(void)TAKE_FD(source);
	copy->levels[copy->depth++] = (struct copy_level){.from = dir, .to = TAKE_FD(target)};
	return 0;
}

static int copy_entry(struct copy *copy, const char *name)
{
	struct copy_level *level = &copy->levels[copy->depth - 1];
	int from = dirfd(level->from), to = level->to;
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return ++copy->files > RUNNERS_FILES ? -E2BIG : copy_file(from, name, to, name);
	/* A link would resolve differently inside the box. */
	if (!S_ISDIR(st.st_mode))
		return 0;
	if (mkdirat(to, name, 0755) < 0)
		return -errno;
	return copy_push(copy, from, to, name);
}

static int copy_tree(int from, int to)
{
	attr_cleanup(copy_done) struct copy copy = {0};
	int r = copy_push(&copy, from, to, ".");

	while (r >= 0 && copy.depth > 0) {
		struct dirent *entry = readdir(copy.levels[copy.depth - 1].from);

		if (!entry)
			copy_pop(&copy);
		else if (entry->d_name[0] != '.')
			r = copy_entry(&copy, entry->d_name);
	}
	return r;
}

/* A folder that two directories have is an error: neither may replace the other's runner. */
static int add_runners(int root, const struct runner_dirs *runners, struct error *err)
{
	cleanup_close int to = fd_open_at(root, "opt/millibox/runners", O_RDONLY | O_DIRECTORY, 0);
	int r = to < 0 ? to : 0;

	for (size_t i = 0; i < runners->count && r >= 0; i++)
		r = copy_tree(runners->fds[i], to);

	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "copy the runners");
	return 0;
}

/* Beside the folders: a runner finds the addon as ../addon.node, a runtime starts the agent by
 * path.
 */
static int add_program(int root, int program, const char *name, struct error *err)
{
	char source[32], path[64];
	int r = 0;

	if (program < 0)
		return 0;
	(void)snprintf(source, sizeof(source), "/proc/self/fd/%d", program);
	(void)snprintf(path, sizeof(path), "opt/millibox/runners/%s", name);
	r = copy_file(AT_FDCWD, source, root, path);
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "copy %s", name) : 0;
}

static int lock_mount(int fd, unsigned attrs, struct error *err)
{
	struct mount_attr attr = {.attr_set = attrs};

	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "make the template read-only");
	return 0;
}

static const struct mount_option no_options[] = {{NULL, NULL}};
static const struct mount_option tmpfs_options[] = {{"mode", "755"}, {NULL, NULL}};

static int build_stage(const struct ids *ids, const struct bases *bases, struct error *err)
{
	static const char *const names[] = {"template", "box",  "mask",
	                                    "mask/dir", "proc", &ROOT_RESOLVER[1]};
	cleanup_close int stage = mount_new("tmpfs", tmpfs_options, LOCKED & ~MOUNT_ATTR_RDONLY,
	                                    AT_FDCWD, ROOT_STAGE);
	cleanup_close int proc = -1;
	int r = stage;

	for (size_t i = 0; i < ARRAY_SIZE(names) && r >= 0; i++)
		r = mkdirat(stage, names[i], 0755) < 0 ? -errno : 0;
	if (r >= 0)
		r = file_create_at(stage, "mask/file", 0444, "", 0);
	if (r >= 0)
		r = proc = mount_new("proc", no_options,
		                     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
		                     stage, "proc");
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "root of the engine");
	return roots_build(stage, ids, bases, err);
}

int template_build(const struct template_parts *parts, const struct ids *ids,
                   const struct bases *bases, struct error *err)
{
	cleanup_close int root = -1;

	if (build_stage(ids, bases, err) < 0)
		return -1;
	root = mount_new("tmpfs", tmpfs_options, LOCKED & ~MOUNT_ATTR_RDONLY, AT_FDCWD,
	                 ROOT_STAGE ROOT_TEMPLATE);
	if (root < 0)
		return error_set(err, ERR_UNAVAILABLE, -root, "mount the template");
	if (make_names(root, err) < 0 || add_nodes(root, err) < 0 || add_system(root, err) < 0 ||
	    add_runners(root, parts->runners, err) < 0 ||
	    add_program(root, parts->addon, "addon.node", err) < 0 ||
	    add_program(root, parts->agent, AGENT_NAME, err) < 0)
		return -1;
	return lock_mount(root, LOCKED, err);
}

int template_add_resolvers(const char *const *addresses, size_t count, struct error *err)
{
	static const char names[] =
		"passwd: files\ngroup: files\nhosts: files dns\nservices: files\n";
	cleanup_buf struct buf text = BUF_INIT(RESOLVERS_MAX);
	cleanup_close int dir = fd_open(ROOT_STAGE ROOT_RESOLVER, O_RDONLY | O_DIRECTORY, 0);
	int r = dir;

	for (size_t i = 0; i < count && r >= 0; i++)
		r = buf_addf(&text, "nameserver %s\n", addresses[i]);
	if (r >= 0)
		r = file_create_at(dir, "resolv.conf", 0644, text.data ? text.data : "", text.len);
	if (r >= 0)
		r = file_create_at(dir, "nsswitch.conf", 0644, names, strlen(names));
	return r < 0 ? error_set(err, ERR_UNAVAILABLE, -r, "name servers of boxes") : 0;
}

int template_enter(struct error *err)
{
	cleanup_close int root = fd_open(ROOT_STAGE, O_PATH | O_DIRECTORY, 0);

	if (root < 0)
		return error_set(err, ERR_UNAVAILABLE, -root, "open " ROOT_STAGE);
	if (lock_mount(root, LOCKED | MOUNT_ATTR_NOEXEC, err) < 0)
		return -1;
	if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return error_set(err, ERR_UNAVAILABLE, errno, "leave the host's tree");
	return 0;
}

/* Newer kernels require this flag for a memfd that is executed. */
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

static int make_memfd(void)
{
	int fd = fd_memfd("millibox-agent", MFD_ALLOW_SEALING | MFD_EXEC);

	return fd == -EINVAL ? fd_memfd("millibox-agent", MFD_ALLOW_SEALING) : fd;
}

/* A file that is open for writing cannot be executed (ETXTBSY). */
static int reopen_readonly(int fd)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fd_open(path, O_RDONLY, 0);
}

int template_load(const char *path, struct error *err)
{
	cleanup_buf struct buf program = BUF_INIT(AGENT_MAX);
	cleanup_close int fd = -1;
	int r = file_read_at(AT_FDCWD, path, &program);

	if (r < 0 || program.len == 0)
		return error_set(err, ERR_UNAVAILABLE, r < 0 ? -r : ENOEXEC, "program '%s'", path);
	r = fd = make_memfd();
	if (r >= 0)
		r = fd_write_all(fd, program.data, program.len);
	/* Sealed: nothing can change it through /proc/PID/exe of an agent. */
	if (r >= 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	if (r >= 0)
		r = reopen_readonly(fd);
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "sealed copy of '%s'", path);
	return r;
}
