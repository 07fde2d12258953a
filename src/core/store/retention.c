/* SPDX-License-Identifier: Apache-2.0 */
#include "core/store/retention.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/config/config.h"
#include "core/store/store_internal.h"
#include "io/loop.h"

/*
 * A round is a list of steps. A step is one statement that removes at most BATCH_ROWS rows of about
 * BATCH_BYTES; it repeats after a pause while it finds some. Removed rows leave memory too: what
 * has expired cannot be read.
 *
 * Over a limit, the tenant that has most loses its oldest, but keeps an equal share: no tenant
 * within its share loses anything to others. Triggers keep the totals
 * (migrations/005_retention.sql).
 */

#define BATCH_ROWS_MAX   64
#define BATCH_BYTES_MAX  4194304
#define TEXT_OF(number)  #number
#define AS_TEXT(number)  TEXT_OF(number)
#define BATCH_ROWS       AS_TEXT(BATCH_ROWS_MAX)
#define BATCH_BYTES      AS_TEXT(BATCH_BYTES_MAX)
#define ROWS_MAX_BYTES   (1u << 20)
#define PAUSE_US         (5 * USEC_PER_MS)
#define INTERVAL_MIN_US  (200 * USEC_PER_MS)
#define INTERVAL_MAX_US  (60 * USEC_PER_SEC)
#define INTERVAL_PER_AGE 10 /* rounds per retention time */

/* The largest tenant, its total, the total of all, the number of tenants. */
#define MOST_OF(what)                                                                              \
	"SELECT tenant, " what ", (SELECT sum(" what ") FROM usage), (SELECT count(*) FROM usage)" \
	" FROM usage ORDER BY " what " DESC LIMIT 1"

/* The oldest candidates that fit into a batch; at least one. */
#define DELETE_BATCH(candidates)                                                                   \
	"DELETE FROM executions WHERE no IN (SELECT no FROM (SELECT no, bytes, sum(bytes) OVER"    \
	" (ORDER BY completed_ms, no) AS reach FROM (" candidates " LIMIT " BATCH_ROWS "))"        \
	" WHERE reach - bytes < " BATCH_BYTES ") RETURNING tenant, id, 0"

enum step {
	STEP_DEPARTED_EXECUTIONS, /* of deleted tenants */
	STEP_DEPARTED_SESSIONS,
	STEP_DEPARTED_TENANTS,
	STEP_DELETED_EXECUTIONS,
	STEP_DELETED_SESSIONS,
	STEP_OLD_EXECUTIONS,
	STEP_MANY_EXECUTIONS,
	STEP_LARGE_EXECUTIONS,
	STEP_OLD_SESSIONS,
	STEP_COUNT
};

struct retention {
	struct retention_config parts;
	struct timer *timer;
	struct db_job *job; /* NULL: resting */
	enum step step;
	bool hurried; /* start another round */
};

static void on_batch(void *ctx, const struct db_rows *rows, const struct error *err);

/* How much of @own may go. */
static int64_t excess_of(int64_t own, int64_t total, int64_t tenants, uint64_t max)
{
	int64_t over = total - (int64_t)max;
	int64_t beyond = own - (int64_t)max / (tenants > 0 ? tenants : 1);

	if (over <= 0 || beyond <= 0)
		return 0;
	return over < beyond ? over : beyond;
}

static struct db_job *remove_of(struct retention *c, const char *tenant, int64_t rows,
                                int64_t bytes, struct error *err)
{
	return db_change(
		store_db(c->parts.store),
		&DB_SQL("DELETE FROM executions WHERE no IN (SELECT no FROM (SELECT no, bytes,"
	                " sum(bytes) OVER (ORDER BY completed_ms, no) AS reach FROM (SELECT no,"
	                " bytes, completed_ms FROM executions WHERE tenant = ?1 AND completed_ms"
	                " IS NOT NULL ORDER BY completed_ms, no LIMIT ?2)) WHERE reach - bytes <"
	                " ?3) RETURNING tenant, id, 0",
	                DB_TEXT(tenant), DB_INT(rows < BATCH_ROWS_MAX ? rows : BATCH_ROWS_MAX),
	                DB_INT(bytes < BATCH_BYTES_MAX ? bytes : BATCH_BYTES_MAX)),
		ROWS_MAX_BYTES, on_batch, c, err);
}

