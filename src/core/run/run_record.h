/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the record of an execution: what was asked, what happened as numbered events, how it ended.
 * Kept for a while after the end, so that a caller that was cut off can come back and read
 * everything from an event number on. Bounded in number and in bytes; the oldest ended go first.
 *
 * Owned by struct run_records. Subscribers are called from the loop, never from inside a call.
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
	RUN_RECORD_ENDED, /* outcome or error is there */
	RUN_RECORD_STATE_COUNT
};

enum run_event_kind {
	RUN_EVENT_START,
	RUN_EVENT_STDOUT,
	RUN_EVENT_STDERR,
	RUN_EVENT_END, /* the last one */
	RUN_EVENT_COUNT
};

/* Numbered from 1 without gaps. @data is borrowed. */
struct run_event {
	uint64_t number;
	enum run_event_kind kind;
	const char *data; /* bytes of output */
	size_t len;
};

struct run_record_info {
	const char *tenant;
	const char *id, *session_id, *language;
	const char *request_id; /* that asked for it; "" where it is not known */
	const char *code;       /* NULL once forgotten for size */
	size_t code_len;
	enum run_record_state state;
	uint64_t created_ms, started_ms, completed_ms; /* 0: not yet */
	uint64_t paused_ms; /* for so long it stood still since it started */
	uint64_t timeout_us;
	const struct outcome *outcome; /* ENDED: NULL if it could not be run, then @failure */
	const struct error *failure;
	bool session_reset; /* the runner was lost with it: the session's variables are gone */
	bool begun;         /* PENDING: whether it may have begun; see run_record_begin */
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
	uint64_t session_ms; /* when the session was made: its id may be used again */
	char *request;       /* taken: for the store, to do it after a restart; NULL: not to be */
	bool waits;          /* it does not begin before run_record_begin was called */
	bool exact; /* each piece of output is an event: however often it is told, their numbers are
	               the same */
};

void run_records_free(struct run_records *all);
/** run_records_new - keeps at most @max_count ended records of at most @max_bytes together. */
struct run_records *run_records_new(struct loop *loop, size_t max_count, size_t max_bytes)
	attr_owned(run_records_free);
/** run_records_set_metrics - @metrics is borrowed; every end of an execution is counted there. */
void run_records_set_metrics(struct run_records *all, struct metrics *metrics);
/** run_records_set_store - @store is borrowed; every execution is written there. */
void run_records_set_store(struct run_records *all, struct store *store);
/** run_records_set_audit - @audit is borrowed; every end of an execution is told there. */
void run_records_set_audit(struct run_records *all, struct audit *audit);
struct run_record *run_records_add(struct run_records *all, const struct run_record_new *what);
/** run_records_find - NULL when unknown, forgotten or another tenant's. */
struct run_record *run_records_find(struct run_records *all, const char *tenant, const char *id);
/** run_records_of - of one session, newest first; NULL past the end. O(offset). */
struct run_record *run_records_of(struct run_records *all, const char *tenant,
                                  const char *session_id, size_t offset);
size_t run_records_count_of(struct run_records *all, const char *tenant, const char *session_id);
/** run_records_expire - the store has let go of an ended one: so does memory. */
void run_records_expire(struct run_records *all, const char *tenant, const char *id);
/** run_records_delete - as run_records_forget; what is not written yet never will be. */
void run_records_delete(struct run_records *all, const char *tenant, const char *session_id);
/** run_records_forget - all of one session, in memory. Subscribers are told the end first. */
void run_records_forget(struct run_records *all, const char *tenant, const char *session_id);

void run_record_info(const struct run_record *e, struct run_record_info *ret_info);
/** run_record_printed - what it printed so far; borrowed until the next event. */
const struct buf *run_record_printed(const struct run_record *e, enum output_stream stream);

/** run_record_stored_fn - @err NULL: the record is on the disk. Else it never was accepted: it is
 * gone when this returns, and nothing was run. */
typedef void run_record_stored_fn(void *ctx, struct run_record *e, const struct error *err);
/**
 * run_record_when_stored - @fn is called once, from the loop; at once where there is no store. For
 * one that was asked for as durable (struct run_request). @fn NULL: not interested any more.
 */
void run_record_when_stored(struct run_record *e, run_record_stored_fn *fn, void *ctx);

/* Called by whoever runs it. */

/**
 * run_record_begin - for one that was made with @waits: that it may begin is to be on the disk
 * before it does, so that a daemon that comes after a crash never runs it twice. Return: 0: it may,
 * now; 1: not before @fn was told that it is written; -1: it cannot be written now.
 */
int run_record_begin(struct run_record *e, run_record_stored_fn *fn, void *ctx,
                     struct error *err) attr_must_check;
void run_record_started(struct run_record *e);
/** run_record_paused - it has stood still for @ms more. */
void run_record_paused(struct run_record *e, uint64_t ms);
void run_record_add_output(struct run_record *e, enum output_stream stream, const char *data,
                           size_t len);
/**
 * run_record_ended - takes what @outcome owns. What run_record_add_output was given is its output:
 * @outcome need not have it again.
 */
void run_record_ended(struct run_record *e, struct outcome *outcome, bool session_reset);
void run_record_failed(struct run_record *e, const struct error *err);
/**
 * run_record_when_settled - @fn is called once: when the end of @e is where it survives the daemon
 * (without a store: when it has ended), or when the record goes. It may be called from inside
 * run_record_ended and run_record_failed.
 */
void run_record_when_settled(struct run_record *e, void (*fn)(void *ctx), void *ctx);

/** run_record_set_control - what run_record_cancel and _stdin call (NULL: refused); cleared by the
 * end. */
void run_record_set_control(struct run_record *e, void (*cancel)(void *ctx),
                            int (*input)(void *ctx, const void *data, size_t len, bool end,
                                         struct error *err),
                            void *ctx);
/** run_record_cancel - ERR_CONFLICT when it has ended. */
int run_record_cancel(struct run_record *e, struct error *err) attr_must_check;
/** run_record_stdin - for one that was started with an open stdin. */
int run_record_stdin(struct run_record *e, const void *data, size_t len, bool end,
                     struct error *err) attr_must_check;

struct run_watch;
typedef void run_event_fn(void *ctx, struct run_record *e, const struct run_event *event);
/**
 * run_watch - @fn is called for every event after number @after, old ones first, then new
 * ones as they come, up to and including END. The record stays while it is watched. Whoever knows
 * the END already is told it again.
 */
struct run_watch *run_watch(struct run_record *e, uint64_t after, run_event_fn *fn, void *ctx);
/** run_unwatch - may be called in @fn. Not needed after END was delivered. */
void run_unwatch(struct run_watch *w);
