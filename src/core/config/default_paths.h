/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: default paths: sockets and state depend on the user, programs on where the daemon is (build
 * directory or installed). Only reads the file system; the code that creates a directory checks its
 * owner.
 */

#include <sys/types.h>

/* Strings are borrowed and may be NULL. */
struct default_paths_who {
	uid_t uid;
	const char *runtime; /* $XDG_RUNTIME_DIR */
	const char *state;   /* $XDG_STATE_HOME */
	const char *home;    /* $HOME */
	const char *exe_dir; /* folder of the daemon's executable */
};

/** default_paths_value - default for @key. Owned; NULL: unknown. */
char *default_paths_value(const struct default_paths_who *who, const char *key);
/** default_paths_exe_dir - folder of the executable. Owned; NULL: unknown. */
char *default_paths_exe_dir(void);
/** default_paths_hint - the default in words, for help texts. */
const char *default_paths_hint(const char *key);
