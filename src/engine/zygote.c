/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "wire/inject.h"

/* Imports may take long; forking does not. */
#define START_TIMEOUT_US (60 * USEC_PER_SEC)
#define FILL_TIMEOUT_US  (5 * USEC_PER_SEC)
#define RETRY_FIRST_US   (50 * USEC_PER_MS)
#define RETRY_LAST_US    (30 * USEC_PER_SEC)
#define CHECK_AGAIN_US   (2 * USEC_PER_MS)
#define FAILURES_BROKEN  3
/* The agent's start and the fork fit into one period. */
#define SMALL_QUOTA_MILLICORES 100
/* Children between two checks of its size. */
#define SIZE_CHECK_FORKS 16

#define STATE_BIT(s) (1u << (s))

/* States from which each state may be entered. */
static const uint32_t entered_from[ZYGOTE_STATE_COUNT] = {
	[ZYGOTE_NONE] = STATE_BIT(ZYGOTE_ENDING) | STATE_BIT(ZYGOTE_DOWN),
	[ZYGOTE_DOWN] = STATE_BIT(ZYGOTE_NONE) | STATE_BIT(ZYGOTE_ENDING),
	[ZYGOTE_STARTING] = STATE_BIT(ZYGOTE_DOWN),
	[ZYGOTE_READY] = STATE_BIT(ZYGOTE_STARTING),
	[ZYGOTE_ENDING] =
		STATE_BIT(ZYGOTE_DOWN) | STATE_BIT(ZYGOTE_STARTING) | STATE_BIT(ZYGOTE_READY),
};

static void set_state(struct zygote *z, enum zygote_state next)
{
	assert(entered_from[next] & STATE_BIT(z->state));
	z->state = next;
}

void zygotes_init(struct zygotes *zygotes, const struct host *host, struct cgroup_pool *groups,
                  int epoll, uint64_t watch)
{
	*zygotes = (struct zygotes){.host = host, .groups = groups, .epoll = epoll, .watch = watch};
	for (unsigned i = 0; i < ENGINE_ZYGOTES_MAX; i++) {
		zygotes->all[i] = (struct zygote){.number = i + 1, .sock = -1, .files = -1};
		build_init(&zygotes->all[i].build, host, NULL, groups);
	}
}

static uint64_t retry_after(const struct zygote *z)
{
	uint64_t wait = RETRY_FIRST_US << (z->failures < 10 ? z->failures : 10);

	if (z->failures == 0)
		return 0;
	return wait < RETRY_LAST_US ? wait : RETRY_LAST_US;
}

/* Its children live on in their boxes. */
static void end_zygote(struct zygotes *zygotes, struct zygote *z)
{
	if (z->sock >= 0)
		(void)epoll_ctl(zygotes->epoll, EPOLL_CTL_DEL, z->sock, NULL);
	z->sock = fd_close(z->sock);
	z->files = fd_close(z->files);
	if (z->build.pidfd >= 0)
		(void)pidfd_send_signal(z->build.pidfd, SIGKILL, NULL, 0);
	set_state(z, ZYGOTE_ENDING);
	z->due_us = 0;
}

static void fail_zygote(struct zygotes *zygotes, struct zygote *z, const char *why)
{
	z->failures++;
	log_warn("zygote %s: %s; boxes start cold meanwhile", z->command, why);
	end_zygote(zygotes, z);
}

static int watch_zygote(struct zygotes *zygotes, struct zygote *z)
{
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.u64 = zygotes->watch + z->number - 1,
	};

	return epoll_ctl(zygotes->epoll, EPOLL_CTL_ADD, z->sock, &event) < 0 ? -errno : 0;
}

static void start_zygote(struct zygotes *zygotes, struct zygote *z, uint64_t now)
{
	struct error err = {0};
	int r;

	build_init(&z->build, zygotes->host, NULL, zygotes->groups);
	z->forks = z->unanswered = 0;
	r = zygote_start(z, &err);
	if (r >= 0 && watch_zygote(zygotes, z) < 0)
		r = error_set(&err, ERR_SYSTEM, errno, "watch it");
	set_state(z, ZYGOTE_STARTING);
	z->due_us = now + START_TIMEOUT_US;
	if (r < 0)
		fail_zygote(zygotes, z, err.msg);
}

