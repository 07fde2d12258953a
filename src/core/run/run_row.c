/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/run_row.h"

#include <jansson.h>
#include <sodium.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/run/run_record_internal.h"
#include "core/store/store_internal.h"
#include "json/json_dump.h"

/*
 * Theory of operation. A row is written as a whole, so that order and number of writes do not
 * matter; only the code, which never changes, is written once. Output is written at the end. Files
 * are rows of their own, in the same transaction.
 *
 * Events are stored as kind and length, so their numbers survive a restart.
 *
 * Ids are random and short (their shape is a contract): a new one may equal an old row's, even
 * another tenant's. A write to a foreign row breaks a constraint and is rolled back, files
 * included.
 */

#define EVENT_LEN 5 /* kind and 32-bit length, little-endian */
#define ROW_MAX   (768u << 20)
#define HEX_LEN   (2 * BOX_SHA256_LEN)

static char *encode_events(const struct run_record *e, size_t *ret_len)
{
	unsigned char *bytes = xcalloc(e->pieces_count + 1, EVENT_LEN);
	unsigned char *at = bytes;

	for (size_t i = 0; i < e->pieces_count; i++) {
		*at++ = e->pieces[i].kind;
		for (unsigned shift = 0; shift < 32; shift += 8)
			*at++ = (unsigned char)(e->pieces[i].len >> shift);
	}
	*ret_len = (size_t)(at - bytes);
	return (char *)bytes;
}

static char *encode_failure(const struct error *err)
{
	json_t *j = json_pack("{s:s, s:i, s:s, s:s}", "code", error_name(err->code), "sys",
	                      err->sys, "field", err->field, "msg", err->msg);
	char *text = j ? json_dump_text(j, JSON_COMPACT) : NULL;

	json_decref(j);
	return text ? text : xstrdup("{}"); /* message is not UTF-8 */
}

static struct db_value bytes_of(const struct buf *b)
{
	return b->len ? DB_BYTES(b->data, b->len) : DB_NULL;
}

/* One file the run made or changed; may be rewritten with the same content. */
struct file_row {
	char hex[HEX_LEN + 1];
	struct db_value values[6];
};

static struct db_statement insert_file(const struct run_record *e, size_t place,
                                       struct file_row *row)
{
	const struct artifact *file = &e->outcome.artifacts.list[place];

	(void)sodium_bin2hex(row->hex, sizeof(row->hex), file->sha256, sizeof(file->sha256));
	row->values[0] = DB_TEXT(e->id);
	row->values[1] = DB_INT(place);
	row->values[2] = DB_TEXT(file->path);
	row->values[3] = DB_INT(file->size);
	row->values[4] = DB_INT(file->changed_ms);
	row->values[5] = file->hashed ? DB_TEXT(row->hex) : DB_NULL;
	return (struct db_statement){
		"INSERT OR REPLACE INTO files (execution, place, path, size, changed_ms, sha256)"
		" SELECT no, ?2, ?3, ?4, ?5, ?6 FROM executions WHERE id = ?1",
		row->values, ARRAY_SIZE(row->values)};
}

/* For the caller: a retry gets another id. */
static const struct error *caller_error(const struct error *err, struct error *taken)
{
	if (!err || err->code != ERR_CONFLICT)
		return err;
	(void)error_set(taken, ERR_UNAVAILABLE, 0, "the id of the execution is taken, try again");
	return taken;
}

static void on_written(void *ctx, const struct error *err)
{
	struct run_record *e = ctx;
	struct store *s = e->all->store;
	struct error taken = {0};

	e->writing = NULL;
	if (err && err->code == ERR_CONFLICT)
		log_warn("execution=%s is not written: its id is another's", e->id);
	if (!err) {
		e->stored = true;
		free(TAKE_PTR(e->request));
	}
	/* Rejected: the caller gets the error, the record goes. */
	if (err && e->hold) {
		(void)store_was_written(s, err);
		run_record_was_stored(e, caller_error(err, &taken));
		return;
	}
	if (e->hold || e->on_stored)
		run_record_was_stored(e, caller_error(err, &taken));
	if (store_was_written(s, err) && list_is_empty(&e->dirty.node)) {
		list_append(&s->executions, &e->dirty.node);
		store_wants_flush(s, STORE_RETRY_US);
	}
	/* If the disk is full the end still counts as settled. */
	if (e->state == RUN_RECORD_ENDED && (err || list_is_empty(&e->dirty.node)))
		run_record_settle(e);
}

