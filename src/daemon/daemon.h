/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon as a whole: builds the parts in order, owns them, and takes them down in reverse.
 * What an end has to do with an exit status is here too, because supervisors read it.
 */

#include "base/attr.h"
#include "base/error.h"

struct config;

enum daemon_exit {
	DAEMON_STOPPED,     /* by a signal */
	DAEMON_ENGINE_LOST, /* nothing can be run any more: to be started anew */
	DAEMON_BAD_USAGE,   /* of the command line */
	DAEMON_BAD_CONFIG,  /* of the settings */
	DAEMON_BAD_PLACE,   /* a directory, an address or a socket cannot be used */
	DAEMON_NO_ENGINE,   /* the engine cannot start */
	DAEMON_NO_LOCKDOWN, /* privileges cannot be given up: nothing is served with them */
};

/** daemon_run - all of it. What goes wrong is logged. Return: the exit status. */
enum daemon_exit daemon_run(const struct config *config);
