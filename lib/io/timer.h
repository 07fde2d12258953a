/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: deadlines, on the monotonic clock. */

#include "base/attr.h"
#include <stdint.h>

struct loop;
struct timer;

typedef void timer_fn(void *ctx);

void timer_free(struct timer *t);
struct timer *timer_new(struct loop *loop, timer_fn *fn, void *ctx) attr_owned(timer_free);
/** timer_start - fire once, @delay_us from now (rounded up to ms, never early); restarts. */
void timer_start(struct timer *t, uint64_t delay_us);
void timer_stop(struct timer *t);
