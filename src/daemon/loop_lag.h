/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: measures how late the loop runs its timers. */

#include <stdint.h>

struct loop;
struct metrics;
struct timer;

/* Zero: stopped. Must not move while it runs. */
struct loop_lag {
	struct metrics *metrics; /* borrowed */
	struct timer *timer;     /* owned */
	uint64_t due_us;
};

void loop_lag_start(struct loop_lag *lag, struct loop *loop, struct metrics *metrics);
void loop_lag_stop(struct loop_lag *lag);
