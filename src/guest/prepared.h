/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a program whose process is there before its code: PREPARE starts it, with pipes, report
 * socket and filter of its own, and it waits at its descriptor 3, one end of a SOCK_SEQPACKET pair.
 * RUN with its own id as runner is its request; from then on it is an execution as any other.
 *
 *   runner -> agent  "ready"                      it waits for its request
 *   agent -> runner  "run ID PATH\0" "WORD\0"...  as to a runner that stays, with "stdin" for "run"
 *                                                 where descriptor 4 is to be its stdin
 *   runner -> agent  "done CODE"                  instead of exiting, which is much slower
 *
 * A runner waits with poll() and then reads: what was read counts as begun (prepared.c), and a
 * process that is being killed must not read.
 *
 * Who says "done" has the payload's authority, as who exits with a code has: everything in the box
 * is killed either way. Any other word costs it the channel, and then the kernel's word counts.
 */

#include "base/attr.h"
#include "base/error.h"
#include "wire/msg.h"
#include <stdint.h>

struct agent;

int prepared_start(struct agent *a, uint32_t id, const struct msg_prepare *msg,
                   struct error *err) attr_must_check;
/** prepared_run - the request. Return: 0, or -1 with *err: the execution has failed. */
int prepared_run(struct agent *a, const struct msg_run *msg, struct error *err) attr_must_check;
/** prepared_fd - what to wait on. */
int prepared_fd(const struct agent *a);
/** prepared_pump - there is something at prepared_fd. 0 or a negative errno. */
int prepared_pump(struct agent *a) attr_must_check;
/** prepared_reaped - its process ended. 0 or a negative errno. */
int prepared_reaped(struct agent *a, int wait_status) attr_must_check;
