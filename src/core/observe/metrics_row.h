/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: totals of counters and histograms in the store. Read at start, so that a restart does not
 * reset them; written every minute, at each collection, and at the end. After a kill they are as
 * of the last collection or a minute ago, whichever is later: a value that a client has read
 * never shrinks. What the kernel counts for the process (process_*) restarts with it; gauges are
 * current.
 */

#include "base/attr.h"
#include "base/error.h"

struct loop;
struct metrics;
struct store;
struct metrics_row;

/** metrics_row_load - before store_start. Rows unknown to this version stay in the store. */
int metrics_row_load(struct store *s, struct metrics *m, struct error *err) attr_must_check;

/** metrics_row_free - writes changes; before the store is closed. */
void metrics_row_free(struct metrics_row *row);
/** metrics_row_new - borrows all. Create it after all other sources, whose values it writes. */
struct metrics_row *metrics_row_new(struct store *s, struct metrics *m, struct loop *loop)
	attr_owned(metrics_row_free);
