/* SPDX-License-Identifier: Apache-2.0 */
#include "core/observe/audit_row.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "core/observe/audit.h"
#include "core/store/store_internal.h"
#include "io/loop.h"

#define FOLLOW_US (1 * USEC_PER_SEC)
#define ROW_MAX   8192

struct audit_row {
	struct store *store;
	struct audit *audit;
	struct timer *timer;
	uint64_t written; /* last record written or queued */
};

static void on_written(void *ctx, const struct error *err)
{
	struct audit_row *row = ctx;

	if (store_was_written(row->store, err))
		row->written = 0; /* retry */
}

static void write_anchor(struct audit_row *row)
{
	struct chain_head head = audit_head(row->audit);
	char text[CHAIN_HEAD_LEN + 1];
	struct error err = {0};

	if (head.seq == row->written)
		return;
	chain_head_print(&head, text);
	/* If the queue is full, the timer retries. */
	if (db_write(row->store->db,
	             &DB_SQL("INSERT INTO audit (path, head, written_ms) VALUES (?1, ?2, ?3)"
	                     " ON CONFLICT (path) DO UPDATE SET head = ?2, written_ms = ?3",
	                     DB_TEXT(audit_path(row->audit)), DB_TEXT(text),
	                     DB_INT(clock_real_ms())),
	             1, row->timer ? on_written : NULL, row, &err))
		row->written = head.seq;
}

static void on_timer(void *ctx)
{
	struct audit_row *row = ctx;

	write_anchor(row);
	timer_start(row->timer, FOLLOW_US);
}

struct audit_row *audit_row_new(struct store *s, struct audit *a, struct loop *loop)
{
	struct audit_row *row = NEW(struct audit_row);

	*row = (struct audit_row){.store = s, .audit = a};
	row->timer = timer_new(loop, on_timer, row);
	timer_start(row->timer, FOLLOW_US);
	return row;
}

void audit_row_free(struct audit_row *row)
{
	if (!row)
		return;
	timer_free(TAKE_PTR(row->timer));
	write_anchor(row);
	free(row);
}

int audit_row_check(struct store *s, struct audit *a, struct error *err)
{
	cleanup_db_rows struct db_rows *rows = NULL;
	struct chain_head anchor;
	const char *text;

	if (db_query_now(s->db,
	                 &DB_SQL("SELECT head FROM audit WHERE path = ?1", DB_TEXT(audit_path(a))),
	                 ROW_MAX, &rows, err) < 0)
		return error_wrap(err, "read the anchor of the audit log");
	if (db_rows_count(rows) == 0)
		return 0;
	text = db_rows_text(rows, 0, 0);
	if (chain_head_parse(text, strlen(text), &anchor) < 0)
		return error_set(err, ERR_CONFIG, 0, "the anchor of the audit log is damaged");
	return audit_anchor(a, &anchor, err);
}
