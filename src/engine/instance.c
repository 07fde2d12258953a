/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"

/*
 * Several engines may run on a host (two daemons, a test beside a service). Each takes the lowest
 * instance number whose locks are free. The number determines host ids and group names, so two
 * engines never share either. There are two locks: a file in the runtime directory, and the
 * directories in the cgroup trees, which engines with different runtime directories share.
 */

#define INSTANCES_MAX 1024

static bool next_line(const char **rest, char *ret_line, size_t size)
{
	size_t len = strcspn(*rest, "\n");

	if (**rest == '\0')
		return false;
	/* A line that does not fit is read as empty. */
	(void)snprintf(ret_line, size, "%.*s", len < size ? (int)len : 0, *rest);
	*rest += len + ((*rest)[len] == '\n');
	return true;
}

int subid_find(const char *text, const char *name, uint32_t uid, uint64_t *ret_first,
               uint64_t *ret_count)
{
	char line[256], number[16];

	(void)snprintf(number, sizeof(number), "%u", uid);
	while (next_line(&text, line, sizeof(line))) {
		char *save = NULL;
		const char *who = strtok_r(line, ":", &save);
		const char *first = strtok_r(NULL, ":", &save);
		const char *count = strtok_r(NULL, ":", &save);
		uint64_t a, n;

		if (!count || !(str_equal(who, number) || (*name && str_equal(who, name))))
			continue;
		if (parse_u64(first, &a) < 0 || parse_u64(count, &n) < 0 || a == 0 || n == 0 ||
		    a > UINT32_MAX || n > UINT32_MAX - a)
			continue;
		*ret_first = a;
		*ret_count = n;
		return 0;
	}
	return -ENOENT;
}

/* "INSIDE OUTSIDE LENGTH"; changes @line. */
static bool parse_idmap_line(char *line, uint64_t *ret_start, uint64_t *ret_count)
{
	char *save = NULL;
	const char *inside = strtok_r(line, " \t", &save);
	const char *outside = strtok_r(NULL, " \t", &save);
	const char *length = strtok_r(NULL, " \t", &save);

	return outside && length && parse_u64(inside, ret_start) == 0 &&
	       parse_u64(length, ret_count) == 0;
}

bool idmap_covers(const char *text, uint64_t first, uint64_t count)
{
	char line[128];
	uint64_t start, n;

	while (next_line(&text, line, sizeof(line)))
		if (parse_idmap_line(line, &start, &n) && first >= start && first - start <= n &&
		    count <= n - (first - start))
			return true;
	return false;
}

int idmap_upper_half(const char *text, uint64_t least, uint64_t *ret_first, uint64_t *ret_count)
{
	char line[128];
	uint64_t start, n, longest = 0;

	while (next_line(&text, line, sizeof(line)))
		if (parse_idmap_line(line, &start, &n) && n > longest && start <= UINT32_MAX &&
		    n <= UINT32_MAX - start) {
			longest = n;
			*ret_first = start + n / 2;
			*ret_count = n - n / 2;
		}
	return longest > 0 && *ret_count >= least ? 0 : -ENOENT;
}

struct ids ids_of_instance(const struct privilege *privilege, uint32_t number)
{
	uint32_t offset = number * privilege->stride;
	struct ids ids = {
		.mode = privilege->mode,
		.first = privilege->mode == ENGINE_IDS_SINGLE ? 0 : 1,
		.host_root = (uint32_t)privilege->host_uid,
		.host_first = (uint32_t)privilege->host_uid + offset,
		.host_gid = (uint32_t)privilege->host_gid + offset,
		.count = privilege->stride,
	};

	/* Root's share: the first id is the engine's, then those of boxes, one that owns imported
	 * files in their boxes, and the daemon's, which is not mapped inside. */
	if (ids.mode == ENGINE_IDS_RANGE) {
		ids.host_root = ids.host_first;
		ids.host_first++;
		ids.host_gid++;
		ids.count -= 2 + IDS_RESERVED;
		ids.daemon_uid = ids.host_first + ids.count + IDS_RESERVED;
	}
	return ids;
}

uint32_t ids_inside(const struct host *host, uint32_t id)
{
	if (host->ids.mode != ENGINE_IDS_SINGLE)
		return id;
	return host->runtime ? 0 : BOX_PAYLOAD_ID;
}

uint32_t ids_slots(const struct ids *ids)
{
	uint32_t slots = ids->mode == ENGINE_IDS_SINGLE ? BOXES_MAX : ids->count / 2;

	return slots < BOXES_MAX ? slots : BOXES_MAX;
}

uint32_t ids_agent(const struct ids *ids, uint32_t slot)
{
	return ids->mode == ENGINE_IDS_SINGLE ? ids->first : ids->first + 2 * slot;
}

uint32_t ids_payload(const struct ids *ids, uint32_t slot)
{
	return ids->mode == ENGINE_IDS_SINGLE ? ids->first : ids->first + 2 * slot + 1;
}

uint32_t ids_of_images(const struct ids *ids)
{
	/* Without a range they belong to the user who started the engine. */
	return ids->mode == ENGINE_IDS_RANGE ? ids->first + ids->count : 0;
}