/* Reap the process, remove the groups. Return: whether nothing is left. */
static bool clean_up(struct zygote *z)
{
	siginfo_t info = {0};
	struct build *b = &z->build;

	if (b->pidfd >= 0) {
		if (waitid(P_PIDFD, (id_t)b->pidfd, &info, WEXITED | WNOHANG) < 0 ||
		    info.si_pid == 0)
			return false;
		b->pidfd = fd_close(b->pidfd);
		b->pid = 0; /* the kernel may give it to another process */
	}
	if (groups_remove(b->host, &b->groups) < 0) {
		groups_kill(b->host, &b->groups);
		return false;
	}
	build_close(b);
	return true;
}

/* Return: bytes without file-backed pages; 0: unknown. */
static uint64_t memory_of(const struct zygote *z)
{
	char path[48], text[128];
	uint64_t pages = 0, shared = 0;
	char *save = NULL;
	const char *word;

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)z->build.pid);
	if (file_read_text_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	(void)strtok_r(text, " ", &save);
	word = strtok_r(NULL, " ", &save);
	if (!word || parse_u64(word, &pages) < 0)
		return 0;
	word = strtok_r(NULL, " ", &save);
	if (!word || parse_u64(word, &shared) < 0 || shared > pages)
		return 0;
	return (pages - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Also bounds how many children share one hash seed. */
static bool needs_replacement(const struct zygotes *zygotes, const struct zygote *z)
{
	const struct host *host = zygotes->host;

	if (z->forks >= host->zygote_forks || clock_us() >= z->old_us)
		return true;
	return z->forks % SIZE_CHECK_FORKS == 0 && memory_of(z) > host->zygote_memory;
}

static void on_news(struct zygotes *zygotes, struct zygote *z, const struct inject_news *news)
{
	if (news->word == INJECT_FILES)
		return;
	if (news->word == INJECT_READY && z->state == ZYGOTE_STARTING) {
		set_state(z, ZYGOTE_READY);
		z->failures = 0;
		z->old_us = clock_us() + zygotes->host->zygote_age_us;
		log_debug("zygote %s is ready", z->command);
		return;
	}
	if (z->unanswered > 0)
		z->unanswered--;
	/* Restart the timeout: the last of many requests waits for all before it. */
	z->due_us = clock_us() + FILL_TIMEOUT_US;
	if (news->sys != 0) /* the box may have ended */
		log_debug("zygote %s: no child: %s", z->command, strerror(news->sys));
	if (z->unanswered == 0 && needs_replacement(zygotes, z)) {
		log_debug("zygote %s is replaced after %u children", z->command, z->forks);
		end_zygote(zygotes, z);
	}
}

/* The descriptor of FILES; others are closed. */
static void take_files(struct zygote *z, const struct inject_news *news, const int *fds,
                       size_t count)
{
	while (count > 0) {
		int fd = fds[--count];

		if (news->word == INJECT_FILES && z->state == ZYGOTE_STARTING && z->files < 0)
			z->files = fd;
		else
			(void)fd_close(fd);
	}
}

static void read_news(struct zygotes *zygotes, struct zygote *z)
{
	while (z->sock >= 0) {
		struct inject_news news = {0};
		int fds[FD_PASS_MAX];
		size_t count = 0;
		ssize_t n = fd_recv(z->sock, &news, sizeof(news), fds, &count);

		if (n == -EAGAIN || n == -EINTR)
			return;
		take_files(z, &news, fds, count);
		if (n == sizeof(news) && news.magic == INJECT_MAGIC)
			on_news(zygotes, z, &news);
		else
			fail_zygote(zygotes, z, "exited");
	}
}

void zygotes_on_event(struct zygotes *zygotes, uint64_t value)
{
	uint64_t index = value - zygotes->watch;

	if (index < ENGINE_ZYGOTES_MAX)
		read_news(zygotes, &zygotes->all[index]);
}

static uint64_t deadline_of(const struct zygote *z)
{
	if (z->state == ZYGOTE_NONE)
		return UINT64_MAX;
	return z->state == ZYGOTE_READY && z->unanswered == 0 ? z->old_us : z->due_us;
}

static void run_zygote_timer(struct zygotes *zygotes, struct zygote *z, uint64_t now)
{
	if (deadline_of(z) > now)
		return;
	/* If the engine was delayed, the answer may be there. */
	read_news(zygotes, z);
	if (z->state == ZYGOTE_READY && deadline_of(z) > now)
		return;
	if (z->state == ZYGOTE_STARTING)
		fail_zygote(zygotes, z, "not ready in time");
	else if (z->state == ZYGOTE_READY && z->unanswered > 0)
		fail_zygote(zygotes, z, "does not fork in time");
	else if (z->state == ZYGOTE_READY)
		end_zygote(zygotes, z); /* old */
	if (z->state == ZYGOTE_ENDING) {
		if (!clean_up(z)) {
			z->due_us = now + CHECK_AGAIN_US;
			return;
		}
		set_state(z, z->dropped ? ZYGOTE_NONE : ZYGOTE_DOWN);
		z->due_us = now + retry_after(z);
	}
	if (z->state == ZYGOTE_DOWN && z->due_us <= now)
		start_zygote(zygotes, z, now);
}

uint64_t zygotes_work(struct zygotes *zygotes, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < ENGINE_ZYGOTES_MAX; i++) {
		struct zygote *z = &zygotes->all[i];

		run_zygote_timer(zygotes, z, now);
		if (deadline_of(z) < next)
			next = deadline_of(z);
	}
	return next;
}

int zygotes_define(struct zygotes *zygotes, const struct engine_zygote *req, struct error *err)
{
	struct zygote *z = &zygotes->all[req->zygote - 1];

	if (zygotes->host->zygote_lib < 0)
		return error_set(err, ERR_UNAVAILABLE, 0, "zygotes are not available");
	if (z->state != ZYGOTE_NONE && !z->dropped && str_equal(z->command, req->command) &&
	    str_equal(z->modules, req->modules) && str_equal(z->tenant, req->tenant))
		return 0;
	if (z->state != ZYGOTE_NONE && z->state != ZYGOTE_ENDING)
		end_zygote(zygotes, z);
	memcpy(z->command, req->command, sizeof(z->command));
	memcpy(z->modules, req->modules, sizeof(z->modules));
	memcpy(z->tenant, req->tenant, sizeof(z->tenant));
	z->failures = 0;
	z->dropped = false;
	if (zygote_read_command(z, err) < 0) {
		z->dropped = true;
		return -1;
	}
	if (z->state == ZYGOTE_NONE)
		set_state(z, ZYGOTE_DOWN);
	z->due_us = 0;
	return 0;
}

/*
 * On v2 the helper that forks a child (zygote/zygote.c) is in the box's only group, and the zygote
 * waits for it: with a hundredth of a core, for tenths of a second, and so do the boxes of others.
 */
static bool would_wait(const struct host *host, const struct engine_limits *limits)
{
	if (limits->cpu_millicores == 0 || limits->cpu_millicores >= SMALL_QUOTA_MILLICORES)
		return false;
	for (size_t i = 0; i < host->groups.count; i++)
		if (host->groups.trees[i].v2 &&
		    (host->groups.trees[i].kinds & CGROUP_BIT(CGROUP_CPU)))
			return true;
	return false;
}

struct zygote *zygotes_find(struct zygotes *zygotes, const struct engine_request *req,
                            enum engine_start *ret_start)
{
	struct zygote *z = req->zygote > 0 ? &zygotes->all[req->zygote - 1] : NULL;

	if (!z)
		*ret_start = ENGINE_START_COLD;
	else if (req->flags & ENGINE_FLAG_IMAGE)
		*ret_start = ENGINE_START_ROOT;
	else if (would_wait(zygotes->host, &req->limits))
		*ret_start = ENGINE_START_QUOTA;
	else if (z->dropped || z->state == ZYGOTE_NONE || z->failures >= FAILURES_BROKEN ||
	         !str_equal(z->tenant, req->tenant)) /* never another tenant's */
		*ret_start = ENGINE_START_BROKEN;
	else if (z->state != ZYGOTE_READY)
		*ret_start = ENGINE_START_NOT_YET;
	else
		*ret_start = ENGINE_START_ZYGOTE;
	return *ret_start == ENGINE_START_ZYGOTE ? z : NULL;
}

void zygotes_drop(struct zygotes *zygotes)
{
	for (size_t i = 0; i < ENGINE_ZYGOTES_MAX; i++) {
		struct zygote *z = &zygotes->all[i];

		z->dropped = true;
		if (z->state != ZYGOTE_NONE && z->state != ZYGOTE_ENDING)
			end_zygote(zygotes, z);
	}
}

bool zygotes_have_child(const struct zygotes *zygotes, pid_t pid)
{
	for (size_t i = 0; i < ARRAY_SIZE(zygotes->all); i++)
		if (zygotes->all[i].build.pid == pid)
			return true;
	return false;
}

void zygotes_close(struct zygotes *zygotes)
{
	zygotes_drop(zygotes);
	for (size_t i = 0; i < ENGINE_ZYGOTES_MAX; i++) {
		struct zygote *z = &zygotes->all[i];

		if (z->state != ZYGOTE_ENDING)
			continue;
		if (z->build.pid > 0)
			(void)waitpid(z->build.pid, NULL, 0);
		z->build.pidfd = fd_close(z->build.pidfd);
		(void)clean_up(z);
		build_close(&z->build);
	}
}

/*
 * Pins the zygote to this CPU, which is about to be idle while the box runs on another. Otherwise
 * the kernel often wakes the zygote on the box's CPU. The zygote resets its affinity when it wakes;
 * one with unanswered requests is awake.
 */
static void pin_to_this_cpu(const struct zygote *z)
{
	int here = sched_getcpu();
	cpu_set_t set;

	if (here < 0 || here >= CPU_SETSIZE || z->unanswered > 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(here, &set);
	(void)sched_setaffinity(z->build.pid, sizeof(set), &set); /* only an optimisation */
}

/* -1 on v2: the box's group there has all controllers. */
static int cpu_tasks(const struct build *b)
{
	for (size_t i = 0; i < b->host->groups.count; i++)
		if (b->host->groups.trees[i].kinds & CGROUP_BIT(CGROUP_CPU))
			return b->groups.tasks[i];
	return -1;
}

static int open_pid_namespace(const struct build *b)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)b->pid);
	return fd_open(path, O_RDONLY, 0);
}

