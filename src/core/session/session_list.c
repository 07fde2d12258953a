/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_list.h"

#include "base/alloc.h"
#include "core/run/run_record_internal.h"
#include "core/session/session_internal.h"
#include "core/session/session_row.h"
#include "core/store/store_internal.h"

/*
 * Theory of operation. Pending writes are flushed first, and a read sees every write before it: so
 * the store alone has the whole list and its order. Entries also in memory are shown from there:
 * newer than any row.
 */

#define PAGE_MAX_BYTES  (64u << 20)
#define COUNT_MAX_BYTES 4096

struct store_list {
	struct db_job *job;
	struct db_job *counting;
	struct session_service *sessions;
	struct run_records *executions;
	store_page_fn *fn;
	void *ctx;
	size_t total;
};

static void on_count(void *ctx, const struct db_rows *rows, const struct error *err)
{
	struct store_list *list = ctx;

	(void)err; /* the page, read after it, fails too */
	list->counting = NULL;
	list->total = rows && db_rows_count(rows) ? (size_t)db_rows_int(rows, 0, 0) : 0;
}

static void give_sessions(const struct store_list *list, const struct db_rows *rows)
{
	struct store_page page = {.count = db_rows_count(rows), .total = list->total};
	cleanup_free struct session **made = xcalloc(page.count + 1, sizeof(struct session *));
	cleanup_free const struct session **all =
		(const struct session **)xcalloc(page.count + 1, sizeof(struct session *));

	for (size_t i = 0; i < page.count; i++) {
		struct session *past = session_row_read(list->sessions, rows, i);

		all[i] = session_find(list->sessions, past->tenant, past->id);
		if (!all[i] || all[i]->created_ms != past->created_ms)
			all[i] = past;
		made[i] = past;
	}
	page.sessions = all;
	list->fn(list->ctx, &page, NULL);
	for (size_t i = 0; i < page.count; i++) {
		made[i]->deleted = true;
		session_reap(made[i]);
	}
}

static void give_executions(const struct store_list *list, const struct db_rows *rows)
{
	struct store_page page = {.count = db_rows_count(rows), .total = list->total};
	cleanup_free struct run_record **made =
		xcalloc(page.count + 1, sizeof(struct run_record *));
	cleanup_free const struct run_record **all =
		(const struct run_record **)xcalloc(page.count + 1, sizeof(struct run_record *));

	for (size_t i = 0; i < page.count; i++) {
		struct run_record *past = run_row_read(list->executions, rows, i);

		all[i] = run_records_find(list->executions, past->tenant, past->id);
		if (!all[i])
			all[i] = past;
		made[i] = past;
	}
	page.executions = all;
	list->fn(list->ctx, &page, NULL);
	for (size_t i = 0; i < page.count; i++)
		run_record_free(made[i]);
}

static void on_page(void *ctx, const struct db_rows *rows, const struct error *err)
{
	struct store_list *list = ctx;

	if (err)
		list->fn(list->ctx, NULL, err);
	else if (list->sessions)
		give_sessions(list, rows);
	else
		give_executions(list, rows);
	free(list);
}

/* The count first: on_page needs it. */
static struct store_list *begin_list(struct store *s, const struct db_statement queries[2],
                                     struct store_list *list, struct error *err)
{
	store_flush(s);
	list->counting = db_read(s->db, &queries[0], COUNT_MAX_BYTES, on_count, list, err);
	if (list->counting)
		list->job = db_read(s->db, &queries[1], PAGE_MAX_BYTES, on_page, list, err);
	if (list->job)
		return list;
	if (list->counting)
		db_forget(list->counting);
	free(list);
	return NULL;
}

void store_list_cancel(struct store_list *list)
{
	if (list->counting)
		db_forget(list->counting);
	db_forget(list->job);
	free(list);
}

/*
 * One statement each for one status or all, near or far pages, so that each has its index. Totals
 * are sums over blocks (migrations/012_counts.sql), some hundred for what is kept. Far pages begin
 * in the block of their first row, without walking what precedes it.
 */
#define NEAR 2048 /* rows cheaper to walk than blocks */

