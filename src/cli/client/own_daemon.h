/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a daemon for one command, if none listens at the default socket. Its private temporary
 * directory is removed however the command ends.
 */

#include "base/attr.h"
#include "base/error.h"

struct own_daemon;

/**
 * own_daemon_start - start milliboxd and wait until it accepts connections, or a signal arrives at
 * @interrupt_fd. Return: owned, or NULL (ERR_UNAVAILABLE; sys ECANCELED: a signal).
 */
void own_daemon_end(struct own_daemon *d);
struct own_daemon *own_daemon_start(int interrupt_fd, struct error *err) attr_owned(own_daemon_end);
const char *own_daemon_socket(const struct own_daemon *d);
/** own_daemon_show_log - copy its log to stderr. */
void own_daemon_show_log(const struct own_daemon *d);
