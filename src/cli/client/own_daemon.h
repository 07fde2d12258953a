/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a daemon for one command, used if none listens at the default socket. It has a private
 * temporary directory; both are removed however the command ends.
 */

#include "base/attr.h"
#include "base/error.h"

struct own_daemon;

/**
 * own_daemon_start - start milliboxd and wait until it accepts connections, or until a signal
 * arrives at @interrupt_fd. Return: owned, or NULL (ERR_UNAVAILABLE; sys ECANCELED: a signal).
 */
void own_daemon_end(struct own_daemon *d);
struct own_daemon *own_daemon_start(int interrupt_fd, struct error *err) attr_owned(own_daemon_end);
const char *own_daemon_socket(const struct own_daemon *d);
/** own_daemon_show_log - copy the daemon's log to stderr, to explain a failure. */
void own_daemon_show_log(const struct own_daemon *d);
