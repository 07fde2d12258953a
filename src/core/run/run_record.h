/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the record of a run: the request, numbered events, the outcome. Kept for a while after the
 * end, so that a disconnected client can resume from an event number. Bounded in number and bytes;
 * the oldest ended ones go first. Owned by struct run_records. A one-shot run owns its record,
 * which has one watcher.
 *
 * The record of a terminal keeps the latest output only: its first events are gone, and a watcher
 * that is behind them continues after the gap.
 *
 * Watchers of kept records are called from the loop, never from inside a call.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/run/outcome.h"
#include "core/tenant/principal.h"
#include "driver/driver.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy_cuts;
struct run_record;
struct run_records;
struct loop;
struct store;
struct audit;
struct metrics;

enum run_record_state {
	RUN_RECORD_PENDING, /* queued */
	RUN_RECORD_RUNNING,
	RUN_RECORD_ENDED,
	RUN_RECORD_STATE_COUNT
};

enum run_event_kind {
	RUN_EVENT_START,
	RUN_EVENT_STDOUT,
	RUN_EVENT_STDERR,
	RUN_EVENT_END,
	RUN_EVENT_COUNT
};

/* Numbered from 1 without gaps; 0 in a one-shot run. @data is borrowed. At END, run_record_info has
 * the outcome or the failure. */
struct run_event {
	uint64_t number;
	enum run_event_kind kind;
	const char *data;
	size_t len;
};

struct run_record_info {
	const char *tenant;
	const char *id, *language;
	const char *session_id; /* NULL: one-shot */
	const char *request_id; /* "": unknown */
	const char *code;       /* NULL: dropped for its size */
	size_t code_len;
	enum run_record_state state;
	uint64_t created_ms, started_ms, completed_ms; /* 0: not yet */
	uint64_t paused_ms;
	uint64_t timeout_us;
	const struct outcome *outcome; /* ENDED: NULL: it could not run, see @failure */
	const struct error *failure;
	const struct policy_cuts *cuts; /* NULL: none, or restored */
	bool session_reset;             /* a runner and the session's variables were lost */
	bool begun;                     /* PENDING: may have begun; see run_record_begin */
	bool background;                /* beside the session's queue */
	bool terminal;
	bool files_stay; /* its session has the files that it made */
	bool spec;  /* submitted as in the control plane's first description, which calls success
	             * "completed" in a status, and not in a result */
	bool later; /* or as in its later version, which calls it that in both */
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
	uint64_t receipt;    /* enum receipt_form */
	uint64_t session_ms; /* the session's created_ms: ids are reused */
	char *request;       /* taken; stored, to run it after a restart; NULL: not stored */
	bool waits;          /* begins with run_record_begin */
	bool exact;          /* one event per piece of output: a box may repeat them */
};

void run_records_free(struct run_records *all);
/** run_records_new - keep at most @max_count ended records, @max_bytes in total. */
struct run_records *run_records_new(struct loop *loop, size_t max_count, size_t max_bytes)
	attr_owned(run_records_free);
/** run_records_set_metrics - borrowed. */
void run_records_set_metrics(struct run_records *all, struct metrics *metrics);
/** run_records_set_store - borrowed. */
void run_records_set_store(struct run_records *all, struct store *store);
/** run_records_set_audit - borrowed. */
void run_records_set_audit(struct run_records *all, struct audit *audit);
/** run_records_set_files - @fn: whether a session has a box with files; NULL: none has. */
void run_records_set_files(struct run_records *all,
                           bool (*fn)(void *ctx, const char *tenant, const char *session_id),
                           void *ctx);
struct run_record *run_records_add(struct run_records *all, const struct run_record_new *what);
/** run_records_find - NULL if unknown, forgotten or another tenant's. */
struct run_record *run_records_find(struct run_records *all, const char *tenant, const char *id);
/** run_records_of - a session's, newest first; NULL past the end. O(offset). */
struct run_record *run_records_of(struct run_records *all, const char *tenant,
                                  const char *session_id, size_t offset);
size_t run_records_count_of(struct run_records *all, const char *tenant, const char *session_id);
/** run_records_expire - retention removed an ended one from the store: forget it. */
void run_records_expire(struct run_records *all, const char *tenant, const char *id);
/** run_records_delete - run_records_forget without writing pending changes. */
void run_records_delete(struct run_records *all, const char *tenant, const char *session_id);
/** run_records_forget - a session's, in memory. Watchers get END first. */
void run_records_forget(struct run_records *all, const char *tenant, const char *session_id);

