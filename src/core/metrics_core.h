/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: gauges of core: sessions, boxes, queued runs. */

#include "core/observe/metrics.h"

struct config;
struct run_service;
struct session_service;
struct store;

/* Borrowed. */
struct metrics_core_parts {
	const struct config *config;
	const struct run_service *runs;
	const struct session_service *sessions;
	struct store *store; /* NULL: none */
};
/** metrics_core - a metrics source; @ctx: struct metrics_core_parts. */
void metrics_core(void *ctx, struct metrics *m);