typedef void forget_fn(const struct retention_config *parts, const struct db_rows *rows,
                       size_t row);

static void forget_execution(const struct retention_config *parts, const struct db_rows *rows,
                             size_t row)
{
	if (parts->forget_run)
		parts->forget_run(parts->ctx, db_rows_text(rows, row, 0),
		                  db_rows_text(rows, row, 1));
}

static void forget_session(const struct retention_config *parts, const struct db_rows *rows,
                           size_t row)
{
	if (parts->forget_session)
		parts->forget_session(parts->ctx, db_rows_text(rows, row, 0),
		                      db_rows_text(rows, row, 1),
		                      (uint64_t)db_rows_int(rows, row, 2));
}

static void forget_tenant(const struct retention_config *parts, const struct db_rows *rows,
                          size_t row)
{
	if (parts->forget_tenant)
		parts->forget_tenant(parts->ctx, db_rows_text(rows, row, 0));
}

/* clang-format off */
static const struct {
	const char *sql;   /* returns tenant, id, created_ms; or MOST_OF */
	forget_fn *forget;
	size_t kept;       /* offset in struct config: maximum age; 0: any age */
} steps[] = {
	/* CROSS fixes the join order. */
	[STEP_DEPARTED_EXECUTIONS] = {
		DELETE_BATCH("SELECT e.no, e.bytes, e.completed_ms FROM departed d"
		             " CROSS JOIN executions e ON e.tenant = d.name"), forget_execution, 0},
	[STEP_DEPARTED_SESSIONS] = {
		"DELETE FROM sessions WHERE no IN (SELECT s.no FROM departed d CROSS JOIN sessions s"
		" ON s.tenant = d.name LIMIT " BATCH_ROWS ") RETURNING tenant, id, created_ms", forget_session, 0},
	[STEP_DEPARTED_TENANTS] = {
		"DELETE FROM departed WHERE NOT EXISTS (SELECT 1 FROM executions e WHERE e.tenant = departed.name)"
		" AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.tenant = departed.name) RETURNING name, '', 0", forget_tenant, 0},
	[STEP_DELETED_EXECUTIONS] = {
		DELETE_BATCH("SELECT e.no, e.bytes, e.completed_ms FROM sessions s JOIN executions e ON e.tenant = s.tenant"
		             " AND e.session_id = s.id AND e.session_ms = s.created_ms WHERE s.deleted = 1"), forget_execution, 0},
	/* A session deleted since the previous step still hides its executions. */
	[STEP_DELETED_SESSIONS] = {
		"DELETE FROM sessions WHERE no IN (SELECT no FROM sessions WHERE deleted = 1 AND NOT EXISTS (SELECT 1"
		" FROM executions e WHERE e.tenant = sessions.tenant AND e.session_id = sessions.id AND e.session_ms ="
		" sessions.created_ms) LIMIT " BATCH_ROWS ") RETURNING tenant, id, created_ms", forget_session, 0},
	[STEP_OLD_EXECUTIONS] = {
		DELETE_BATCH("SELECT no, bytes, completed_ms FROM executions WHERE completed_ms < ?1"
		             " ORDER BY completed_ms, no"), forget_execution, offsetof(struct config, retention_executions_us)},
	[STEP_MANY_EXECUTIONS] = {MOST_OF("executions"), forget_execution, 0},
	[STEP_LARGE_EXECUTIONS] = {MOST_OF("bytes"), forget_execution, 0},
	[STEP_OLD_SESSIONS] = {
		"DELETE FROM sessions WHERE no IN (SELECT no FROM sessions WHERE ended_ms < ?1 ORDER BY ended_ms, no LIMIT "
		BATCH_ROWS ") RETURNING tenant, id, created_ms", forget_session, offsetof(struct config, retention_sessions_us)},
};
/* clang-format on */
static_assert(ARRAY_SIZE(steps) == STEP_COUNT, "every step has its row");

