/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the process that outlives a command by the moments it takes to end the command's own daemon
 * and to remove its directory. See own_daemon.c for why it is one.
 */

#include "base/attr.h"

/* Borrowed; the supervisor is a fork and has its own copy of everything. */
struct supervisor_job {
	const char *program; /* path of milliboxd */
	const char *dir;     /* removed at the end */
	const char *socket;
	int link; /* closed by the command's end: the sign to finish */
	int log;  /* the daemon's stderr */
};

/** supervisor_main - the whole life of the supervisor, right after fork. */
void supervisor_main(const struct supervisor_job *job) attr_noreturn;
