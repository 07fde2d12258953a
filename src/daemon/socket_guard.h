/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: removes the Unix socket of a daemon that dropped the right to do so. A daemon started as
 * root creates its socket in root's directory and then switches users. A child that keeps only that
 * right waits for the daemon's end, removes the name and exits. It reads only EOF of a pipe.
 * Meanwhile it holds the daemon's lock, so that the next daemon cannot create a socket there that
 * the guard would take for the old one.
 */

#include "daemon/guard.h"

/** socket_guard_start - for the socket at @path. The guard keeps a copy of @lock. */
int socket_guard_start(struct guard *g, const char *path, int lock,
                       struct error *err) attr_must_check;
