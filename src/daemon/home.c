/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/home.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/id.h"
#include "base/str.h"
#include "core/secret/keyring.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_NAME     "lock"
#define LOCK_PAUSE_NS (20 * 1000 * 1000)
#define LOCK_TRIES    100 /* two seconds */

/* The daemon's files in its state directory. An earlier daemon may have had another id. */
static const char *const state_files[] = {"millibox.db",       "millibox.db-wal", "millibox.db-shm",
                                          "millibox.db-clean", HOME_SEAL_NAME,    KEYRING_FILE};

static int open_dir(const char *dir, unsigned mode, int *ret_fd, struct error *err)
{
	int r = file_mkdir_parents(dir, mode);
	int fd;

	if (r < 0)
		return error_set(err, ERR_CONFIG, -r, "create directory %s", dir);
	/* Do not follow a planted link. */
	fd = fd_open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return error_set(err, ERR_CONFIG, -fd, "open directory %s", dir);
	*ret_fd = fd;
	return 0;
}

/* Children of a daemon just killed may still hold the inherited lock; the socket guard does so on
 * purpose (socket_guard.h). */
static int lock_patiently(int fd)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

	for (int tries = LOCK_TRIES; flock(fd, LOCK_EX | LOCK_NB) < 0; tries--) {
		if (errno != EWOULDBLOCK || tries <= 1)
			return -errno;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

int home_open_state(const char *dir, int *ret_fd, struct error *err)
{
	cleanup_free char *copy = xstrdup(dir);
	const char *above = dirname(copy);
	cleanup_close int fd = -1, lock = -1;
	struct stat st;
	/* Parents created by root belong to root: the daemon must be able to pass. */
	int r = geteuid() == 0 ? file_mkdir_parents(above, 0755) : 0;

	if (r < 0)
		return error_set(err, ERR_CONFIG, -r, "create directory %s", above);
	if (open_dir(dir, 0700, &fd, err) < 0)
		return -1;
	/* Root takes it over from an earlier daemon's id; others use only their own. */
	if (fstat(fd, &st) < 0 || (geteuid() != 0 && st.st_uid != geteuid()))
		return error_set(err, ERR_CONFIG, 0, "directory %s belongs to another user", dir);
	lock = fd_open_at(fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	if (lock < 0)
		return error_set(err, ERR_CONFIG, -lock, "open %s/%s", dir, LOCK_NAME);
	/* We write to it and may give it away. */
	if (!file_is_sole(lock))
		return error_set(err, ERR_CONFIG, 0, "%s/%s is not a regular file with one name",
		                 dir, LOCK_NAME);
	r = lock_patiently(lock);
	if (r < 0)
		return error_set(
			err, ERR_CONFIG, r == -EWOULDBLOCK ? 0 : -r,
			"directory %.70s is in use by another daemon, or by the milliboxd-guard of "
			"a killed one that has not ended yet; give this daemon its own "
			"--state-dir, --socket and --listen",
			dir);
	*ret_fd = TAKE_FD(lock);
	return 0;
}

/* An attacker in an earlier daemon may have left a link, or another name of root's file, under our
 * names. Neither is given away. */
static int give_file(int dir, const char *name, uid_t uid, gid_t gid, struct error *err)
{
	cleanup_close int fd = fd_open_beneath(dir, name, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return error_set(err, ERR_CONFIG, -fd, "open %s", name);
	if (!file_is_sole(fd) || fstat(fd, &st) < 0)
		return error_set(err, ERR_CONFIG, 0, "%s is not a regular file with one name",
		                 name);
	/* Already theirs: keep it untouched, with its times. */
	if (st.st_uid == uid && st.st_gid == gid && (st.st_mode & 07777) == 0600)
		return 0;
	if (fchown(fd, uid, gid) < 0 || fchmod(fd, 0600) < 0)
		return error_set(err, ERR_CONFIG, errno, "give %s to user %u", name, (unsigned)uid);
	return 0;
}

static char *roots_in(const char *dir)
{
	return xasprintf("%s/roots", dir);
}

static int make_roots(const char *dir, struct error *err)
{
	cleanup_free char *roots = roots_in(dir);
	cleanup_close int fd = -1;

	return open_dir(roots, 0700, &fd, err);
}

int home_make_bases(const char *dir, char *const *operators, char ***ret_bases, struct error *err)
{
	size_t count = str_list_count(operators);
	char **bases = xcalloc(count + 2, sizeof(char *));

	*ret_bases = bases;
	bases[0] = roots_in(dir);
	for (size_t i = 0; i < count; i++) {
		const char *base = operators[i];

		if (base[0] != '/' || access(base, F_OK) < 0)
			return error_set(err, ERR_CONFIG, base[0] == '/' ? errno : 0,
			                 "templates.dirs: '%s' must be an absolute path of a "
			                 "directory",
			                 base);
		bases[i + 1] = xstrdup(base);
	}
	return make_roots(dir, err);
}

int home_name(int fd, char ret_name[HOME_NAME_LEN + 1], struct error *err)
{
	char name[HOME_NAME_LEN + 2] = {0};
	ssize_t n = pread(fd, name, HOME_NAME_LEN + 1, 0);

	if (n != HOME_NAME_LEN ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") != HOME_NAME_LEN) {
		id_random(name, HOME_NAME_LEN);
		if (ftruncate(fd, 0) < 0 ||
		    pwrite(fd, name, HOME_NAME_LEN, 0) != (ssize_t)HOME_NAME_LEN)
			return error_set(err, ERR_CONFIG, errno, "write to %s", LOCK_NAME);
	}
	memcpy(ret_name, name, HOME_NAME_LEN);
	ret_name[HOME_NAME_LEN] = '\0';
	return 0;
}

int home_give_state(const char *dir, int fd, uid_t uid, gid_t gid, struct error *err)
{
	cleanup_free char *roots = roots_in(dir);
	cleanup_close int dir_fd = -1;
	cleanup_close int roots_fd = -1;

	if (open_dir(dir, 0700, &dir_fd, err) < 0 || open_dir(roots, 0700, &roots_fd, err) < 0)
		return -1;
	if (fchown(fd, uid, gid) < 0 || fchown(roots_fd, uid, gid) < 0 ||
	    fchown(dir_fd, uid, gid) < 0 || fchmod(dir_fd, 0700) < 0)
		return error_set(err, ERR_CONFIG, errno, "give directory %s to user %u", dir,
		                 (unsigned)uid);
	for (size_t i = 0; i < ARRAY_SIZE(state_files); i++)
		if (give_file(dir_fd, state_files[i], uid, gid, err) < 0)
			return error_wrap(err, "%s", dir);
	return 0;
}

/* That user owns the directory: the path to it fails. */
int home_state_failed(const char *dir, struct error *err)
{
	if (err->sys != EACCES)
		return -1;
	error_clear(err);
	return error_set(err, ERR_CONFIG, 0,
	                 "the daemon runs as user %u, who cannot enter the directories above "
	                 "%.80s; choose another --state-dir, or chmod o+x them",
	                 (unsigned)geteuid(), dir);
}

int home_make_parent(const char *path, uid_t own, bool shared, struct error *err)
{
	cleanup_free char *copy = xstrdup(path);
	const char *dir = dirname(copy);
	cleanup_close int fd = -1;
	struct stat st;

	if (open_dir(dir, geteuid() == 0 || shared ? 0755 : 0700, &fd, err) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return error_set(err, ERR_CONFIG, errno, "stat directory %s", dir);
	/* Its owner may rename in it, sticky or not, and replace our socket; root is trusted. */
	if (st.st_uid != 0 && st.st_uid != own)
		return error_set(err, ERR_CONFIG, 0,
		                 "directory %s belongs to user %u, who could replace its contents",
		                 dir, (unsigned)st.st_uid);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX))
		return error_set(err, ERR_CONFIG, 0, "other users may write to directory %s", dir);
	return 0;
}

int home_share_socket(const char *path, gid_t gid, struct error *err)
{
	if (gid == (gid_t)-1 || lchown(path, (uid_t)-1, gid) == 0)
		return 0;
	if (errno == EPERM)
		return error_set(err, ERR_CONFIG, errno,
		                 "socket_group: user %u is not a member of group %u",
		                 (unsigned)geteuid(), (unsigned)gid);
	return error_set(err, ERR_SYSTEM, errno, "socket_group: chown %s", path);
}