static int write_row(struct run_record *e, struct error *err)
{
	static const char *const names[] = {
		[RUN_RECORD_PENDING] = "pending",
		[RUN_RECORD_RUNNING] = "running",
		[RUN_RECORD_ENDED] = "crashed",
	};
	bool ended = e->state == RUN_RECORD_ENDED;
	const char *status =
		e->has_outcome ? outcome_status_name(e->outcome.status) : names[e->state];
	cleanup_free char *outcome =
		e->has_outcome ? outcome_to_json(&e->outcome, e->session_reset) : NULL;
	cleanup_free char *failure = ended && !outcome ? encode_failure(&e->failure) : NULL;
	size_t events_len = 0;
	cleanup_free char *events = ended ? encode_events(e, &events_len) : NULL;
	const struct buf *out = run_record_printed(e, OUTPUT_STDOUT);
	const struct buf *errors = run_record_printed(e, OUTPUT_STDERR);
	size_t bytes = e->code_len + out->len + errors->len + e->outcome.report.len + events_len;
	size_t files = e->outcome.artifacts.count;
	cleanup_free struct db_statement *steps = xcalloc(files + 1, sizeof(*steps));
	cleanup_free struct file_row *rows = xcalloc(files + 1, sizeof(*rows));
	struct db_job *job;

	for (size_t i = 0; i < files; i++)
		steps[i + 1] = insert_file(e, i, &rows[i]);
	steps[0] = DB_SQL(
		"INSERT INTO executions (id, tenant, session_id, session_ms, created_ms,"
		" started_ms, completed_ms, status, language, timeout_us, bytes, outcome,"
		" failure, report, code, out, err, events, request, begun, request_id,"
		" key_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
		" ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)"
		" ON CONFLICT (id) DO UPDATE SET started_ms = excluded.started_ms,"
		" begun = CASE WHEN tenant = excluded.tenant AND session_id = excluded.session_id"
		" AND session_ms = excluded.session_ms AND created_ms = excluded.created_ms"
		" THEN excluded.begun END," /* NULL fails: the row is another run's */
		" completed_ms = excluded.completed_ms, status = excluded.status,"
		" bytes = excluded.bytes, outcome = excluded.outcome,"
		" failure = excluded.failure, report = excluded.report,"
		" out = excluded.out, err = excluded.err, events = excluded.events,"
		" request = CASE WHEN excluded.completed_ms IS NULL THEN request END",
		DB_TEXT(e->id), DB_TEXT(e->tenant), DB_TEXT(e->session_id), DB_INT(e->session_ms),
		DB_INT(e->created_ms), store_time(e->started_ms), store_time(e->completed_ms),
		DB_TEXT(status), DB_TEXT(e->language), DB_INT(e->timeout_us), DB_INT(bytes),
		DB_TEXT(outcome), DB_TEXT(failure), bytes_of(&e->outcome.report),
		e->stored ? DB_NULL : DB_BYTES(e->code, e->code_len),
		ended ? bytes_of(out) : DB_NULL, ended ? bytes_of(errors) : DB_NULL,
		ended ? DB_BYTES(events, events_len) : DB_NULL,
		ended ? DB_NULL : DB_TEXT(e->request), DB_INT(e->begun), DB_TEXT(e->request_id),
		DB_TEXT(e->key_id));
	job = db_write(e->all->store->db, steps, files + 1, on_written, e, err);
	if (!job)
		return -1;
	if (e->writing)
		db_forget(e->writing); /* superseded */
	e->writing = job;
	return 0;
}

static int write_item(struct store_item *item)
{
	struct run_record *e = CONTAINER_OF(item, struct run_record, dirty);
	struct error err = {0};

	if (write_row(e, &err) < 0)
		return -1;
	list_remove(&item->node);
	/* A forgotten one was kept for this. */
	if (e->state == RUN_RECORD_ENDED && !e->owner && list_is_empty(&e->watches) &&
	    !e->delivering)
		run_record_free(e);
	return 0;
}

