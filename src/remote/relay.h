/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: moves bytes between the daemon's socket and the stream of a server, in both directions,
 * without reading them. Bounded: a side that does not read stops the other one. What the agent has
 * said last still arrives before the end.
 */

#include "base/attr.h"

struct loop;
struct relay;
struct remote_stream;

/* @sys: 0 at EOF, else a positive errno. May free the relay. */
typedef void relay_end_fn(void *ctx, int sys);

void relay_free(struct relay *r);
/** relay_new - takes @near and @far. */
struct relay *relay_new(struct loop *loop, int near, struct remote_stream *far,
                        relay_end_fn *on_end, void *ctx) attr_owned(relay_free);