static void lock_name(uint32_t number, char *ret_name, size_t size)
{
	(void)snprintf(ret_name, size, "engine-%u.lock", number);
}

/* The owner removes its file at exit: a lock on a removed file does not count. */
static int lock_file(int dir, uint32_t number)
{
	cleanup_close int fd = -1;
	struct stat mine, there;
	char name[32];

	lock_name(number, name, sizeof(name));
	fd = fd_open_at(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(fd, &mine) < 0 || fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
	    mine.st_ino != there.st_ino)
		return -EBUSY;
	/* Another name could be locked, or removed, by others. */
	return file_is_sole(fd) ? TAKE_FD(fd) : -EMLINK;
}

/* Only the holder removes it; lock_file() detects that. */
static void unlock_file(int dir, uint32_t number, int lock)
{
	char name[32];

	lock_name(number, name, sizeof(name));
	(void)unlinkat(dir, name, 0);
	(void)fd_close(lock);
}

static int claim_groups(struct cgroups *groups, uint32_t number)
{
	int r = cgroups_claim(groups, number);

	if (r < 0)
		return r;
	/* Leftover processes run under the ids of new boxes: take another number. */
	r = cgroups_sweep_own(groups);
	if (r < 0) {
		log_warn("instance %u is not empty yet, taking another", number);
		cgroups_unclaim(groups);
	}
	return r;
}

static int claim_number(struct instance *instance, uint32_t number, struct cgroups *groups)
{
	int lock = lock_file(instance->dir, number);
	int r;

	if (lock < 0)
		return lock;
	r = claim_groups(groups, number);
	if (r < 0) {
		unlock_file(instance->dir, number, lock);
		return r;
	}
	instance->number = number;
	instance->lock = lock;
	return 0;
}

/* Of killed engines. */
static void sweep_locks(int dir, uint32_t own)
{
	char name[32];

	for (uint32_t number = 0; number < INSTANCES_MAX; number++) {
		int lock;

		lock_name(number, name, sizeof(name));
		if (number == own || faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		lock = lock_file(dir, number);
		if (lock >= 0)
			unlock_file(dir, number, lock);
	}
}

static uint32_t instances_max(const struct privilege *privilege)
{
	uint64_t max = INSTANCES_MAX;

	if (privilege->mode != ENGINE_IDS_SINGLE && privilege->count / privilege->stride < max)
		max = privilege->count / privilege->stride;
	return (uint32_t)max;
}

/*
 * Locks are reliable only if no other user can remove them. An ordinary user's default directory
 * may be in /tmp, where another user may have created it first. An owner that is not mapped in this
 * user namespace counts as another user.
 */
static int open_runtime_dir(const char *path, struct error *err)
{
	int r = file_mkdir_parents(path, 0755);
	cleanup_close int dir = -1;
	struct stat st;

	if (r >= 0)
		r = dir = fd_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0 && fstat(dir, &st) < 0)
		r = -errno;
	if (r == -ELOOP || r == -ENOTDIR)
		return error_set(err, ERR_CONFIG, -r, "runtime directory '%s' is not a directory",
		                 path);
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "runtime directory '%s'", path);
	if (st.st_uid != geteuid())
		return error_set(err, ERR_CONFIG, 0,
		                 "runtime directory '%s' belongs to another user", path);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, ERR_CONFIG, 0, "others may write to runtime directory '%s'",
		                 path);
	return TAKE_FD(dir);
}

int instance_claim(const char *runtime_dir, const struct privilege *privilege,
                   struct cgroups *groups, struct instance *ret_instance, struct error *err)
{
	struct instance instance = {.dir = -1, .lock = -1};
	int r = -EBUSY;

	instance.dir = open_runtime_dir(runtime_dir, err);
	if (instance.dir < 0)
		return -1;
	for (uint32_t n = 0; n < instances_max(privilege) && r == -EBUSY; n++)
		r = claim_number(&instance, n, groups);
	if (r < 0) {
		(void)fd_close(instance.dir);
		return error_set(err, ERR_UNAVAILABLE, -r, "lock in '%s'", runtime_dir);
	}
	sweep_locks(instance.dir, instance.number);
	*ret_instance = instance;
	return 0;
}

void instance_release(struct instance *instance)
{
	if (instance->lock < 0)
		return;
	unlock_file(instance->dir, instance->number, TAKE_FD(instance->lock));
	instance->dir = fd_close(instance->dir);
}

void slots_init(struct slots *slots, uint32_t count)
{
	assert(count <= BOXES_MAX);
	*slots = (struct slots){.count = count};
}

int slots_take(struct slots *slots)
{
	uint32_t slot;

	if (slots->used == slots->count)
		return -EBUSY;
	/* Round robin: reuse a dead box's host ids as late as possible. */
	while (slots->taken[slots->next])
		slots->next = (slots->next + 1) % slots->count;
	slot = slots->next;
	slots->taken[slot] = true;
	slots->used++;
	slots->next = (slot + 1) % slots->count;
	return (int)slot;
}

void slots_put(struct slots *slots, uint32_t slot)
{
	assert(slot < slots->count && slots->taken[slot]);
	slots->taken[slot] = false;
	slots->used--;
}