void run_row_changed(struct run_record *e)
{
	struct store *s = e->all->store;

	if (!s || e->withdrawn || !list_is_empty(&e->dirty.node))
		return;
	e->dirty.write = write_item;
	list_append(&s->executions, &e->dirty.node);
	store_wants_flush(s, STORE_FLUSH_US);
}

int run_row_write_now(struct run_record *e, struct error *err)
{
	/* Writes its session first. */
	run_row_changed(e);
	store_flush(e->all->store);
	if (list_is_empty(&e->dirty.node))
		return 0;
	list_remove(&e->dirty.node);
	return write_row(e, err);
}

bool run_row_flush(struct run_record *e)
{
	struct error err = {0};

	if (!e->all->store || e->withdrawn || list_is_empty(&e->dirty.node))
		return false;
	if (write_row(e, &err) < 0)
		return true;
	list_remove(&e->dirty.node);
	return false;
}

bool run_row_hurry(struct run_record *e)
{
	struct store *s = e->all ? e->all->store : NULL;

	if (!s || (!e->writing && list_is_empty(&e->dirty.node)))
		return false;
	store_flush(s);
	return true;
}

static void on_paused(void *ctx, const struct error *err)
{
	(void)store_was_written(ctx, err);
}

/* Not part of the row, which is written as a whole. */
void run_row_paused(struct run_record *e)
{
	struct store *s = e->all->store;
	struct error err = {0};

	if (!s || e->withdrawn)
		return;
	store_flush(s); /* the row first */
	if (!db_write(s->db,
	              &DB_SQL("UPDATE executions SET paused_ms = ?2 WHERE id = ?1 AND tenant = ?3"
	                      " AND session_id = ?4 AND created_ms = ?5",
	                      DB_TEXT(e->id), DB_INT(e->paused_ms), DB_TEXT(e->tenant),
	                      DB_TEXT(e->session_id), DB_INT(e->created_ms)),
	              1, on_paused, s, &err))
		log_error("write a pause", &err);
}

void run_row_gone(struct run_record *e)
{
	list_remove(&e->dirty.node);
	if (e->writing)
		db_forget(TAKE_PTR(e->writing));
}

enum column {
	COLUMN_ID,
	COLUMN_TENANT,
	COLUMN_SESSION_ID,
	COLUMN_SESSION_MS,
	COLUMN_CREATED_MS,
	COLUMN_STARTED_MS,
	COLUMN_COMPLETED_MS,
	COLUMN_LANGUAGE,
	COLUMN_TIMEOUT_US,
	COLUMN_REQUEST_ID,
	COLUMN_KEY_ID,
	COLUMN_OUTCOME,
	COLUMN_FAILURE,
	COLUMN_FILES,
	COLUMN_REPORT,
	COLUMN_CODE,
	COLUMN_OUT,
	COLUMN_ERR,
	COLUMN_EVENTS,
};

/* Ended, of sessions that are not deleted. */
#define SELECT_EXECUTION                                                                           \
	"SELECT " STORE_EXECUTION_COLUMNS " FROM executions e WHERE e.completed_ms IS NOT NULL"    \
	" AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.tenant = e.tenant"                      \
	" AND s.id = e.session_id AND s.created_ms = e.session_ms AND s.deleted = 1)"

/* The same columns, with the request instead of the result. */
#define COLUMN_REQUEST COLUMN_OUT
#define COLUMN_BEGUN   COLUMN_ERR
#define COLUMN_PAUSED  COLUMN_EVENTS
#define SELECT_LIVE                                                                                \
	"SELECT id, tenant, session_id, session_ms, created_ms, started_ms, NULL, language,"       \
	" timeout_us, request_id, key_id, NULL, NULL, NULL, NULL, code, request, begun, paused_ms" \
	" FROM"                                                                                    \
	" executions e WHERE completed_ms IS NULL AND NOT EXISTS (SELECT 1 FROM sessions s WHERE " \
	"s.tenant = e.tenant"                                                                      \
	" AND s.id = e.session_id AND s.created_ms = e.session_ms AND s.deleted = 1)"

static void fill_buf(struct buf *b, const struct db_rows *rows, size_t row, size_t column)
{
	size_t len;
	const char *data = db_rows_bytes(rows, row, column, &len);

	buf_init(b, len);
	if (data && len > 0 && buf_add(b, data, len) < 0)
		log_warn("output of a stored execution does not fit into memory, ignoring");
}

