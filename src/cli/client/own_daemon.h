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

/* Of a milliboxd that ends with DAEMON_NOT_STRICT. */
#define DAEMON_NOT_STRICT_REMEDY                                                                   \
	"milliboxd did not start: this host lacks what isolation strict requires, see above; "     \
	"to accept the loss: --isolation best-effort, or MILLIBOX_ISOLATION=best-effort in the "   \
	"environment"

/* What the host lacks. */
enum own_daemon_lack {
	OWN_DAEMON_LACKS_NOTHING, /* it failed for another reason */
	OWN_DAEMON_LACKS_STRICT,  /* isolation: best-effort would start */
	OWN_DAEMON_LACKS_ALL      /* the engine cannot start */
};

/**
 * own_daemon_start - start milliboxd and wait until it accepts connections, or a signal arrives at
 * @interrupt_fd. @isolation: NULL: of the environment, or the default. Return: owned, or NULL
 * (ERR_UNAVAILABLE; sys ECANCELED: a signal) with *ret_lack.
 */
void own_daemon_end(struct own_daemon *d);
struct own_daemon *own_daemon_start(const char *isolation, int interrupt_fd,
                                    enum own_daemon_lack *ret_lack, struct error *err)
	attr_owned(own_daemon_end);
void own_daemon_endp(struct own_daemon **d);
#define cleanup_own_daemon attr_cleanup(own_daemon_endp)
const char *own_daemon_socket(const struct own_daemon *d);
/** own_daemon_show_log - copy its log to stderr. */
void own_daemon_show_log(const struct own_daemon *d);
