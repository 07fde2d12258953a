/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how a box outlives its daemon. The agent of such a box has a second descriptor, the hot line
 * to the engine. When the daemon's stream ends it goes on with what runs and keeps what there is to
 * say (journal.h); when a new stream comes over the hot line it says HELLO, RESUME, a DESCRIBE for
 * each execution and runner, and then all of it again. A stream always begins afresh: of the old
 * one nothing is continued, not even half a frame.
 *
 * The payload never has either descriptor: they are close-on-exec, and what becomes the payload
 * closes all but its own.
 */

#include "base/attr.h"
#include <stdbool.h>

struct agent;

/** reattach_open - @argc and @argv of the agent say whether there is one. */
int reattach_open(struct agent *a, int argc, char **argv) attr_must_check;
/** reattach_on_stream_lost - the daemon is gone. Return: whether the agent goes on without it. */
bool reattach_on_stream_lost(struct agent *a);
/** reattach_accept - read it: a new stream. Return: 0, 1 when the engine is gone, or negative. */
int reattach_accept(struct agent *a) attr_must_check;