static void read_failure(const char *text, struct error *ret_failure)
{
	json_t *j = text ? json_loads(text, 0, NULL) : NULL;
	const char *name = json_string_value(json_object_get(j, "code"));
	const char *msg = json_string_value(json_object_get(j, "msg"));
	enum error_code code = ERR_AGENT_LOST;

	for (int i = 1; name && i < ERR_COUNT; i++)
		if (str_equal(error_name((enum error_code)i), name))
			code = (enum error_code)i;
	(void)error_set(ret_failure, code, (int)json_integer_value(json_object_get(j, "sys")), "%s",
	                msg ? msg : "the daemon ended before it did");
	json_decref(j);
}

/* A run lost with the daemon has no events, only times. */
static void read_events(struct run_record *e, const struct db_rows *rows, size_t row)
{
	uint32_t at[OUTPUT_COUNT] = {0};
	size_t len;
	const unsigned char *bytes =
		(const unsigned char *)db_rows_bytes(rows, row, COLUMN_EVENTS, &len);

	if (!bytes) {
		if (e->started_ms)
			run_record_add_piece(e, RUN_EVENT_START, 0, 0);
		run_record_add_piece(e, RUN_EVENT_END, 0, 0);
	}
	for (; bytes && len >= EVENT_LEN; bytes += EVENT_LEN, len -= EVENT_LEN) {
		uint32_t size = bytes[1] | (uint32_t)bytes[2] << 8 | (uint32_t)bytes[3] << 16 |
		                (uint32_t)bytes[4] << 24;
		bool is_err = bytes[0] == RUN_EVENT_STDERR;
		uint32_t *place = &at[is_err ? OUTPUT_STDERR : OUTPUT_STDOUT];
		const struct buf *b = is_err ? &e->outcome.err : &e->outcome.out;

		if (bytes[0] >= RUN_EVENT_COUNT || size > b->len - *place)
			break; /* corrupt */
		run_record_add_piece(e, (enum run_event_kind)bytes[0], *place, size);
		*place += size;
	}
}

static void read_files(const char *column, struct artifacts *ret_files)
{
	json_t *list = column ? json_loads(column, 0, NULL) : NULL;
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		const char *path = json_string_value(json_array_get(item, 0));
		const char *hex = json_string_value(json_array_get(item, 3));
		struct artifact *file = path ? artifacts_add(ret_files, path) : NULL;
		size_t len = 0;

		if (!file)
			continue;
		file->size = (uint64_t)json_integer_value(json_array_get(item, 1));
		file->changed_ms = (uint64_t)json_integer_value(json_array_get(item, 2));
		file->hashed = hex && strlen(hex) == HEX_LEN &&
		               sodium_hex2bin(file->sha256, sizeof(file->sha256), hex, HEX_LEN,
		                              NULL, &len, NULL) == 0 &&
		               len == sizeof(file->sha256);
	}
	json_decref(list);
}

static struct run_record *read_common(struct run_records *all, const struct db_rows *rows,
                                      size_t row)
{
	struct run_record *e = run_record_new_blank(all);
	const char *code = db_rows_bytes(rows, row, COLUMN_CODE, &e->code_len);
	const char *key = db_rows_text(rows, row, COLUMN_KEY_ID);

	/* They fitted when written. */
	(void)!str_copy(e->id, sizeof(e->id), db_rows_text(rows, row, COLUMN_ID));
	(void)!str_copy(e->tenant, sizeof(e->tenant), db_rows_text(rows, row, COLUMN_TENANT));
	e->session_id = xstrdup(db_rows_text(rows, row, COLUMN_SESSION_ID));
	e->session_ms = (uint64_t)db_rows_int(rows, row, COLUMN_SESSION_MS);
	e->created_ms = (uint64_t)db_rows_int(rows, row, COLUMN_CREATED_MS);
	e->started_ms = (uint64_t)db_rows_int(rows, row, COLUMN_STARTED_MS);
	e->timeout_us = (uint64_t)db_rows_int(rows, row, COLUMN_TIMEOUT_US);
	e->language = xstrdup(db_rows_text(rows, row, COLUMN_LANGUAGE));
	e->request_id = xstrdup(db_rows_text(rows, row, COLUMN_REQUEST_ID));
	e->key_id = key ? xstrdup(key) : NULL;
	e->code = xmemdup0(code ? code : "", e->code_len);
	e->stored = e->begun = true;
	return e;
}

