/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the gauges of core: how many sessions, boxes and queued runs there are now.
 */

#include "core/observe/metrics.h"

struct config;
struct run_service;
struct session_service;
struct store;

/* Borrowed by the source. */
struct metrics_core_parts {
	const struct config *config;
	const struct run_service *runs;
	const struct session_service *sessions;
	struct store *store; /* NULL: none */
};
/** metrics_core - a metrics source; @ctx is struct metrics_core_parts. */
void metrics_core(void *ctx, struct metrics *m);
