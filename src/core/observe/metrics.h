/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: counters, gauges and histograms of the daemon; metrics.def lists them. Counting makes no
 * system call. Label values come from fixed sets (languages, routes, statuses), never from callers;
 * series beyond METRICS_SERIES_MAX count as "other".
 *
 * Sources (metrics_add_source) set gauges that other modules know. Each collection calls them; they
 * must not walk sessions.
 *
 * All functions accept NULL: metrics off. Owned by the daemon; loop thread only.
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
/* In the order of metrics.def. */
#define METRIC_LABELS(...) ((const char *const[METRICS_LABELS_MAX]){__VA_ARGS__})

struct metrics;

struct metric_info {
	enum metric_type type;
	const char *name, *labels, *help;
};

void metrics_free(struct metrics *m);
struct metrics *metrics_new(void) attr_owned(metrics_free);
const struct metric_info *metric_info(enum metric metric);
/** metrics_count_for - add @n >= 0 to a counter. @labels: METRIC_LABELS; NULL: none. */
void metrics_count_for(struct metrics *m, enum metric metric, const char *const *labels, double n);
void metrics_set_for(struct metrics *m, enum metric metric, const char *const *labels,
                     double value);
void metrics_observe_for(struct metrics *m, enum metric metric, const char *const *labels,
                         double seconds);
#define metrics_count(m, metric, n)         metrics_count_for(m, metric, NULL, n)
#define metrics_set(m, metric, value)       metrics_set_for(m, metric, NULL, value)
#define metrics_observe(m, metric, seconds) metrics_observe_for(m, metric, NULL, seconds)

/** metrics_total - sum of a counter's series; number of a histogram's observations. */
double metrics_total(const struct metrics *m, enum metric metric);
/** metrics_total_with - only series whose label number @label is @value (NULL: all). */
double metrics_total_with(const struct metrics *m, enum metric metric, size_t label,
                          const char *value);
/** metrics_sum - of all observed values of a histogram. */
double metrics_sum(const struct metrics *m, enum metric metric);
/** metrics_value - of a counter or gauge; 0 if never set. @labels NULL: none. */
double metrics_value(const struct metrics *m, enum metric metric, const char *const *labels);

#define METRIC_BUCKETS_MAX 32

/* A series to persist. Borrowed. */
struct metric_series {
	enum metric metric;
	const char *labels;      /* joined by U+001F */
	double value;            /* a histogram's sum */
	uint64_t count;          /* histogram; else 0 */
	const uint64_t *buckets; /* not cumulative */
	size_t buckets_count;
};
/**
 * metrics_save - call @fn for counters and histograms changed since the last call, except
 * process_*.
 */
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
/** metrics_add_source - call @fn at each collection. At most METRICS_SOURCES_MAX. */
void metrics_add_source(struct metrics *m, metrics_source_fn *fn, void *ctx);
void metrics_collect(struct metrics *m);

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
/** metrics_print - in Prometheus' text format. Return: 0 or -ENOBUFS. */
int metrics_print(const struct metrics *m, struct buf *b) attr_must_check;

/** metrics_process - source: the daemon's process; @ctx is unused. */
void metrics_process(void *ctx, struct metrics *m);
