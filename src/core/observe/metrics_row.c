/* SPDX-License-Identifier: Apache-2.0 */
#include "core/observe/metrics_row.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/observe/metrics.h"
#include "core/store/store_internal.h"
#include "io/loop.h"

#define SAVE_US        (60 * USEC_PER_SEC)
#define LOAD_MAX_BYTES (16u << 20)
#define NUMBER_LEN     32
#define BUCKETS_LEN    (METRIC_BUCKETS_MAX * 21 + 1)
#define BILLION        1e9
#define VALUE_END      9e18 /* of what a row can hold; no counter gets there, a damaged row may */
#define BATCH          256  /* series in one write */

struct store_metrics {
	struct store *store;
	struct metrics *metrics;
	struct timer *timer;
};

/* One series as a row. */
struct row {
	char buckets[BUCKETS_LEN];
	struct db_value values[6];
};

struct batch {
	struct store_metrics *sm;
	struct db_statement steps[BATCH];
	struct row rows[BATCH];
	size_t count;
};

static void on_written(void *ctx, const struct error *err)
{
	struct store_metrics *sm = ctx;

	/* Next time all of them. */
	if (store_was_written(sm->store, err))
		metrics_unsave(sm->metrics);
}

static void send(struct batch *b)
{
	struct error err = {0};

	if (b->count > 0 && !db_write(b->sm->store->db, b->steps, b->count,
	                              b->sm->timer ? on_written : NULL, b->sm, &err))
		metrics_unsave(b->sm->metrics);
	b->count = 0;
}

static void print_buckets(const struct metric_series *s, char ret_text[BUCKETS_LEN])
{
	size_t used = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; i < s->buckets_count; i++)
		used += (size_t)snprintf(ret_text + used, BUCKETS_LEN - used, "%s%llu",
		                         i ? " " : "", (unsigned long long)s->buckets[i]);
}

static double joined(int64_t whole, int64_t billionths)
{
	return (double)whole + (double)billionths / BILLION;
}

/* Up, and as it is read again: what is told then is not less than what was told. */
static int64_t billionths_of(double value, int64_t whole)
{
	int64_t n = (int64_t)((value - (double)whole) * BILLION);

	while (joined(whole, n) < value)
		n++;
	return n;
}

static void add_series(void *ctx, const struct metric_series *s)
{
	struct batch *b = ctx;
	struct row *row = &b->rows[b->count];
	int64_t whole = s->value < VALUE_END ? (int64_t)s->value : -1;

	if (whole < 0)
		return;
	print_buckets(s, row->buckets);
	row->values[0] = DB_TEXT(metric_info(s->metric)->name);
	row->values[1] = DB_TEXT(s->labels);
	row->values[2] = DB_INT(whole);
	row->values[3] = DB_INT(billionths_of(s->value, whole));
	row->values[4] = DB_INT(s->count);
	row->values[5] = DB_TEXT(row->buckets);
	b->steps[b->count++] = (struct db_statement){
		"INSERT INTO metrics (name, labels, value, billionths, count, buckets)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (name, labels) DO UPDATE SET"
		" value = ?3, billionths = ?4, count = ?5, buckets = ?6",
		row->values, ARRAY_SIZE(row->values)};
	if (b->count == BATCH)
		send(b);
}

static void save(struct store_metrics *sm)
{
	struct batch *b = NEW(struct batch);

	b->sm = sm;
	metrics_save(sm->metrics, add_series, b);
	send(b);
	free(b);
}

static void on_timer(void *ctx)
{
	struct store_metrics *sm = ctx;

	save(sm);
	timer_start(sm->timer, SAVE_US);
}

/*
 * Somebody looks: what is told now is not to be told smaller. At once, not when the loop turns: the
 * next request may be read before that, and what it is told to be on the disk is behind this.
 */
static void on_look(void *ctx, struct metrics *m attr_unused)
{
	save(ctx);
}

struct store_metrics *store_metrics_new(struct store *s, struct metrics *m, struct loop *loop)
{
	struct store_metrics *sm = NEW(struct store_metrics);

	*sm = (struct store_metrics){.store = s, .metrics = m};
	sm->timer = timer_new(loop, on_timer, sm);
	timer_start(sm->timer, SAVE_US);
	metrics_add_source(m, on_look, sm);
	return sm;
}

void store_metrics_free(struct store_metrics *sm)
{
	if (!sm)
		return;
	timer_free(TAKE_PTR(sm->timer));
	save(sm);
	free(sm);
}

/* In again. */

static int read_buckets(const char *text, uint64_t ret_buckets[METRIC_BUCKETS_MAX])
{
	char number[NUMBER_LEN];
	size_t count = 0;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (count == METRIC_BUCKETS_MAX || len >= sizeof(number))
			return -1;
		memcpy(number, text, len);
		number[len] = '\0';
		if (parse_u64(number, &ret_buckets[count++]) < 0)
			return -1;
		text += len + (text[len] == ' ');
	}
	return (int)count;
}

static bool load_row(struct metrics *m, const struct db_rows *rows, size_t row)
{
	const char *name = db_rows_text(rows, row, 0);
	uint64_t buckets[METRIC_BUCKETS_MAX] = {0};
	int count = read_buckets(db_rows_text(rows, row, 5), buckets);
	struct metric_series series = {
		.labels = db_rows_text(rows, row, 1),
		.value = joined(db_rows_int(rows, row, 2), db_rows_int(rows, row, 3)),
		.count = (uint64_t)db_rows_int(rows, row, 4),
		.buckets = buckets,
		.buckets_count = (size_t)(count > 0 ? count : 0),
	};

	return count >= 0 && series.value < VALUE_END && metric_find(name, &series.metric) == 0 &&
	       metrics_restore(m, &series) == 0;
}

int store_metrics_load(struct store *s, struct metrics *m, struct error *err)
{
	cleanup_db_rows struct db_rows *rows = NULL;
	size_t strangers = 0;

	if (db_query_now(
		    s->db,
		    &DB_SQL("SELECT name, labels, value, billionths, count, buckets FROM metrics"),
		    LOAD_MAX_BYTES, &rows, err) < 0)
		return error_wrap(err, "read metrics");
	for (size_t i = 0; i < db_rows_count(rows); i++)
		strangers += !load_row(m, rows, i);
	if (strangers > 0)
		log_info("%zu metrics of the store are none of this version's, ignoring",
		         strangers);
	return 0;
}
