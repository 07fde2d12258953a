/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop_lag.h"

#include "base/attr.h"
#include "base/clock.h"
#include "core/observe/metrics.h"
#include "io/timer.h"

/* Costs one wake-up a second. */
#define INTERVAL_US (1 * USEC_PER_SEC)

static void arm_timer(struct loop_lag *lag)
{
	lag->due_us = clock_us() + INTERVAL_US;
	timer_start(lag->timer, INTERVAL_US);
}

static void on_timer(void *ctx)
{
	struct loop_lag *lag = ctx;
	uint64_t now = clock_us();
	uint64_t late = now > lag->due_us ? now - lag->due_us : 0;

	metrics_observe(lag->metrics, METRIC_LOOP_LAG, (double)late / 1e6);
	arm_timer(lag);
}

void loop_lag_start(struct loop_lag *lag, struct loop *loop, struct metrics *metrics)
{
	lag->metrics = metrics;
	lag->timer = timer_new(loop, on_timer, lag);
	arm_timer(lag);
}

void loop_lag_stop(struct loop_lag *lag)
{
	timer_free(TAKE_PTR(lag->timer));
}
