/* SPDX-License-Identifier: Apache-2.0 */
#include "core/store_clean.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/config.h"
#include "core/execution.h"
#include "core/session.h"
#include "core/store_internal.h"
#include "io/loop.h"

/*
 * Theory of operation. A round is a list of steps; a step is one statement that removes at most
 * BATCH_ROWS rows of at most about BATCH_BYTES, and says which. While a step removes something it
 * is repeated after a pause; then comes the next; after the last the round rests. What is removed
 * from the store leaves memory too, so that nobody reads what is said to be gone.
 */

#define BATCH_ROWS       "64"
#define BATCH_BYTES      "4194304"
#define ROWS_MAX_BYTES   (1u << 20)
#define PAUSE_US         (5 * USEC_PER_MS)
#define INTERVAL_MIN_US  (200 * USEC_PER_MS)
#define INTERVAL_MAX_US  (60 * USEC_PER_SEC)
#define INTERVAL_PER_AGE 10 /* that often within the time that something is kept */

/* Of the candidates, oldest first, as many as a batch may have; one in any case. */
#define DELETE_BATCH(candidates)                                                                   \
	"DELETE FROM executions WHERE no IN (SELECT no FROM (SELECT no, bytes, sum(bytes) OVER"    \
	" (ORDER BY completed_ms, no) AS reach FROM (" candidates " LIMIT " BATCH_ROWS "))"        \
	" WHERE reach - bytes < " BATCH_BYTES ") RETURNING tenant, id, 0"

enum step {
	STEP_DELETED_EXECUTIONS,
	STEP_DELETED_SESSIONS,
	STEP_OLD_EXECUTIONS,
	STEP_MANY_EXECUTIONS,
	STEP_LARGE_EXECUTIONS,
	STEP_OLD_SESSIONS,
	STEP_COUNT
};

struct store_cleaner {
	struct store_clean_config parts;
	struct timer *timer;
	struct db_job *job; /* NULL: it rests */
	enum step step;
};

static void on_batch(void *ctx, const struct db_rows *rows, const struct error *err);

static struct db_job *remove_executions(struct store_cleaner *c, struct error *err)
{
	const struct config *config = c->parts.config;
	struct db *db = store_db(c->parts.store);
	int64_t before = (int64_t)(clock_real_ms() - config->retention_executions_us / 1000);

	if (c->step == STEP_DELETED_EXECUTIONS)
		return db_change(
			db,
			&DB_SQL(DELETE_BATCH(
				"SELECT e.no, e.bytes, e.completed_ms FROM sessions s JOIN"
				" executions e ON e.tenant = s.tenant AND e.session_id = s.id AND"
				" e.session_ms = s.created_ms WHERE s.deleted = 1")),
			ROWS_MAX_BYTES, on_batch, c, err);
	if (c->step == STEP_OLD_EXECUTIONS)
		return db_change(
			db,
			&DB_SQL(DELETE_BATCH("SELECT no, bytes, completed_ms FROM executions"
		                             " WHERE completed_ms < ?1 ORDER BY"
		                             " completed_ms, no"),
		                DB_INT(before)),
			ROWS_MAX_BYTES, on_batch, c, err);
	if (c->step == STEP_MANY_EXECUTIONS)
		return db_change(
			db,
			&DB_SQL(DELETE_BATCH("SELECT no, bytes, completed_ms FROM executions WHERE"
		                             " completed_ms <= (SELECT completed_ms FROM executions"
		                             " WHERE completed_ms IS NOT NULL ORDER BY"
		                             " completed_ms DESC, no DESC LIMIT 1 OFFSET ?1)"
		                             " ORDER BY completed_ms, no"),
		                DB_INT(config->retention_count)),
			ROWS_MAX_BYTES, on_batch, c, err);
	return db_change(db,
	                 &DB_SQL(DELETE_BATCH("SELECT no, bytes, completed_ms FROM executions WHERE"
	                                      " completed_ms IS NOT NULL AND (SELECT sum(bytes)"
	                                      " FROM executions WHERE completed_ms IS NOT NULL)"
	                                      " > ?1 ORDER BY completed_ms, no"),
	                         DB_INT(config->retention_bytes)),
	                 ROWS_MAX_BYTES, on_batch, c, err);
}

