/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a daemon for the lifetime of one command, when none listens at the default socket. It lives
 * in a private temporary directory and ends, with the directory, however the command ends.
 */

#include "base/attr.h"
#include "base/error.h"

struct own_daemon;

/**
 * own_daemon_start - start milliboxd and wait until it answers. @interrupt_fd is waited for too
 * (see interrupt.h). Return: owned, or NULL (ERR_UNAVAILABLE; sys ECANCELED when interrupted).
 */
void own_daemon_end(struct own_daemon *d);
struct own_daemon *own_daemon_start(int interrupt_fd, struct error *err) attr_owned(own_daemon_end);
const char *own_daemon_socket(const struct own_daemon *d);
/** own_daemon_show_log - what the daemon wrote, to stderr: it says why things went wrong. */
void own_daemon_show_log(const struct own_daemon *d);
