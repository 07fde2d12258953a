/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how a box outlives its daemon. Its agent has a second descriptor, the reattach socket to the
 * engine. When the daemon's stream ends, the agent continues and keeps its messages (journal.h);
 * when a new stream arrives over the reattach socket, it sends HELLO, RESUME, a DESCRIBE for each
 * execution and runner, and all messages again. Nothing of the old stream is continued, not even
 * half a frame.
 *
 * The payload has neither descriptor: they are close-on-exec, and a child that becomes the payload
 * closes all but its own.
 */

#include "base/attr.h"
#include <stdbool.h>

struct agent;

/** reattach_open - the arguments decide whether the box is kept. */
int reattach_open(struct agent *a, int argc, char **argv) attr_must_check;
/** reattach_on_stream_lost - Return: whether to continue without a daemon. */
bool reattach_on_stream_lost(struct agent *a);
/** reattach_accept - receive a new stream. Return: 0, 1: the engine is gone, or negative. */
int reattach_accept(struct agent *a) attr_must_check;
