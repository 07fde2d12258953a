/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a daemon for one command (cli/client/own_daemon.h), and --isolation of such commands. */

#include "base/attr.h"
#include "base/error.h"
#include "cli/client/own_daemon.h"

struct daemon_options;
struct millibox_client;

/**
 * start_daemon - own_daemon_start; what the host lacks becomes the one remedy that the error names.
 */
struct own_daemon *start_daemon(const struct daemon_options *at, int interrupt_fd,
                                struct error *err) attr_owned(own_daemon_end);
/** start_daemon_check - ERR_INVALID: --isolation has no such word. */
int start_daemon_check(const struct daemon_options *at, struct error *err) attr_must_check;
/** start_daemon_found - whether the daemon that listens has the isolation that is asked for. */
int start_daemon_found(const struct daemon_options *at, struct millibox_client *client,
                       struct error *err) attr_must_check;
