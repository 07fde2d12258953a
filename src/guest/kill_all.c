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
 * Theory of operation. From PID 1 kill(-1) is everybody at once, and nothing can fork its way out
 * of it. It knows no exceptions, so where there are some (known by their pids, which are ours until
 * we have waited for them) every pid that can be anybody's gets its signal. Not by the names in
 * /proc: a process can hide there from an agent that has no right to trace it.
 *
 * A process that was killed does not fork any more; so when no pid was given away from before the
 * walk until after it, nobody was missed. /proc/loadavg ends with the last one that was given in
 * our namespace. Else once more: each round leaves fewer to fork.
 *
 * Beside runners that stay the exceptions are all that is theirs, and it is the session of
 * processes that tells (getsid asks for no right): one that was there before the program began, or
 * a runner's own. While a program runs no runner does, by the order of executions; what its threads
 * put into new sessions meanwhile goes with the program. A session whose number was another's
 * before, 32768 forks ago, is taken for that and stays: in the box of who made it.
 *
 * Pids are given in ascending order and start again behind the kernel's maximum, by default 32768:
 * up to there the walk always goes. Where an administrator or systemd has set millions, it takes
 * that many forks in one box until a process can sit above the last one and be missed.
 */

#define ROUNDS_MAX  32
#define PIDS_ALWAYS 32768
#define LOADAVG_LEN 128

static bool is_helper(const struct agent *a, pid_t pid)
{
	return files_has(a, pid) || (a->put.child.status >= 0 && a->put.child.pid == pid);
}

static bool has_helpers(const struct agent *a)
{
	return files_any(a) || a->put.child.status >= 0;
}

/* Return: the number, or -1: @text is none. */
static pid_t parse_pid(const char *text)
{
	uint64_t value = 0;

	if (*text < '1' || *text > '9')
		return -1;
	for (; *text >= '0' && *text <= '9' && value < INT32_MAX; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return *text == '\0' && value <= INT32_MAX ? (pid_t)value : -1;
}

/* Return: the pid that was given last, or -1. */
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

typedef bool is_meant_fn(const struct agent *a, pid_t pid);

static bool is_no_helper(const struct agent *a, pid_t pid)
{
	return !is_helper(a, pid);
}

static void signal_each(const struct agent *a, is_meant_fn *is_meant, int signo, pid_t last)
{
	/* What is nobody's, or nobody's any more, is no failure. */
	for (pid_t pid = 2; pid <= last; pid++)
		if (is_meant(a, pid))
			(void)kill(pid, signo);
}

static bool signal_all(const struct agent *a, is_meant_fn *is_meant, int signo)
{
	for (int i = 0; i < ROUNDS_MAX; i++) {
		pid_t before = last_pid();

		if (before < 0)
			return false;
		signal_each(a, is_meant, signo, before < PIDS_ALWAYS ? PIDS_ALWAYS : before);
		/* Only what kills is worth repeating: others would be told twice. */
		if (signo != SIGKILL || last_pid() == before)
			return true;
	}
	return false;
}

void kill_all_signal(const struct agent *a, int signo)
{
	if (!has_helpers(a) || !signal_all(a, is_no_helper, signo))
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

static bool is_since(const struct agent *a, pid_t pid)
{
	pid_t sid = getsid(pid);

	if (sid <= 0 || is_helper(a, pid) || resident_has(a, pid) || resident_has(a, sid))
		return false;
	/* Its first process may have been in the box before anybody knew what for. */
	return sid == a->proc.child.pid || !is_noted(&a->snapshot, sid);
}

bool kill_all_since_snapshot(const struct agent *a)
{
	return a->snapshot.known && signal_all(a, is_since, SIGKILL);
}
