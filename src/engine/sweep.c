/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "engine/internal.h"

/*
 * Removes groups that a killed engine left, perhaps with processes that are still dying. Runs once,
 * before the first box, so it may block for a moment.
 */

#define TRIES_MAX   100
#define DEPTH_MAX   8  /* of groups in groups, bounds the stack */
#define BATCH_MAX   64 /* descriptors open at once */
#define LIST_MAX    ((size_t)1024 * 1024)
#define TRY_WAIT_NS 10000000L

struct batch {
	size_t count;
	struct {
		const char *number; /* a line of the first list */
		int pidfd;          /* owned */
	} all[BATCH_MAX];
};

/* Whether the list has this line. */
static bool is_listed(const char *list, const char *number)
{
	size_t len = strlen(number);

	for (const char *line = list; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, number, len) == 0 && (line[len] == '\n' || !line[len]))
			return true;
	}
	return false;
}

/* Return: how many were signalled, or -errno. */
static int kill_batch(int dir, struct batch *batch)
{
	cleanup_buf struct buf now = BUF_INIT(LIST_MAX);
	int r = file_read_at(dir, "cgroup.procs", &now);
	int count = 0;

	for (size_t i = 0; i < batch->count; i++) {
		if (r >= 0 && now.data && is_listed(now.data, batch->all[i].number) &&
		    fd_pidfd_kill(batch->all[i].pidfd, SIGKILL) >= 0)
			count++;
		(void)fd_close(batch->all[i].pidfd);
	}
	batch->count = 0;
	return r < 0 ? r : count;
}

/*
 * A number in the list may be another process's before it is used. So open the process first, then
 * read the list again: if the number is still there, the opened process is in the group, or it has
 * ended and the signal has no effect.
 */
int group_kill_listed(int dir)
{
	cleanup_buf struct buf pids = BUF_INIT(LIST_MAX);
	struct batch batch = {0};
	int r = file_read_at(dir, "cgroup.procs", &pids);
	char *save = NULL;
	int count = 0;

	if (r < 0 || !pids.data)
		return r;
	for (char *line = strtok_r(pids.data, "\n", &save); line && r >= 0;
	     line = strtok_r(NULL, "\n", &save)) {
		uint64_t pid;
		int pidfd = -1;

		/* 0 is a process outside this pid namespace. */
		if (parse_u64(line, &pid) == 0 && pid >= 2 && pid <= INT32_MAX)
			pidfd = fd_pidfd_open((pid_t)pid);
		if (pidfd < 0)
			continue;
		batch.all[batch.count].number = line;
		batch.all[batch.count++].pidfd = pidfd;
		if (batch.count < BATCH_MAX)
			continue;
		r = kill_batch(dir, &batch);
		count += r < 0 ? 0 : r;
	}
	r = kill_batch(dir, &batch);
	return r < 0 ? r : count + r;
}

static void empty_group(int parent, const char *name)
{
	cleanup_close int dir = fd_open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (dir < 0)
		return;
	if (file_write_at(dir, "cgroup.kill", "1") < 0)
		(void)group_kill_listed(dir);
	group_lift_quota(dir);
	/* v1: a frozen process handles signals only when thawed. */
	(void)!file_write_at(dir, "freezer.state", "THAWED");
}

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static void each_group(int parent, void (*fn)(int parent, const char *name, void *ctx), void *ctx)
{
	int fd = fd_open_at(parent, ".", O_RDONLY | O_DIRECTORY, 0);
	attr_cleanup(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		(void)fd_close(fd);
		return;
	}
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			fn(parent, entry->d_name, ctx);
}

/* One per tree; -1 where the instance has none. */
struct sweep {
	int dirs[CGROUP_KIND_COUNT]; /* borrowed */
	size_t count;
	unsigned removed;
	unsigned left; /* in the last round */
	unsigned depth;
};

static void sweep_group(int parent, const char *name, void *ctx);

/* Boxes in the group of a tenant, and what others made there. */
static void sweep_below(int parent, const char *name, struct sweep *sweep) // NOLINT: DEPTH_MAX
{
	cleanup_close int dir = fd_open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (dir < 0 || sweep->depth == DEPTH_MAX)
		return;
	sweep->depth++;
	each_group(dir, sweep_group, sweep);
	sweep->depth--;
}

static void sweep_group(int parent, const char *name, void *ctx) // NOLINT: DEPTH_MAX
{
	struct sweep *sweep = ctx;

	if (unlinkat(parent, name, AT_REMOVEDIR) == 0) {
		sweep->removed++;
		return;
	}
	if (errno == ENOENT)
		return;
	sweep_below(parent, name, sweep);
	empty_group(parent, name);
	sweep->left++;
}

/*
 * In rounds over all trees: one kills, another has the quota of the dying processes. Return: 0 when
 * nothing is left, or -EBUSY.
 */
static int sweep_dirs(struct sweep *sweep)
{
	const struct timespec wait = {.tv_nsec = TRY_WAIT_NS};

	for (int i = 0; i < TRIES_MAX; i++) {
		sweep->left = 0;
		for (size_t tree = 0; tree < sweep->count; tree++)
			if (sweep->dirs[tree] >= 0)
				each_group(sweep->dirs[tree], sweep_group, sweep);
		if (sweep->left == 0)
			break;
		(void)nanosleep(&wait, NULL);
	}
	return sweep->left > 0 ? -EBUSY : 0;
}

static void log_removed(const struct sweep *sweep)
{
	if (sweep->removed > 0)
		log_info("removed %u groups of an earlier engine", sweep->removed);
}

static struct sweep sweep_of_own(const struct cgroups *groups)
{
	struct sweep sweep = {.count = groups->count};

	for (size_t i = 0; i < groups->count; i++)
		sweep.dirs[i] = groups->trees[i].dir;
	return sweep;
}

int cgroups_sweep_own(const struct cgroups *groups)
{
	struct sweep sweep = sweep_of_own(groups);
	int r = sweep_dirs(&sweep);

	log_removed(&sweep);
	return r;
}

void cgroups_sweep_ended(const struct cgroups *groups)
{
	struct sweep sweep = sweep_of_own(groups);

	(void)!sweep_dirs(&sweep);
}

/* Return: whether its engine is dead: all directories could be locked. */
static bool lock_if_dead(const struct cgroups *groups, const char *name, struct sweep *ret_sweep)
{
	bool dead = true;

	*ret_sweep = (struct sweep){.count = groups->count};
	for (size_t i = 0; i < groups->count; i++) {
		int dir = fd_open_at(groups->trees[i].home, name,
		                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

		ret_sweep->dirs[i] = dir;
		dead = dead && (dir == -ENOENT || (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0));
	}
	return dead;
}

static void sweep_instance(int parent attr_unused, const char *name, void *ctx)
{
	const struct cgroups *groups = ctx;
	struct sweep sweep;
	uint64_t number;

	if (parse_u64(name, &number) < 0 || number == groups->instance)
		return;
	if (lock_if_dead(groups, name, &sweep)) {
		if (sweep_dirs(&sweep) < 0)
			log_warn("instance %s has groups that are not empty; a later start removes "
			         "them",
			         name);
		log_removed(&sweep);
		for (size_t i = 0; i < groups->count; i++)
			(void)unlinkat(groups->trees[i].home, name, AT_REMOVEDIR);
	}
	for (size_t i = 0; i < groups->count; i++)
		(void)fd_close(sweep.dirs[i]);
}

void cgroups_sweep_others(struct cgroups *groups)
{
	for (size_t i = 0; i < groups->count; i++)
		each_group(groups->trees[i].home, sweep_instance, groups);
}
