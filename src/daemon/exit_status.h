/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: exit statuses of milliboxd. Supervisors read them, and commands that start it. */

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
