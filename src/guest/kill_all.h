/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: everybody in the box but the agent and the children that do its file operations. Whoever
 * started a program wants all of it to end, also what left its process group and its parents; an
 * upload that goes on meanwhile is nobody's program.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct agent;

#define KILL_ALL_SESSIONS_MAX 512

/* Which sessions of processes there were when a program began beside runners that stay. */
struct kill_all_snapshot {
	pid_t sids[KILL_ALL_SESSIONS_MAX];
	size_t count;
	bool known; /* false: nobody looked, or there were too many */
};

/**
 * kill_all_signal - to all of them; the agent must be PID 1. After SIGKILL nobody of them can run
 * or fork any more. When they fork faster than they can be found, the file operations end with
 * them.
 */
void kill_all_signal(const struct agent *a, int signo);

/** kill_all_take_snapshot - a program is about to begin: whoever is there now is not of it. */
void kill_all_take_snapshot(struct agent *a);
/**
 * kill_all_since_snapshot - everybody who has come since then, beside the runners that stay and
 * theirs. Nobody can join a session of processes: who has left that of the program has one that is
 * new. Return: whether it was possible.
 */
bool kill_all_since_snapshot(const struct agent *a) attr_must_check;
