/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: signal every process in the box except the agent and its file workers. Ending a program ends
 * all of it, including processes that left its group or were reparented; an upload belongs to no
 * program.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct agent;

#define KILL_ALL_SESSIONS_MAX 512

/* Sessions from before a program, beside resident runners. */
struct kill_all_snapshot {
	pid_t sids[KILL_ALL_SESSIONS_MAX];
	size_t count;
	bool known; /* false: not taken, or too many sessions */
};

/**
 * kill_all_signal - the agent must be PID 1. After SIGKILL none of the processes can run or fork.
 * If they fork faster than they are found, kills the file workers too.
 */
void kill_all_signal(const struct agent *a, int signo);

/** kill_all_take_snapshot - call before a program starts. */
void kill_all_take_snapshot(struct agent *a);
/**
 * kill_all_since_snapshot - kill every process whose session is newer than the snapshot, except
 * resident runners and theirs. A process that left the program's session has a new one. Return:
 * whether it was possible.
 */
bool kill_all_since_snapshot(const struct agent *a) attr_must_check;
/** kill_all_session - kill every process of session @sid. Return: whether it was possible. */
bool kill_all_session(const struct agent *a, pid_t sid) attr_must_check;
