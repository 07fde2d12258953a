/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: counters and histograms in the store, so that a restart does not reset them. Written every
 * minute, at each collection, and at the end: a value that a client has read never shrinks.
 * process_* restart with the process; gauges are current.
 */

#include "base/attr.h"
#include "base/error.h"

struct loop;
struct metrics;
struct store;
struct metrics_row;

/** metrics_row_load - before store_start. Rows unknown to this version stay in the store. */
int metrics_row_load(struct store *s, struct metrics *m, struct error *err) attr_must_check;

/** metrics_row_free - writes changes; call before store_close. */
void metrics_row_free(struct metrics_row *row);
/** metrics_row_new - borrows all. Create it after all other sources: it writes their values. */
struct metrics_row *metrics_row_new(struct store *s, struct metrics *m, struct loop *loop)
	attr_owned(metrics_row_free);
