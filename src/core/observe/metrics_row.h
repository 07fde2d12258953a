/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: totals of counters and histograms in the store. They are read at the start, so that a
 * restart does not set them back, and written each minute, with each look at them, and at the end.
 * After a kill they are what they were when somebody last looked, or a minute ago, whichever is
 * later: so what was told never shrinks. What the kernel counts for the process (process_*) begins
 * anew with it; gauges are what is now.
 */

#include "base/attr.h"
#include "base/error.h"

struct loop;
struct metrics;
struct store;
struct metrics_row;

/** metrics_row_load - before store_start. What is not of this version is left where it is. */
int metrics_row_load(struct store *s, struct metrics *m, struct error *err) attr_must_check;

/** metrics_row_free - writes what has changed; before the store is closed. */
void metrics_row_free(struct metrics_row *row);
/** metrics_row_new - all are borrowed. After all other sources, whose numbers it writes. */
struct metrics_row *metrics_row_new(struct store *s, struct metrics *m, struct loop *loop)
	attr_owned(metrics_row_free);