static uint64_t sweep_interval(const struct retention *c)
{
	const struct config *config = c->parts.config;
	uint64_t kept = config->retention_sessions_us < config->retention_executions_us
	                        ? config->retention_sessions_us
	                        : config->retention_executions_us;
	uint64_t us = kept / INTERVAL_PER_AGE;

	if (us < INTERVAL_MIN_US)
		return INTERVAL_MIN_US;
	return us < INTERVAL_MAX_US ? us : INTERVAL_MAX_US;
}

static void next_step(struct retention *c, bool failed)
{
	bool rest;

	c->step = (enum step)((c->step + 1) % STEP_COUNT);
	rest = failed || (c->step == 0 && !c->hurried);
	if (c->step == 0)
		c->hurried = false;
	timer_start(c->timer, rest ? sweep_interval(c) : PAUSE_US);
}

void retention_hurry(struct retention *c)
{
	/* The step for the new rows may have run already. */
	c->hurried = c->step != 0 || c->job;
	if (!c->hurried)
		timer_start(c->timer, PAUSE_US);
}

static void on_usage(void *ctx, const struct db_rows *rows, const struct error *err)
{
	struct retention *c = ctx;
	bool by_count = c->step == STEP_MANY_EXECUTIONS;
	const struct config *config = c->parts.config;
	struct error busy = {0};
	int64_t excess = 0;

	c->job = NULL;
	if (err)
		log_error("query the store for retention", err);
	else if (db_rows_count(rows) > 0)
		excess = excess_of(db_rows_int(rows, 0, 1), db_rows_int(rows, 0, 2),
		                   db_rows_int(rows, 0, 3),
		                   by_count ? config->retention_count : config->retention_bytes);
	if (excess > 0)
		c->job = remove_of(c, db_rows_text(rows, 0, 0), by_count ? excess : BATCH_ROWS_MAX,
		                   by_count ? BATCH_BYTES_MAX : excess, &busy);
	if (!c->job)
		next_step(c, err || excess > 0);
}

static void on_batch(void *ctx, const struct db_rows *rows, const struct error *err)
{
	struct retention *c = ctx;
	size_t count = rows ? db_rows_count(rows) : 0;
	struct error busy = {0};

	c->job = NULL;
	if (err)
		log_error("remove expired rows from the store", err);
	if (count > 0) {
		for (size_t i = 0; i < count; i++)
			steps[c->step].forget(&c->parts, rows, i);
		/* Return free pages to the file system. */
		(void)!db_write(store_db(c->parts.store), &DB_SQL("PRAGMA incremental_vacuum(256)"),
		                1, NULL, NULL, &busy);
		timer_start(c->timer, PAUSE_US);
		return;
	}
	next_step(c, err);
}

static void on_timer(void *ctx)
{
	struct retention *c = ctx;
	const void *kept = (const char *)c->parts.config + steps[c->step].kept;
	uint64_t kept_us = steps[c->step].kept ? *(const uint64_t *)kept : 0;
	const struct db_value before = DB_INT((int64_t)(clock_real_ms() - kept_us / 1000));
	const struct db_statement statement = {steps[c->step].sql, &before, kept_us > 0};
	struct db *db = store_db(c->parts.store);
	struct error err = {0};

	if (c->step == STEP_MANY_EXECUTIONS || c->step == STEP_LARGE_EXECUTIONS)
		c->job = db_read(db, &statement, ROWS_MAX_BYTES, on_usage, c, &err);
	else
		c->job = db_change(db, &statement, ROWS_MAX_BYTES, on_batch, c, &err);
	/* The queue is full of more important writes. */
	if (!c->job)
		timer_start(c->timer, sweep_interval(c));
}

struct retention *retention_new(const struct retention_config *config)
{
	struct retention *c = NEW(struct retention);

	c->parts = *config;
	c->timer = timer_new(config->loop, on_timer, c);
	timer_start(c->timer, INTERVAL_MIN_US);
	return c;
}

void retention_free(struct retention *c)
{
	if (!c)
		return;
	if (c->job)
		db_forget(c->job);
	timer_free(c->timer);
	free(c);
}
