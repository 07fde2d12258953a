/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the process that stops the daemon of a single command and removes its directory after the
 * command has exited. own_daemon.c explains why it is a process.
 */

#include "base/attr.h"

/* Borrowed; the supervisor is a fork and has its own copy. */
struct supervisor_job {
	const char *program; /* path of milliboxd */
	const char *dir;     /* removed at the end */
	const char *socket;
	int link; /* EOF: the command has exited */
	int log;  /* the daemon's stderr */
};

/** supervisor_main - the main function of the supervisor, called after fork. */
void supervisor_main(const struct supervisor_job *job) attr_noreturn;
