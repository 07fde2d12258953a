/* SPDX-License-Identifier: Apache-2.0 */
#include "core/metrics_core.h"

#include "core/config/config.h"
#include "core/pool/pool.h"
#include "core/run/outcome.h"
#include "core/run/run.h"
#include "core/run/run_internal.h"
#include "core/session/session.h"
#include "core/store/store.h"
#include "db/db.h"

static void set_usage(struct metrics *m, const char *resource, size_t used, size_t most)
{
	if (most > 0)
		metrics_set_for(m, METRIC_USAGE, METRIC_LABELS(resource),
		                (double)used / (double)most);
}

static void set_engines(struct metrics *m, const struct driver *any)
{
	const struct driver *d;

	for (size_t i = 0; (d = driver_at(any, i)); i++) {
		metrics_set_for(m, METRIC_ENGINE_UP, METRIC_LABELS(d->name),
		                d->breaker.state == BREAKER_CLOSED);
		metrics_set_for(m, METRIC_ENGINE_LOSSES, METRIC_LABELS(d->name),
		                (double)d->breaker.trips);
	}
}

void metrics_core(void *ctx, struct metrics *m)
{
	const struct metrics_core_parts *p = ctx;
	const struct scheduler *scheduler = &p->runs->scheduler;
	struct session_service_stats sessions;
	struct run_service_stats runs;
	struct pools_totals pools;
	double all = metrics_total(m, METRIC_EXECUTIONS);
	double good =
		metrics_total_with(m, METRIC_EXECUTIONS, 1, outcome_status_name(OUTCOME_SUCCESS));
	double late =
		metrics_total_with(m, METRIC_EXECUTIONS, 1, outcome_status_name(OUTCOME_TIMEOUT));

	session_service_stats(p->sessions, &sessions);
	run_service_stats(p->runs, &runs);
	pools_totals(p->runs->pools, &pools);
	metrics_set(m, METRIC_SESSIONS_ACTIVE, (double)sessions.live);
	metrics_set(m, METRIC_PORTS, (double)sessions.ports);
	metrics_set_for(m, METRIC_BACKGROUND, METRIC_LABELS("program"),
	                (double)(sessions.beside - sessions.terminals));
	metrics_set_for(m, METRIC_BACKGROUND, METRIC_LABELS("terminal"),
	                (double)sessions.terminals);
	metrics_set(m, METRIC_RUNNING, (double)runs.running);
	metrics_set(m, METRIC_QUEUED, (double)runs.queued);
	metrics_set(m, METRIC_BOXES,
	            (double)(runs.boxes + sessions.boxes + pools_count(p->runs->pools)));
	metrics_set_for(m, METRIC_POOL_MEMBERS, METRIC_LABELS("ready"), (double)pools.ready);
	metrics_set_for(m, METRIC_POOL_MEMBERS, METRIC_LABELS("making"), (double)pools.making);
	metrics_set(m, METRIC_POOL_MEMORY, (double)pools.memory_bytes);
	set_usage(m, "executions", runs.running,
	          scheduler->config.running_max ? scheduler->config.running_max
	                                        : scheduler->config.boxes_max);
	set_usage(m, "boxes", scheduler->boxes, scheduler->config.boxes_max);
	set_usage(m, "queue", runs.queued, scheduler->config.waiting_max);
	set_usage(m, "sessions", sessions.live, p->config->sessions_max);
	set_engines(m, run_service_driver(p->runs));
	metrics_set(m, METRIC_FAILURE_RATE, all > 0 ? (all - good) / all : 0);
	metrics_set(m, METRIC_TIMEOUT_RATE, all > 0 ? late / all : 0);
	if (p->store) {
		metrics_set(m, METRIC_STORE_FAILING, store_is_failing(p->store));
		metrics_set(m, METRIC_STORE_WAITING, (double)db_waiting(store_db(p->store)));
	}
}
