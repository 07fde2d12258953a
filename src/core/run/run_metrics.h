/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what the end of a run adds to the metrics. */

#include "core/observe/metrics.h"

struct outcome;

/** run_metrics_end - once per run. @outcome NULL: the program could not be run. */
void run_metrics_end(struct metrics *m, const char *language, const struct outcome *outcome);