void run_record_info(const struct run_record *e, struct run_record_info *ret_info);
/** run_record_events - number of the last event so far; 0: none. */
uint64_t run_record_events(const struct run_record *e);
/** run_record_printed - output so far; borrowed until the next event. */
const struct buf *run_record_printed(const struct run_record *e, enum output_stream stream);

/** run_record_stored_fn - @err NULL: the record is on disk. Else the run was rejected: nothing ran,
 * and the record is gone on return. */
typedef void run_record_stored_fn(void *ctx, struct run_record *e, const struct error *err);
/**
 * run_record_when_stored - call @fn once, from the loop; at once without a store. For a durable
 * request (struct run_request). @fn NULL: cancel that.
 */
void run_record_when_stored(struct run_record *e, run_record_stored_fn *fn, void *ctx);

/**
 * run_record_when_settled - call @fn once, when the end of @e is on disk, cannot be written, or @e
 * is freed. Return: false: it is not called, since there is nothing to wait for.
 */
bool run_record_when_settled(struct run_record *e, void (*fn)(void *ctx),
                             void *ctx) attr_must_check;

/* For the run. */

/**
 * run_record_begin - if created with @waits: persist that it begins before it does, so that it
 * never runs twice, even after a crash. Return: 0: begin now; 1: begin when @fn is called without
 * an error; -1: write failed.
 */
int run_record_begin(struct run_record *e, run_record_stored_fn *fn, void *ctx,
                     struct error *err) attr_must_check;
/** run_record_set_spec - see run_record_info. */
void run_record_set_spec(struct run_record *e);
void run_record_set_later(struct run_record *e);
void run_record_started(struct run_record *e);
void run_record_paused(struct run_record *e, uint64_t ms);
void run_record_add_output(struct run_record *e, enum output_stream stream, const char *data,
                           size_t len);
/** run_record_ended - takes what @outcome owns. Its output is that of run_record_add_output. */
void run_record_ended(struct run_record *e, struct outcome *outcome, bool session_reset);
void run_record_failed(struct run_record *e, const struct error *err);

/** run_record_set_control - handlers of run_record_cancel and _stdin; NULL: rejected. */
void run_record_set_control(struct run_record *e, void (*cancel)(void *ctx),
                            int (*input)(void *ctx, const void *data, size_t len, bool end,
                                         struct error *err),
                            void *ctx);
/** run_record_cancel - ERR_CONFLICT if ended. */
int run_record_cancel(struct run_record *e, struct error *err) attr_must_check;
/** run_record_stdin - if the request left stdin open. */
int run_record_stdin(struct run_record *e, const void *data, size_t len, bool end,
                     struct error *err) attr_must_check;

/** run_record_resize - its terminal, if it has one. */
int run_record_resize(struct run_record *e, uint16_t rows, uint16_t cols,
                      struct error *err) attr_must_check;
/** run_record_signal - the program of a session's run. ERR_CONFLICT if it is not running. */
int run_record_signal(struct run_record *e, int signo, struct error *err) attr_must_check;
/** run_record_unread - bytes of stdin that wait for the program. */
size_t run_record_unread(const struct run_record *e);
/** run_record_stop_output - a watcher of a terminal is behind: its program waits, until every such
 * call was followed by run_record_continue_output. */
void run_record_stop_output(struct run_record *e);
void run_record_continue_output(struct run_record *e);
bool run_record_is_stopped(const struct run_record *e);

struct run_watch;
typedef void run_event_fn(void *ctx, struct run_record *e, const struct run_event *event);
/**
 * run_watch - call @fn for every event after number @after, past ones first, up to END; at least
 * for END. A watched record stays; the watch is freed after END.
 */
struct run_watch *run_watch(struct run_record *e, uint64_t after, run_event_fn *fn, void *ctx);
/** run_unwatch - no callback follows; may be called in @fn, except at END. Ends a one-shot run; a
 * session's run continues, and its caller can watch again. */
void run_unwatch(struct run_watch *w);
void run_watch_cancel(struct run_watch *w);
