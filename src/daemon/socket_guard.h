/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: removes the Unix socket of a daemon that dropped the right to do so. A daemon started as
 * root creates its socket in a directory of root's and then switches to another user. A child
 * that keeps only that right waits until the daemon ends, for whatever reason, removes the name
 * and exits. It reads nothing but EOF of a pipe. Until then it also holds the daemon's lock, so
 * that the next daemon cannot create a socket there that the guard would mistake for the old one.
 */

#include "base/attr.h"
#include "base/error.h"
#include <sys/types.h>

struct socket_guard {
	pid_t pid; /* 0: none */
	int link;  /* owned; closing it is the command */
};

/**
 * socket_guard_start - for the existing socket at @path. @lock: the daemon's; the guard keeps a
 * copy. Forks: call before any thread exists.
 */
int socket_guard_start(struct socket_guard *g, const char *path, int lock,
                       struct error *err) attr_must_check;
/** socket_guard_end - have the socket removed, and wait for that. */
void socket_guard_end(struct socket_guard *g);
