/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what core counts, in one place: how an execution ended, and what there is at the moment. */

#include "core/observe/metrics.h"

struct config;
struct run_service;
struct outcome;
struct session_service;
struct store;

/** measure_execution - one has ended; called once for each. @outcome NULL: it could not be run. */
void measure_execution(struct metrics *m, const char *language, const struct outcome *outcome);

/* Borrowed by the source. */
struct measure_parts {
	const struct config *config;
	const struct run_service *runs;
	const struct session_service *sessions;
	struct store *store; /* NULL: none */
};
/** measure_core - a source; @ctx is struct measure_parts. */
void measure_core(void *ctx, struct metrics *m);