/* Blocks, newest first, with the rows down to the end of each. */
#define REACH(counts)                                                                              \
	" FROM (SELECT block, count, sum(count) OVER (ORDER BY block DESC) AS reach FROM " counts  \
	") WHERE reach > "
#define TOP(counts, offset) "(SELECT (max(block) + 1) << 10" REACH(counts) offset ")"
#define SKIP(counts, offset)                                                                       \
	"ifnull((SELECT " offset " - min(reach - count)" REACH(counts) offset "), 0)"

#define S_COUNTS  "session_counts WHERE tenant = ?1 AND state = ?4"
#define OF_TENANT " FROM sessions WHERE deleted = 0 AND tenant = ?1"
#define IN_STATE  OF_TENANT " AND state = ?4"
#define SESSIONS  "SELECT " STORE_SESSION_COLUMNS
#define NEWEST    " ORDER BY no DESC LIMIT ?2 OFFSET ?3"
#define S_FAR                                                                                      \
	" AND no < " TOP(S_COUNTS, "?3") " ORDER BY no DESC LIMIT ?2 OFFSET " SKIP(S_COUNTS, "?3")

struct store_list *store_list_sessions(struct session_service *sessions,
                                       const struct store_query *query, store_page_fn *fn,
                                       void *ctx, struct error *err)
{
	const struct db_value values[] = {DB_TEXT(query->tenant), DB_INT(query->limit),
	                                  DB_INT(query->offset),
	                                  DB_TEXT(query->status ? query->status : "")};
	static const char *const pages[2][2] = {
		{SESSIONS OF_TENANT NEWEST, SESSIONS OF_TENANT S_FAR},
		{SESSIONS IN_STATE NEWEST, SESSIONS IN_STATE S_FAR},
	};
	bool far = query->offset > NEAR;
	const struct db_statement both[2] = {
		{"SELECT sum(count) FROM " S_COUNTS, values, 4},
		{pages[query->status != NULL][far], values, query->status || far ? 4 : 3},
	};
	struct store_list *list = NEW(struct store_list);

	list->sessions = sessions;
	list->fn = fn;
	list->ctx = ctx;
	return begin_list(sessions->config.store, both, list, err);
}

#define E_COUNTS                                                                                   \
	"execution_counts WHERE tenant = ?1 AND session_id = ?2 AND session_ms = ?3 AND status ="  \
	" ?6"
#define OF_SESSION                                                                                 \
	" FROM executions e WHERE e.tenant = ?1 AND e.session_id = ?2 AND e.session_ms = ?3"
#define WITH_STATUS OF_SESSION " AND e.status = ?6"
#define EXECUTIONS  "SELECT " STORE_EXECUTION_BRIEF
#define LATEST      " ORDER BY e.no DESC LIMIT ?4 OFFSET ?5"
#define E_FAR                                                                                      \
	" AND e.no < " TOP(E_COUNTS, "?5") " ORDER BY e.no DESC LIMIT ?4 OFFSET " SKIP(E_COUNTS,   \
	                                                                               "?5")

struct store_list *store_list_executions(struct run_records *executions,
                                         const struct store_query *query, store_page_fn *fn,
                                         void *ctx, struct error *err)
{
	const struct db_value values[] = {
		DB_TEXT(query->tenant),    DB_TEXT(query->session_id),
		DB_INT(query->session_ms), DB_INT(query->limit),
		DB_INT(query->offset),     DB_TEXT(query->status ? query->status : "")};
	static const char *const pages[2][2] = {
		{EXECUTIONS OF_SESSION LATEST, EXECUTIONS OF_SESSION E_FAR},
		{EXECUTIONS WITH_STATUS LATEST, EXECUTIONS WITH_STATUS E_FAR},
	};
	bool far = query->offset > NEAR;
	const struct db_statement both[2] = {
		{"SELECT sum(count) FROM " E_COUNTS, values, 6},
		{pages[query->status != NULL][far], values, query->status || far ? 6 : 5},
	};
	struct store_list *list = NEW(struct store_list);

	list->executions = executions;
	list->fn = fn;
	list->ctx = ctx;
	return begin_list(executions->store, both, list, err);
}
