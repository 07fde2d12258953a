/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the process that stops a command's own daemon and removes its directory after the command
 * exits. See own_daemon.c.
 */

#include "base/attr.h"

/* Borrowed; the fork has its own copy. */
struct supervisor_job {
	const char *program; /* path of milliboxd */
	const char *dir;     /* removed at the end */
	const char *socket;
	const char *isolation; /* strict, best-effort; NULL: of the environment, or the default */
	int link;              /* EOF: the command has exited */
	int log;               /* the daemon's stderr */
};

/** supervisor_main - called after fork. */
void supervisor_main(const struct supervisor_job *job) attr_noreturn;
