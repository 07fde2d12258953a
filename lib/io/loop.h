/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one thread, one loop: thin adapters over libuv's handles (only lib/io includes uv.h).
 * Callbacks run one at a time. An object may be freed in its own callback: its handle closes at
 * once, its memory is freed after the dispatch.
 *
 * Free every watch, timer, stream and signal_watch before its loop.
 */

#include "base/attr.h"
#include "io/signal.h"
#include "io/timer.h"
#include "io/watch.h"
#include <stdbool.h>

struct loop;

typedef void loop_fn(void *arg);

/** loop_free - run deferred work, then free; @loop may be NULL. */
void loop_free(struct loop *loop);
struct loop *loop_new(void) attr_owned(loop_free);
/** loop_run - until loop_stop. */
void loop_run(struct loop *loop);
/** loop_run_once - one round of events; @wait: block for the first. For tests. */
void loop_run_once(struct loop *loop, bool wait);
void loop_stop(struct loop *loop);
/** loop_defer - after the current dispatch, in order. */
void loop_defer(struct loop *loop, loop_fn *fn, void *arg);
/** loop_cancel - drop deferred work with this @fn and @arg. */
void loop_cancel(struct loop *loop, loop_fn *fn, void *arg);