static struct db_job *remove_sessions(struct store_cleaner *c, struct error *err)
{
	struct db *db = store_db(c->parts.store);
	uint64_t kept_us = c->parts.config->retention_sessions_us;

	/* One that was deleted since the step before still hides its executions. */
	if (c->step == STEP_DELETED_SESSIONS)
		return db_change(db,
		                 &DB_SQL("DELETE FROM sessions WHERE no IN (SELECT no FROM sessions"
		                         " WHERE deleted = 1 AND NOT EXISTS (SELECT 1 FROM"
		                         " executions e WHERE e.tenant = sessions.tenant AND"
		                         " e.session_id = sessions.id AND e.session_ms ="
		                         " sessions.created_ms) LIMIT " BATCH_ROWS
		                         ") RETURNING tenant, id, created_ms"),
		                 ROWS_MAX_BYTES, on_batch, c, err);
	return db_change(db,
	                 &DB_SQL("DELETE FROM sessions WHERE no IN (SELECT no FROM sessions WHERE"
	                         " ended_ms < ?1 ORDER BY ended_ms, no LIMIT " BATCH_ROWS
	                         ") RETURNING tenant, id, created_ms",
	                         DB_INT((int64_t)(clock_real_ms() - kept_us / 1000))),
	                 ROWS_MAX_BYTES, on_batch, c, err);
}

static bool is_of_sessions(enum step step)
{
	return step == STEP_DELETED_SESSIONS || step == STEP_OLD_SESSIONS;
}

static uint64_t interval(const struct store_cleaner *c)
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

static void on_timer(void *ctx)
{
	struct store_cleaner *c = ctx;
	struct error err = {0};

	c->job = is_of_sessions(c->step) ? remove_sessions(c, &err) : remove_executions(c, &err);
	/* The queue is full: there is something more important to write. */
	if (!c->job)
		timer_start(c->timer, interval(c));
}

static void forget(const struct store_cleaner *c, const struct db_rows *rows)
{
	for (size_t i = 0; i < db_rows_count(rows); i++) {
		const char *tenant = db_rows_text(rows, i, 0), *id = db_rows_text(rows, i, 1);

		if (is_of_sessions(c->step))
			session_expire(c->parts.sessions, tenant, id,
			               (uint64_t)db_rows_int(rows, i, 2));
		else
			executions_expire(c->parts.executions, tenant, id);
	}
}

/* Free pages go back to the file system, a few at a time. */
static void give_back(const struct store_cleaner *c)
{
	struct error err = {0};

	/* Without room in the queue it is for the next batch to do. */
	(void)!db_write(store_db(c->parts.store), &DB_SQL("PRAGMA incremental_vacuum(256)"), 1,
	                NULL, NULL, &err);
}

static void on_batch(void *ctx, const struct db_rows *rows, const struct error *err)
{
	struct store_cleaner *c = ctx;
	size_t count = rows ? db_rows_count(rows) : 0;

	c->job = NULL;
	if (err)
		log_error("clean up the store", err);
	if (count > 0) {
		forget(c, rows);
		give_back(c);
		timer_start(c->timer, PAUSE_US);
		return;
	}
	c->step = (enum step)((c->step + 1) % STEP_COUNT);
	timer_start(c->timer, c->step == 0 || err ? interval(c) : PAUSE_US);
}

struct store_cleaner *store_cleaner_new(const struct store_clean_config *config)
{
	struct store_cleaner *c = NEW(struct store_cleaner);

	c->parts = *config;
	c->timer = timer_new(config->loop, on_timer, c);
	timer_start(c->timer, INTERVAL_MIN_US);
	return c;
}

void store_cleaner_free(struct store_cleaner *c)
{
	if (!c)
		return;
	if (c->job)
		db_forget(c->job);
	timer_free(c->timer);
	free(c);
}
