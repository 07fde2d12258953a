/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: counters, gauges and histograms of the daemon; metrics.def lists them. Counting makes no
 * system call. Label values come from fixed sets (languages, routes, statuses), never from callers;
 * should a set grow anyway, series beyond METRICS_SERIES_MAX are counted together as "other".
 *
 * Gauges that another module already knows are set by sources (metrics_add_source), which are
 * called for each collection and must not walk sessions.
 *
 * All functions accept NULL: metrics off. Owned by the daemon; used on the loop's thread only.
 */

#include "base/attr.h"
#include "base/buf.h"
#include <stddef.h>
#include <stdint.h>

enum metric_type {
	METRIC_TYPE_COUNTER,
	METRIC_TYPE_GAUGE,
	METRIC_TYPE_HISTOGRAM,
	METRIC_TYPE_COUNT
};

enum metric {
#define METRIC(id, type, name, labels, help) METRIC_##id,
#include "core/observe/metrics.def"
#undef METRIC
	METRIC_COUNT
};

#define METRICS_SERIES_MAX 512 /* per metric */
#define METRICS_LABELS_MAX 3
#define METRICS_TEXT_MAX   (16u << 20)
/* The values of a metric's labels, in the order of metrics.def. */
#define METRIC_LABELS(...) ((const char *const[METRICS_LABELS_MAX]){__VA_ARGS__})

struct metrics;

struct metric_info {
	enum metric_type type;
	const char *name, *labels, *help;
};

void metrics_free(struct metrics *m);
struct metrics *metrics_new(void) attr_owned(metrics_free);
const struct metric_info *metric_info(enum metric metric);
/** metrics_count_for - add @n >= 0 to a counter; see METRIC_LABELS. NULL: without labels. */
void metrics_count_for(struct metrics *m, enum metric metric, const char *const *labels, double n);
void metrics_set_for(struct metrics *m, enum metric metric, const char *const *labels,
                     double value);
void metrics_observe_for(struct metrics *m, enum metric metric, const char *const *labels,
                         double seconds);
#define metrics_count(m, metric, n)         metrics_count_for(m, metric, NULL, n)
#define metrics_set(m, metric, value)       metrics_set_for(m, metric, NULL, value)
#define metrics_observe(m, metric, seconds) metrics_observe_for(m, metric, NULL, seconds)

/** metrics_total - sum of all series of a counter; number of observations of a histogram. */
double metrics_total(const struct metrics *m, enum metric metric);
/** metrics_total_with - the same for series whose label number @label is @value (NULL: all). */
double metrics_total_with(const struct metrics *m, enum metric metric, size_t label,
                          const char *value);
/** metrics_sum - of all values observed by a histogram, in all series. */
double metrics_sum(const struct metrics *m, enum metric metric);
/** metrics_value - of one counter or gauge; 0 if never set. @labels NULL: none. */
double metrics_value(const struct metrics *m, enum metric metric, const char *const *labels);

#define METRIC_BUCKETS_MAX 32

/* One series of a counter or histogram, to persist. Borrowed. */
struct metric_series {
	enum metric metric;
	const char *labels;      /* values with U+001F between them */
	double value;            /* a histogram's sum */
	uint64_t count;          /* of a histogram; else 0 */
	const uint64_t *buckets; /* not cumulative */
	size_t buckets_count;
};
/** metrics_save - call @fn for every series changed since the last call, except process_*. */
void metrics_save(struct metrics *m, void (*fn)(void *ctx, const struct metric_series *s),
                  void *ctx);
/** metrics_unsave - saving failed: report all series next time. */
void metrics_unsave(struct metrics *m);
/** metrics_restore - add a saved series. Return: 0 or -EINVAL: it does not fit its metric. */
int metrics_restore(struct metrics *m, const struct metric_series *from) attr_must_check;
/** metric_find - Return: 0 or -ENOENT. */
int metric_find(const char *name, enum metric *ret_metric) attr_must_check;

#define METRICS_SOURCES_MAX 16
typedef void metrics_source_fn(void *ctx, struct metrics *m);
/** metrics_add_source - @fn is called before each collection. At most METRICS_SOURCES_MAX. */
void metrics_add_source(struct metrics *m, metrics_source_fn *fn, void *ctx);
/** metrics_collect - call the sources. */
void metrics_collect(struct metrics *m);

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
/** metrics_print - in Prometheus' text format. Return: 0 or -ENOBUFS. */
int metrics_print(const struct metrics *m, struct buf *b) attr_must_check;

/** metrics_process - a source: the daemon's own process; @ctx is unused. */
void metrics_process(void *ctx, struct metrics *m);