/* Descriptors in the order of wire/inject.h. */
static int send_fill(struct zygote *z, const struct build *b)
{
	const struct host *host = b->host;
	cleanup_close int pid_ns = open_pid_namespace(b);
	int fds[FD_PASS_MAX] = {b->pidfd, pid_ns, b->inject_child};
	size_t count = INJECT_FILL_FDS;
	int unified = groups_dir(host, &b->groups, CGROUP_UNIFIED);
	int cpu = cpu_tasks(b);
	const bool own_ids = host->ids.mode != ENGINE_IDS_SINGLE;
	const struct inject_fill fill = {
		.magic = INJECT_MAGIC,
		.groups = (unified >= 0 ? INJECT_UNIFIED : 0) | (cpu >= 0 ? INJECT_CPU : 0),
		.agent_id = own_ids ? BOX_AGENT_ID : BOX_PAYLOAD_ID,
		.owner = own_ids ? ids_agent(&host->ids, b->slot) : 0,
	};

	if (pid_ns < 0)
		return pid_ns;
	if (unified >= 0)
		fds[count++] = unified;
	/* The zygote is in its tenant's group of a tree per tenant, and so are its children. */
	for (size_t i = 0; i < host->groups.count; i++)
		if (b->groups.tasks[i] >= 0 && b->groups.tasks[i] != cpu &&
		    !host->groups.trees[i].per_tenant)
			fds[count++] = b->groups.tasks[i];
	if (cpu >= 0)
		fds[count++] = cpu;
	pin_to_this_cpu(z);
	return fd_send(z->sock, &fill, sizeof(fill), fds, count);
}

int step_inject(struct build *b, struct error *err attr_unused)
{
	struct zygote *z = b->zygote;
	int r = z->state == ZYGOTE_READY ? send_fill(z, b) : -EPIPE;

	b->inject_child = fd_close(b->inject_child);
	if (r >= 0) {
		z->forks++;
		if (z->unanswered++ == 0)
			z->due_us = clock_us() + FILL_TIMEOUT_US;
		return 0;
	}
	/* The agent sees EOF and executes the program. */
	log_debug("zygote %s accepts no request: %s", z->command, strerror(-r));
	return 0;
}
