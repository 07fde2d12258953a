/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: removes the Unix socket of a daemon that gave up the right to do so itself. A daemon started
 * as root makes its socket in a directory of root's and then becomes somebody else. A child that
 * stays behind with nothing but that right waits for the daemon's end, by whatever cause, removes
 * the name and ends. It reads nothing but the end of a pipe. Until then it holds the daemon's lock
 * too: the next daemon shall not put a socket there that this one would take for the old one.
 */

#include "base/attr.h"
#include "base/error.h"
#include <sys/types.h>

struct socket_guard {
	pid_t pid; /* 0: none */
	int link;  /* owned; closing it is the order */
};

/**
 * socket_guard_start - for the socket at @path, which is there. @lock: of the daemon, which the
 * guard gets a copy of. Forks: before any thread.
 */
int socket_guard_start(struct socket_guard *g, const char *path, int lock,
                       struct error *err) attr_must_check;
/** socket_guard_end - have the socket removed, and wait for it. */
void socket_guard_end(struct socket_guard *g);
