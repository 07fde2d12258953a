/* SPDX-License-Identifier: Apache-2.0 */
#include "core/observe/metrics_row.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "core/observe/metrics.h"
#include "core/store/store_internal.h"
#include "io/loop.h"

#define SAVE_US        (60 * USEC_PER_SEC)
#define LOAD_MAX_BYTES (16u << 20)
#define NUMBER_LEN     32
#define BUCKETS_LEN    (METRIC_BUCKETS_MAX * 21 + 1)
#define BILLION        1e9
#define VALUE_END      9e18 /* only damaged rows have more */
#define BATCH          256  /* series per write */

struct metrics_row {
	struct store *store;
	struct metrics *metrics;
	struct timer *timer;
};

struct row {
	char buckets[BUCKETS_LEN];
	struct db_value values[6];
};

struct batch {
	struct metrics_row *row;
	struct db_statement steps[BATCH];
	struct row rows[BATCH];
	size_t count;
};

static void on_written(void *ctx, const struct error *err)
{
	struct metrics_row *row = ctx;

	/* Rewrite all next time. */
	if (store_was_written(row->store, err))
		metrics_unsave(row->metrics);
}

static void write_batch(struct batch *b)
{
	struct error err = {0};

	if (b->count > 0 && !db_write(b->row->store->db, b->steps, b->count,
	                              b->row->timer ? on_written : NULL, b->row, &err))
		metrics_unsave(b->row->metrics);
	b->count = 0;
}

static double join_billionths(int64_t whole, int64_t billionths)
{
	return (double)whole + (double)billionths / BILLION;
}

static void add_series(void *ctx, const struct metric_series *s)
{
	struct batch *b = ctx;
	struct row *row = &b->rows[b->count];
	int64_t whole = s->value < VALUE_END ? (int64_t)s->value : -1;
	int64_t billionths;
	size_t used = 0;

	if (whole < 0)
		return;
	billionths = (int64_t)((s->value - (double)whole) * BILLION);
	/* Round up: a value never shrinks after a restart. */
	while (join_billionths(whole, billionths) < s->value)
		billionths++;
	row->buckets[0] = '\0';
	for (size_t i = 0; i < s->buckets_count; i++)
		used += (size_t)snprintf(row->buckets + used, BUCKETS_LEN - used, "%s%llu",
		                         i ? " " : "", (unsigned long long)s->buckets[i]);
	row->values[0] = DB_TEXT(metric_info(s->metric)->name);
	row->values[1] = DB_TEXT(s->labels);
	row->values[2] = DB_INT(whole);
	row->values[3] = DB_INT(billionths);
	row->values[4] = DB_INT(s->count);
	row->values[5] = DB_TEXT(row->buckets);
	b->steps[b->count++] = (struct db_statement){
		"INSERT INTO metrics (name, labels, value, billionths, count, buckets)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (name, labels) DO UPDATE SET"
		" value = ?3, billionths = ?4, count = ?5, buckets = ?6",
		row->values, ARRAY_SIZE(row->values)};
	if (b->count == BATCH)
		write_batch(b);
}

static void save_metrics(struct metrics_row *row)
{
	struct batch *b = NEW(struct batch);

	b->row = row;
	metrics_save(row->metrics, add_series, b);
	write_batch(b);
	free(b);
}

static void on_timer(void *ctx)
{
	struct metrics_row *row = ctx;

	save_metrics(row);
	timer_start(row->timer, SAVE_US);
}

/* Persist what a client reads, so that it never shrinks later. The durable write of the next
 * request must be queued behind this one. */
static void on_look(void *ctx, struct metrics *m attr_unused)
{
	save_metrics(ctx);
}

struct metrics_row *metrics_row_new(struct store *s, struct metrics *m, struct loop *loop)
{
	struct metrics_row *row = NEW(struct metrics_row);

	*row = (struct metrics_row){.store = s, .metrics = m};
	row->timer = timer_new(loop, on_timer, row);
	timer_start(row->timer, SAVE_US);
	metrics_add_source(m, on_look, row);
	return row;
}

void metrics_row_free(struct metrics_row *row)
{
	if (!row)
		return;
	timer_free(TAKE_PTR(row->timer));
	save_metrics(row);
	free(row);
}

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
		.value = join_billionths(db_rows_int(rows, row, 2), db_rows_int(rows, row, 3)),
		.count = (uint64_t)db_rows_int(rows, row, 4),
		.buckets = buckets,
		.buckets_count = (size_t)(count > 0 ? count : 0),
	};

	return count >= 0 && series.value < VALUE_END && metric_find(name, &series.metric) == 0 &&
	       metrics_restore(m, &series) == 0;
}

int metrics_row_load(struct store *s, struct metrics *m, struct error *err)
{
	cleanup_db_rows struct db_rows *rows = NULL;
	size_t unknown = 0;

	if (db_query_now(
		    s->db,
		    &DB_SQL("SELECT name, labels, value, billionths, count, buckets FROM metrics"),
		    LOAD_MAX_BYTES, &rows, err) < 0)
		return error_wrap(err, "read metrics");
	for (size_t i = 0; i < db_rows_count(rows); i++)
		unknown += !load_row(m, rows, i);
	if (unknown > 0)
		log_info("ignoring %zu metrics in the store that this version does not have",
		         unknown);
	return 0;
}
