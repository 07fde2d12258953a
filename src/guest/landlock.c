/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/system_dirs.h"

/* The installed headers may be older. */
#define FS_REFER            (1ULL << 13)
#define FS_TRUNCATE         (1ULL << 14)
#define FS_IOCTL_DEV        (1ULL << 15)
#define SCOPE_ABSTRACT_UNIX (1ULL << 0)
#define SCOPE_SIGNAL        (1ULL << 1)

/* Since ABI 6; older kernels read the first part. */
struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

#define READ     (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define READ_RUN (READ | LANDLOCK_ACCESS_FS_EXECUTE)
#define CHANGE                                                                                     \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                              \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | FS_REFER | FS_TRUNCATE)
#define EVERYTHING                                                                                 \
	(READ_RUN | CHANGE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK |        \
	 FS_IOCTL_DEV)
/* For non-directories, without execution and ioctl. */
#define NODE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE)

struct place {
	const char *path;
	uint64_t access;
};

/*
 * Landlock has no right for modes, owners, times and extended attributes; nor for message queues,
 * whose file system is not mounted and so beneath no path: mq_open gets EACCES.
 */
static const struct place places[] = {
	/* We chose what is there. */
	{"/", LANDLOCK_ACCESS_FS_READ_DIR},
	{"/usr", READ_RUN},
	{"/etc", READ},
	{"/opt", READ_RUN},
	{"/proc", READ},
	{"/run", READ},
	{"/dev", READ},
	{"/dev/null", NODE | FS_IOCTL_DEV},
	{"/dev/full", NODE | FS_IOCTL_DEV},
	{"/dev/tty", NODE | FS_IOCTL_DEV},
	/* Its terminals; it may not open ptmx, which belongs to the agent. */
	{"/dev/pts", NODE | FS_IOCTL_DEV},
	{"/dev/random", NODE},
	{"/dev/urandom", NODE},
	{"/dev/shm", READ_RUN | CHANGE},
	{"/tmp", READ_RUN | CHANGE},
	{"/workspace", READ_RUN | CHANGE},
};

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

static uint64_t known_rights(int abi)
{
	uint64_t rights = EVERYTHING;

	if (abi < 2)
		rights &= ~FS_REFER;
	if (abi < 3)
		rights &= ~FS_TRUNCATE;
	if (abi < 5)
		rights &= ~FS_IOCTL_DEV;
	return rights;
}

static int create_ruleset(int abi)
{
	struct ruleset_attr attr = {.handled_access_fs = known_rights(abi)};
	size_t size = sizeof(attr.handled_access_fs);
	long r = 0;

	if (abi >= 6) {
		attr.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
		size = sizeof(attr);
	}
	r = syscall(SYS_landlock_create_ruleset, &attr, size, 0); /* always close-on-exec */
	return r < 0 ? -errno : (int)r;
}

static int add_place(int ruleset, int abi, const struct place *place)
{
	cleanup_close int fd = fd_open(place->path, O_PATH, 0);
	struct landlock_path_beneath_attr rule = {
		.allowed_access = place->access & known_rights(abi),
		.parent_fd = fd,
	};

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

int landlock_allow_zero(int ruleset, int abi)
{
	static const struct place zero = {"/dev/zero", NODE | FS_IOCTL_DEV};

	return add_place(ruleset, abi, &zero);
}

static bool is_one_of(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static int add_top_dir(int ruleset, int abi, const char *name)
{
	/* Above: a writable /dev would allow mapping memory that is not counted. */
	static const char *const kept[] = {".", "..", "dev", "proc", "run", "sys"};
	static const char *const system_dirs[] = {SYSTEM_DIRS};
	char path[NAME_MAX + 2];
	struct place place = {path, READ_RUN | CHANGE};

	if (is_one_of(kept, ARRAY_SIZE(kept), name))
		return 0;
	if (is_one_of(system_dirs, ARRAY_SIZE(system_dirs), name))
		place.access = READ_RUN;
	(void)snprintf(path, sizeof(path), "/%s", name);
	return add_place(ruleset, abi, &place);
}

/* The payload may change its own root, except what mounts, owners or the places above protect. */
static int add_own_root(int ruleset, int abi)
{
	int fd = fd_open("/", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = fd < 0 ? fd : -errno;
		(void)fd_close(fd);
		return r;
	}
	while (r >= 0 && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR)
			r = add_top_dir(ruleset, abi, entry->d_name);
	(void)closedir(dir);
	return r;
}

int landlock_make(int abi, bool own_root, struct error *err)
{
	cleanup_close int ruleset = create_ruleset(abi);
	int r;

	if (ruleset < 0)
		return error_set(err, ERR_BOX_FAILED, -ruleset, "create a Landlock ruleset");
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		r = add_place(ruleset, abi, &places[i]);
		if (r < 0)
			return error_set(err, ERR_BOX_FAILED, -r, "Landlock rule for %s",
			                 places[i].path);
	}
	r = own_root ? add_own_root(ruleset, abi) : 0;
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "Landlock rules for the root");
	return TAKE_FD(ruleset);
}

int landlock_apply(int ruleset)
{
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}