struct run_record *run_row_read(struct run_records *all, const struct db_rows *rows, size_t row)
{
	struct run_record *e = read_common(all, rows, row);
	const char *outcome = db_rows_text(rows, row, COLUMN_OUTCOME);

	e->completed_ms = (uint64_t)db_rows_int(rows, row, COLUMN_COMPLETED_MS);
	e->state = RUN_RECORD_ENDED;
	e->has_outcome = outcome && outcome_from_json(outcome, &e->outcome, &e->session_reset) == 0;
	if (!e->has_outcome)
		read_failure(db_rows_text(rows, row, COLUMN_FAILURE), &e->failure);
	read_files(db_rows_text(rows, row, COLUMN_FILES), &e->outcome.artifacts);
	(void)!str_copy(e->outcome.execution_id, sizeof(e->outcome.execution_id), e->id);
	fill_buf(&e->outcome.out, rows, row, COLUMN_OUT);
	fill_buf(&e->outcome.err, rows, row, COLUMN_ERR);
	fill_buf(&e->outcome.report, rows, row, COLUMN_REPORT);
	read_events(e, rows, row);
	return e;
}

static void on_found(void *ctx, const struct db_rows *rows, const struct error *err)
{
	struct store_load *search = ctx;
	struct store_load found = *search;

	free(search);
	for (size_t i = 0; rows && i < db_rows_count(rows); i++) {
		const char *id = db_rows_text(rows, i, COLUMN_ID);
		const char *tenant = db_rows_text(rows, i, COLUMN_TENANT);

		/* Searches may overlap. */
		if (!run_records_find(found.executions, tenant, id))
			run_records_remember(found.executions,
			                     run_row_read(found.executions, rows, i));
	}
	found.fn(found.ctx, err);
}

static struct store_load *begin_search(struct run_records *all, const struct db_statement *query,
                                       store_done_fn *fn, void *ctx, struct error *err)
{
	struct store_load *search = NEW(struct store_load);

	search->executions = all;
	search->fn = fn;
	search->ctx = ctx;
	store_flush(all->store);
	search->job = db_read(all->store->db, query, ROW_MAX, on_found, search, err);
	if (search->job)
		return search;
	free(search);
	return NULL;
}

struct store_load *run_row_load(struct run_records *all, const char *tenant, const char *id,
                                store_done_fn *fn, void *ctx, struct error *err)
{
	return begin_search(all,
	                    &DB_SQL(SELECT_EXECUTION " AND e.tenant = ?1 AND e.id = ?2",
	                            DB_TEXT(tenant), DB_TEXT(id)),
	                    fn, ctx, err);
}

struct store_load *run_row_load_latest(struct run_records *all, const char *tenant,
                                       const char *session_id, store_done_fn *fn, void *ctx,
                                       struct error *err)
{
	return begin_search(all,
	                    &DB_SQL(SELECT_EXECUTION
	                            " AND e.tenant = ?1 AND e.session_id = ?2 AND e.session_ms ="
	                            " (SELECT max(created_ms) FROM sessions WHERE tenant = ?1 AND"
	                            " id = ?2) ORDER BY e.no DESC LIMIT 1",
	                            DB_TEXT(tenant), DB_TEXT(session_id)),
	                    fn, ctx, err);
}

int run_row_live(struct store *s, struct db_rows **ret_rows, struct error *err)
{
	return db_query_now(s->db, &DB_SQL(SELECT_LIVE " ORDER BY no"), SIZE_MAX, ret_rows, err);
}

struct run_record *run_row_read_live(struct run_records *all, const struct db_rows *rows,
                                     size_t row, const char **ret_request)
{
	struct run_record *e = read_common(all, rows, row);

	e->exact = true;
	e->begun = db_rows_int(rows, row, COLUMN_BEGUN) != 0;
	e->paused_ms = (uint64_t)db_rows_int(rows, row, COLUMN_PAUSED);
	e->state = e->started_ms ? RUN_RECORD_RUNNING : RUN_RECORD_PENDING;
	*ret_request = db_rows_text(rows, row, COLUMN_REQUEST);
	run_records_enter(all, e);
	return e;
}
