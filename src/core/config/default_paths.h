/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: default paths: sockets and state depend on who runs the daemon, programs on where the
 * daemon itself is. In a build directory they are found in place; installed, they are where the
 * build was configured to put them. Reads the file system, changes nothing; the code that creates
 * a directory checks its owner.
 */

#include <sys/types.h>

/* Who runs the daemon and from where. Strings are borrowed and may be NULL. */
struct default_paths_who {
	uid_t uid;
	const char *runtime; /* $XDG_RUNTIME_DIR */
	const char *state;   /* $XDG_STATE_HOME */
	const char *home;    /* $HOME */
	const char *exe_dir; /* folder of the running program */
};

/** default_paths_value - default of a setting that depends on the user. Owned; NULL: unknown. */
char *default_paths_value(const struct default_paths_who *who, const char *key);
/** default_paths_exe_dir - folder of the running program. Owned; NULL: unknown. */
char *default_paths_exe_dir(void);
/** default_paths_hint - the default of @key in words ("beside the program"), for help texts. */
const char *default_paths_hint(const char *key);
