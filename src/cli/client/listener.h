/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the process behind a daemon's Unix socket, by the kernel's word: a file with a number could
 * name a process of somebody else by now.
 */

#include "base/attr.h"
#include "base/error.h"
#include "client/millibox.h"
#include <stdbool.h>
#include <sys/types.h>

struct listener {
	int pidfd; /* -1: none */
	pid_t pid; /* 0: in another PID namespace */
};

#define LISTENER_INIT                                                                              \
	{                                                                                          \
		.pidfd = -1                                                                        \
	}

/**
 * listener_find - at the socket of @client. Return: 1: it listens; @ret_listener has no process if
 * the daemon is known by a URL only; 0: none listens; -1 with *err. Call listener_done after 1.
 */
int listener_find(struct millibox_client *client, struct listener *ret_listener,
                  struct error *err) attr_must_check;
void listener_done(struct listener *listener);
#define cleanup_listener attr_cleanup(listener_done)
/** listener_is_daemon - is it milliboxd? Something else may listen at a socket that the user named.
 */
bool listener_is_daemon(const struct listener *listener);
/** listener_is_unit - does systemd run it as the installed unit? It would start it again. */
bool listener_is_unit(const struct listener *listener);
