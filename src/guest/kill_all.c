/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/kill_all.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/agent.h"

/*
 * Theory of operation. From PID 1 kill(-1) reaches every process at once, and none escapes by
 * forking. It has no exceptions, so with exceptions (known by pid, which stays theirs until we
 * wait) every possible pid is signalled. Not the names in /proc: a process can hide there from an
 * agent that may not trace it.
 *
 * A killed process does not fork; so if no pid was allocated during the walk (/proc/loadavg ends
 * with the last one), none was missed. Otherwise repeat: each round leaves fewer to fork.
 *
 * Beside resident runners the exceptions are all of their processes, by session (getsid needs no
 * right): one that existed before the program started, or a runner's own. While a program runs no
 * runner does; sessions that a runner's threads create meanwhile are killed with the program. A new
 * session that reuses an earlier number, 32768 forks later, is mistaken for the old one and
 * survives, in its creator's own box.
 *
 * Beside other programs only the processes of its own session are known to be a program's: one that
 * made a session could be another's. It lives on, until the box ends or nothing else runs in it.
 *
 * Pids ascend and wrap at the kernel's maximum, 32768 by default: the walk always covers that. With
 * a maximum in the millions, a box needs that many forks before a process can be above the last pid
 * and be missed.
 */

#define ROUNDS_MAX  32
#define PIDS_ALWAYS 32768
#define LOADAVG_LEN 128

static bool is_helper(const struct agent *a, pid_t pid)
{
	return files_has(a, pid) || (a->put.child.status >= 0 && a->put.child.pid == pid);
}

/* Return: the number, or -1. */
static pid_t parse_pid(const char *text)
{
	uint64_t value = 0;

	if (*text < '1' || *text > '9')
		return -1;
	for (; *text >= '0' && *text <= '9' && value < INT32_MAX; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return *text == '\0' && value <= INT32_MAX ? (pid_t)value : -1;
}

/* Return: the last pid allocated, or -1. */
static pid_t last_pid(void)
{
	char text[LOADAVG_LEN + 1];
	cleanup_close int fd = fd_open("/proc/loadavg", O_RDONLY, 0);
	ssize_t n = fd < 0 ? -1 : read(fd, text, LOADAVG_LEN);
	char *end = NULL;

	if (n <= 0)
		return -1;
	text[n] = '\0';
	end = strchr(text, '\n');
	if (end)
		*end = '\0';
	end = strrchr(text, ' ');
	return end ? parse_pid(end + 1) : -1;
}

/* @sid: what is meant, if it is one session. */
typedef bool is_meant_fn(const struct agent *a, pid_t pid, pid_t sid);

static bool is_no_helper(const struct agent *a, pid_t pid, pid_t sid)
{
	(void)sid;
	return !is_helper(a, pid);
}

static bool signal_all(const struct agent *a, is_meant_fn *is_meant, pid_t sid, int signo)
{
	for (int i = 0; i < ROUNDS_MAX; i++) {
		pid_t before = last_pid(), last = before < PIDS_ALWAYS ? PIDS_ALWAYS : before;

		if (before < 0)
			return false;
		for (pid_t pid = 2; pid <= last; pid++)
			if (is_meant(a, pid, sid))
				(void)kill(pid, signo);
		/* Others would be delivered twice. */
		if (signo != SIGKILL || last_pid() == before)
			return true;
	}
	return false;
}

void kill_all_signal(const struct agent *a, int signo)
{
	bool has_helpers = files_any(a) || a->put.child.status >= 0;

	if (!has_helpers || !signal_all(a, is_no_helper, 0, signo))
		(void)kill(-1, signo);
}

static bool is_noted(const struct kill_all_snapshot *c, pid_t sid)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->sids[i] == sid)
			return true;
	return false;
}

void kill_all_take_snapshot(struct agent *a)
{
	struct kill_all_snapshot *c = &a->snapshot;
	pid_t last = last_pid();

	*c = (struct kill_all_snapshot){.known = last >= 0};
	for (pid_t pid = 2; c->known && pid <= (last < PIDS_ALWAYS ? PIDS_ALWAYS : last); pid++) {
		pid_t sid = getsid(pid);

		if (sid <= 0 || is_noted(c, sid))
			continue;
		c->known = c->count < KILL_ALL_SESSIONS_MAX;
		if (c->known)
			c->sids[c->count++] = sid;
	}
}

static bool is_since(const struct agent *a, pid_t pid, pid_t unused)
{
	pid_t sid = getsid(pid);

	(void)unused;
	if (sid <= 0 || is_helper(a, pid) || resident_has(a, pid) || resident_has(a, sid))
		return false;
	/* Its first process may be older than the snapshot. */
	return sid == a->proc.child.pid || !is_noted(&a->snapshot, sid);
}

bool kill_all_since_snapshot(const struct agent *a)
{
	return a->snapshot.known && signal_all(a, is_since, 0, SIGKILL);
}

static bool is_of_session(const struct agent *a, pid_t pid, pid_t sid)
{
	(void)a;
	return getsid(pid) == sid;
}

bool kill_all_session(const struct agent *a, pid_t sid)
{
	return sid > 0 && signal_all(a, is_of_session, sid, SIGKILL);
}
