/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a daemon for one command, if none listens at the default socket. Its private temporary
 * directory is removed however the command ends.
 */

#include "base/attr.h"
#include "base/error.h"
#include "client/millibox.h"

struct own_daemon;

/**
 * own_daemon_start - start milliboxd and wait until it accepts connections, or a signal arrives at
 * @interrupt_fd. Return: owned, or NULL (ERR_UNAVAILABLE; sys ECANCELED: a signal).
 */
void own_daemon_end(struct own_daemon *d);
struct own_daemon *own_daemon_start(int interrupt_fd, struct error *err) attr_owned(own_daemon_end);
void own_daemon_endp(struct own_daemon **d);
#define cleanup_own_daemon attr_cleanup(own_daemon_endp)
/**
 * own_daemon_find - make sure that @client has a daemon: if none listens at the default socket,
 * start one. Return: 0 with the owned daemon, NULL: it is not ours; or -1.
 */
int own_daemon_find(struct millibox_client *client, int interrupt_fd, struct own_daemon **ret_own,
                    struct error *err) attr_must_check;
const char *own_daemon_socket(const struct own_daemon *d);
/** own_daemon_show_log - copy its log to stderr. */
void own_daemon_show_log(const struct own_daemon *d);
