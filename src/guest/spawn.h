/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a child with the payload's rights. It drops everything (drop.h), then does its work: execute
 * a program, or write a file. Until then it can tell the agent what went wrong; the end of the
 * status socket without a word means that it executed its program.
 */

#include "base/attr.h"
#include "base/error.h"
#include "guest/drop.h"
#include <stdbool.h>
#include <sys/types.h>

struct ucred;

/* Runs in the child, as the payload. Returns only to fail: 0 is the end of work, -1 with @err. */
typedef int (*spawn_work_fn)(const void *arg, int status, struct error *err);

struct spawned {
	pid_t pid;
	int status;    /* owned: socket to the child, non-blocking */
	bool injected; /* a zygote's; then the pid is 0 until it is there */
};

/** spawn_payload - @plan->status is filled in here. */
int spawn_payload(struct drop_plan *plan, spawn_work_fn work, const void *arg,
                  struct spawned *ret_child, struct error *err) attr_must_check;

enum spawn_news {
	SPAWN_WAIT,     /* nothing yet */
	SPAWN_LISTENER, /* *ret_listener is the caller's */
	SPAWN_ERROR,    /* *ret_error: it ended without doing its work */
	SPAWN_DONE,     /* the work is done; of a zygote's child: it is the payload */
	SPAWN_END,      /* the socket ended: a program is running, or the child was killed */
};

/** spawn_read - the next word of the child. */
enum spawn_news spawn_read(int status, int *ret_listener, struct error *ret_error);
/** spawn_read_from - the same, of a socket with SO_PASSCRED. */
enum spawn_news spawn_read_from(int status, int *ret_listener, struct ucred *ret_sender,
                                struct error *ret_error);
/** spawn_say_started - tell the host that program @id runs. 0 or a negative errno. */
int spawn_say_started(const struct spawned *child, struct buf *out, uint32_t id) attr_must_check;
