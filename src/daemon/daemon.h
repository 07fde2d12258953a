/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon as a whole: creates the parts in order, owns them, stops them in reverse.
 * Supervisors read the exit statuses.
 */

#include "base/attr.h"
#include "base/error.h"

struct config;

enum daemon_exit {
	DAEMON_STOPPED,     /* by a signal */
	DAEMON_ENGINE_LOST, /* nothing can run: restart it */
	DAEMON_BAD_USAGE,   /* command line */
	DAEMON_BAD_CONFIG,  /* settings */
	DAEMON_BAD_PLACE,   /* a directory, address or socket is unusable */
	DAEMON_NO_ENGINE,   /* the engine cannot start */
	DAEMON_NO_LOCKDOWN, /* privileges cannot be dropped: nothing is served */
	DAEMON_NOT_STRICT,  /* only isolation: best-effort can start on this host */
};

/** daemon_run - until stopped; logs its errors. Return: the exit status. */
enum daemon_exit daemon_run(const struct config *config);
