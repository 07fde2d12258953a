/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the record of a run: the request, what happened as numbered events, the outcome. Kept for a
 * while after the end, so that a client that was cut off can read on from an event number. Bounded
 * in number and bytes; the oldest ended go first. Owned by struct run_records. The record of a
 * one-shot run has one watcher, belongs to the run and goes with it.
 *
 * Watchers are called from the loop, never from inside a call.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/run/outcome.h"
#include "core/tenant/principal.h"
#include "driver/driver.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_record;
struct run_records;
struct loop;
struct store;
struct audit;
struct metrics;

enum run_record_state {
	RUN_RECORD_PENDING, /* queued */
	RUN_RECORD_RUNNING,
	RUN_RECORD_ENDED, /* has an outcome or a failure */
	RUN_RECORD_STATE_COUNT
};

enum run_event_kind {
	RUN_EVENT_START,
	RUN_EVENT_STDOUT,
	RUN_EVENT_STDERR,
	RUN_EVENT_END, /* the last one */
	RUN_EVENT_COUNT
};

/* Numbered from 1 without gaps; 0: of a one-shot run. @data is borrowed. At END, run_record_info
 * has the outcome or the failure. */
struct run_event {
	uint64_t number;
	enum run_event_kind kind;
	const char *data; /* bytes of output */
	size_t len;
};

struct run_record_info {
	const char *tenant;
	const char *id, *language;
	const char *session_id; /* NULL: a one-shot run */
	const char *request_id; /* "": unknown */
	const char *code;       /* NULL once forgotten for size */
	size_t code_len;
	enum run_record_state state;
	uint64_t created_ms, started_ms, completed_ms; /* 0: not yet */
	uint64_t paused_ms;
	uint64_t timeout_us;
	const struct outcome *outcome; /* ENDED: NULL: it could not be run, see @failure */
	const struct error *failure;
	bool session_reset; /* a runner was lost: the session's variables are gone */
	bool begun;         /* PENDING: it may have begun; see run_record_begin */
};

struct run_record_new {
	const char *request_id; /* NULL: none */
	const char *key_id;     /* NULL: no key was needed */
	const char *tenant;     /* copied, as all strings; NULL: TENANT_DEFAULT */
	const char *session_id;
	const char *language;
	const char *code;
	size_t code_len;
	uint64_t timeout_us;
	uint64_t session_ms; /* its session's created_ms: ids are reused */
	char *request;       /* taken; stored, to run it after a restart; NULL: not stored */
	bool waits;          /* it begins with run_record_begin */
	bool exact;          /* each piece of output is an event: a box may repeat them */
};

void run_records_free(struct run_records *all);
/** run_records_new - keeps at most @max_count ended records of @max_bytes together. */
struct run_records *run_records_new(struct loop *loop, size_t max_count, size_t max_bytes)
	attr_owned(run_records_free);
/** run_records_set_metrics - count every end there; borrowed. */
void run_records_set_metrics(struct run_records *all, struct metrics *metrics);
/** run_records_set_store - write every record there; borrowed. */
void run_records_set_store(struct run_records *all, struct store *store);
/** run_records_set_audit - log every end there; borrowed. */
void run_records_set_audit(struct run_records *all, struct audit *audit);
struct run_record *run_records_add(struct run_records *all, const struct run_record_new *what);
/** run_records_find - NULL when unknown, forgotten or another tenant's. */
struct run_record *run_records_find(struct run_records *all, const char *tenant, const char *id);
/** run_records_of - of one session, newest first; NULL past the end. O(offset). */
struct run_record *run_records_of(struct run_records *all, const char *tenant,
                                  const char *session_id, size_t offset);
size_t run_records_count_of(struct run_records *all, const char *tenant, const char *session_id);
/** run_records_expire - retention removed an ended one from the store: forget it. */
void run_records_expire(struct run_records *all, const char *tenant, const char *id);
/** run_records_delete - run_records_forget without writing pending changes. */
void run_records_delete(struct run_records *all, const char *tenant, const char *session_id);
/** run_records_forget - all of one session, in memory. Watchers get END first. */
void run_records_forget(struct run_records *all, const char *tenant, const char *session_id);

void run_record_info(const struct run_record *e, struct run_record_info *ret_info);
/** run_record_printed - output so far; borrowed until the next event. */
const struct buf *run_record_printed(const struct run_record *e, enum output_stream stream);

/** run_record_stored_fn - @err NULL: the record is on disk. Else the run was not accepted: nothing
 * ran, and the record is gone when this returns. */
typedef void run_record_stored_fn(void *ctx, struct run_record *e, const struct error *err);
/**
 * run_record_when_stored - call @fn once, from the loop; at once if there is no store. For a
 * durable request (struct run_request). @fn NULL: cancel that.
 */
void run_record_when_stored(struct run_record *e, run_record_stored_fn *fn, void *ctx);

/* Called by the run. */

/**
 * run_record_begin - for a record with @waits: persist that it begins before it does, so that it
 * never runs twice, even after a crash. Return: 0: begin now; 1: begin when @fn is called without
 * an error; -1: it cannot be written.
 */
int run_record_begin(struct run_record *e, run_record_stored_fn *fn, void *ctx,
                     struct error *err) attr_must_check;
void run_record_started(struct run_record *e);
/** run_record_paused - it was paused for @ms more. */
void run_record_paused(struct run_record *e, uint64_t ms);
void run_record_add_output(struct run_record *e, enum output_stream stream, const char *data,
                           size_t len);
/**
 * run_record_ended - takes what @outcome owns. The output is that of run_record_add_output.
 */
void run_record_ended(struct run_record *e, struct outcome *outcome, bool session_reset);
void run_record_failed(struct run_record *e, const struct error *err);
/**
 * run_record_when_settled - call @fn once, when the end of @e is on disk (without a store: when it
 * has ended) or the record is freed; possibly from inside run_record_ended and run_record_failed.
 */
void run_record_when_settled(struct run_record *e, void (*fn)(void *ctx), void *ctx);

/** run_record_set_control - what run_record_cancel and _stdin call; NULL: refused. */
void run_record_set_control(struct run_record *e, void (*cancel)(void *ctx),
                            int (*input)(void *ctx, const void *data, size_t len, bool end,
                                         struct error *err),
                            void *ctx);
/** run_record_cancel - ERR_CONFLICT when it has ended. */
int run_record_cancel(struct run_record *e, struct error *err) attr_must_check;
/** run_record_stdin - for a request that left stdin open. */
int run_record_stdin(struct run_record *e, const void *data, size_t len, bool end,
                     struct error *err) attr_must_check;

struct run_watch;
typedef void run_event_fn(void *ctx, struct run_record *e, const struct run_event *event);
/**
 * run_watch - call @fn for every event after number @after, past ones first, up to and including
 * END; at least for END. The record stays while it is watched; the watch goes with END.
 */
struct run_watch *run_watch(struct run_record *e, uint64_t after, run_event_fn *fn, void *ctx);
/** run_unwatch - no callback follows; may be called in @fn, except at END. Ends a one-shot run; a
 * session's goes on, and its caller can come back. */
void run_unwatch(struct run_watch *w);
/** run_watch_cancel - run_record_cancel and run_unwatch. */
void run_watch_cancel(struct run_watch *w);
