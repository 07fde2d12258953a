/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a daemon for one command (cli/client/own_daemon.h), and --isolation of such commands. */

#include "base/attr.h"
#include "base/error.h"
#include "cli/client/own_daemon.h"

struct daemon_options;
struct millibox_client;

/** start_daemon_check - ERR_INVALID: --isolation has no such word. */
int start_daemon_check(const struct daemon_options *at, struct error *err) attr_must_check;
/**
 * start_daemon_find - make sure that @client has a daemon with the isolation that is asked for: if
 * none listens at the default socket, start one. What the host lacks for that becomes the one
 * remedy that the error names. Return: 0 with the owned daemon, NULL: it is not ours; or -1.
 */
int start_daemon_find(const struct daemon_options *at, struct millibox_client *client,
                      int interrupt_fd, struct own_daemon **ret_own,
                      struct error *err) attr_must_check;
