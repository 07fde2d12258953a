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
 * What an engine that was killed could not clear away: groups, and in them perhaps processes that
 * are still dying. Runs once at start, before the first box, and may therefore wait a little.
 */

#define TRIES_MAX   100
#define TRY_WAIT_NS 10000000L

int group_kill_listed(int dir)
{
	cleanup_buf struct buf pids = BUF_INIT((size_t)1024 * 1024);
	int r = file_read_at(dir, "cgroup.procs", &pids);
	char *save = NULL;
	int count = 0;

	if (r < 0 || !pids.data)
		return r;
	for (char *line = strtok_r(pids.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		uint64_t pid;

		/* 0 is a process that this pid namespace can't see: kill(0) would be us. */
		if (parse_u64(line, &pid) < 0 || pid < 2 || pid > INT32_MAX)
			continue;
		if (kill((pid_t)pid, SIGKILL) == 0)
			count++;
	}
	return count;
}

static void empty_group(int parent, const char *name)
{
	cleanup_close int dir = fd_open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (dir < 0)
		return;
	if (file_write_at(dir, "cgroup.kill", "1") < 0)
		(void)group_kill_listed(dir);
	group_lift_quota(dir);
	/* v1: a frozen process takes no signal until it is thawed. */
	(void)!file_write_at(dir, "freezer.state", "THAWED");
}

static void remove_group(int parent, const char *name)
{
	const struct timespec wait = {.tv_nsec = TRY_WAIT_NS};

	for (int i = 0; i < TRIES_MAX; i++) {
		if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return;
		empty_group(parent, name);
		(void)nanosleep(&wait, NULL);
	}
	log_warn("group '%s' of an earlier life can't be removed, ignoring", name);
}

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* Calls @fn for every group in @parent. */
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

struct sweep {
	uint32_t instance; /* ours */
	unsigned count;
};

static void sweep_box(int parent, const char *name, void *ctx)
{
	struct sweep *sweep = ctx;

	sweep->count++;
	remove_group(parent, name);
}

static void sweep_instance(int parent, const char *name, void *ctx)
{
	struct sweep *sweep = ctx;
	cleanup_close int dir = -1;
	uint64_t number;

	if (parse_u64(name, &number) < 0 || number == sweep->instance)
		return;
	dir = fd_open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0 || flock(dir, LOCK_EX | LOCK_NB) < 0)
		return;
	each_group(dir, sweep_box, sweep);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
}

void cgroups_sweep(struct cgroups *groups)
{
	struct sweep sweep = {.instance = groups->instance};

	for (size_t i = 0; i < groups->count; i++) {
		each_group(groups->trees[i].dir, sweep_box, &sweep);
		each_group(groups->trees[i].home, sweep_instance, &sweep);
	}
	if (sweep.count > 0)
		log_info("removed %u groups that earlier engines left", sweep.count);
}
