/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a program whose process starts before its code is known. PREPARE starts it, with its own
 * pipes, report socket and filter; it waits at descriptor 3, one end of a SOCK_SEQPACKET pair. RUN
 * with its own id as runner is its request and makes it an ordinary execution.
 *
 *   runner -> agent  "ready"                      it waits for its request
 *   agent -> runner  "run ID PATH\0" "ARG\0"...   as to a resident runner; "stdin" instead of
 *                                                 "run" if descriptor 4 is to be its stdin
 *   runner -> agent  "done CODE"                  instead of exiting, which is much slower
 *
 * A runner waits with poll() and then reads: a request that was read counts as begun (prepared.c).
 *
 * "done" has the payload's authority, like an exit code. Any other message closes the channel; then
 * the kernel's exit status counts.
 */

#include "base/attr.h"
#include "base/error.h"
#include "wire/msg.h"
#include <stdint.h>

struct agent;

int prepared_start(struct agent *a, uint32_t id, const struct msg_prepare *msg,
                   struct error *err) attr_must_check;
/** prepared_run - Return: 0, or -1 with *err: the execution failed. */
int prepared_run(struct agent *a, const struct msg_run *msg, struct error *err) attr_must_check;
int prepared_fd(const struct agent *a);
/** prepared_pump - prepared_fd is readable. */
int prepared_pump(struct agent *a) attr_must_check;
int prepared_reaped(struct agent *a, int wait_status) attr_must_check;
