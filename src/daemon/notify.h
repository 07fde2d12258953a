/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: tells the service manager that the daemon is ready or stopping: a datagram to the Unix
 * socket that NOTIFY_SOCKET names (sd_notify(3)). By hand: libsystemd would bring five more
 * libraries into the daemon for these lines.
 */

#include "base/attr.h"
#include "base/error.h"

/**
 * notify_open - connect, while paths can still be reached. @name: NOTIFY_SOCKET, an absolute path
 * or "@" and an abstract name; NULL or "": no notification, and @ret_sock is -1.
 */
int notify_open(const char *name, int *ret_sock, struct error *err) attr_must_check;
/** notify_send - @state: "READY=1" and the like; @sock may be -1. Failures are logged. */
void notify_send(int sock, const char *state);
