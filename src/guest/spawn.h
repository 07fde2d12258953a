/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a child with the payload's rights. It drops all privileges (drop.h), then executes a program
 * or writes a file. Until then it reports errors over the status socket; EOF without a message
 * means exec.
 */

#include "base/attr.h"
#include "base/error.h"
#include "guest/drop.h"
#include <stdbool.h>
#include <sys/types.h>

struct ucred;

/* In the child, as the payload. Return: 0 when done, -1 with @err. */
typedef int (*spawn_work_fn)(const void *arg, int status, struct error *err);

struct spawned {
	pid_t pid;
	int status;    /* owned: non-blocking socket to the child */
	bool injected; /* a zygote's; the pid is 0 until it has reported */
};

/** spawn_payload - fills in @plan->status. */
int spawn_payload(struct drop_plan *plan, spawn_work_fn work, const void *arg,
                  struct spawned *ret_child, struct error *err) attr_must_check;

enum spawn_news {
	SPAWN_WAIT,     /* nothing yet */
	SPAWN_LISTENER, /* the caller owns *ret_listener */
	SPAWN_ERROR,    /* *ret_error: exited without doing its work */
	SPAWN_DONE,     /* its work; a zygote's child: it is the payload */
	SPAWN_END,      /* EOF: a program runs, or the child was killed */
};

enum spawn_news spawn_read(int status, int *ret_listener, struct error *ret_error);
enum spawn_news spawn_read_from(int status, int *ret_listener, struct ucred *ret_sender,
                                struct error *ret_error);
int spawn_send_started(const struct spawned *child, struct buf *out, uint32_t id) attr_must_check;
