/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/run_metrics.h"

#include "core/run/outcome.h"
#include "driver/box_spec.h"

#define COULD_NOT_RUN "error"

static double seconds(uint64_t us)
{
	return (double)us / 1e6;
}

static void count_usage(struct metrics *m, const struct outcome *o)
{
	if (o->cpu_us != COUNTER_UNKNOWN)
		metrics_count(m, METRIC_EXEC_CPU, seconds(o->cpu_us));
	metrics_count_for(m, METRIC_EXEC_OUTPUT, METRIC_LABELS("stdout"), (double)o->stdout_bytes);
	metrics_count_for(m, METRIC_EXEC_OUTPUT, METRIC_LABELS("stderr"), (double)o->stderr_bytes);
	if (outcome_limit_name(o->limit))
		metrics_count_for(m, METRIC_LIMITS, METRIC_LABELS(outcome_limit_name(o->limit)), 1);
	for (unsigned i = 0; i < o->denials_count && i < DENIALS_MAX; i++)
		metrics_count_for(m, METRIC_DENIALS, METRIC_LABELS(o->denials[i].kind), 1);
}

/* How its box's first program came to be; a reason only where something else was wanted. */
static const char *start_name(const struct outcome *o)
{
	const char *reason = box_start_reason((enum box_start)o->start);

	if (reason)
		return reason;
	return o->start == BOX_START_ZYGOTE ? "zygote" : "cold";
}

void run_metrics_end(struct metrics *m, const char *language, const struct outcome *o)
{
	const char *status = o ? outcome_status_name(o->status) : COULD_NOT_RUN;

	if (!m)
		return;
	metrics_count_for(m, METRIC_EXECUTIONS, METRIC_LABELS(language, status), 1);
	if (!o)
		return;
	metrics_count_for(m, METRIC_STARTS, METRIC_LABELS(start_name(o)), 1);
	metrics_observe(m, METRIC_EXEC_QUEUE, seconds(o->queue_us));
	metrics_observe(m, METRIC_EXEC_START, seconds(o->start_us));
	metrics_observe_for(m, METRIC_EXEC_RUN, METRIC_LABELS(language), seconds(o->duration_us));
	metrics_observe(m, METRIC_EXEC_TOTAL, seconds(o->queue_us + o->start_us + o->duration_us));
	count_usage(m, o);
}
