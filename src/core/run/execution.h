/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the record of an execution: what was asked, what happened as numbered events, how it ended.
 * Kept for a while after the end, so that a caller that was cut off can come back and read
 * everything from an event number on. Bounded in number and in bytes; the oldest ended go first.
 *
 * Owned by struct executions. Subscribers are called from the loop, never from inside a call.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/run/outcome.h"
#include "core/tenant/principal.h"
#include "driver/driver.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct execution;
struct executions;
struct loop;
struct store;
struct audit;
struct metrics;

enum execution_state {
	EXECUTION_PENDING, /* queued */
	EXECUTION_RUNNING,
	EXECUTION_ENDED, /* outcome or error is there */
	EXECUTION_STATE_COUNT
};

enum execution_event_kind {
	EXECUTION_EVENT_START,
	EXECUTION_EVENT_STDOUT,
	EXECUTION_EVENT_STDERR,
	EXECUTION_EVENT_END, /* the last one */
	EXECUTION_EVENT_COUNT
};

/* Numbered from 1 without gaps. @data is borrowed. */
struct execution_event {
	uint64_t number;
	enum execution_event_kind kind;
	const char *data; /* bytes of output */
	size_t len;
};

struct execution_info {
	const char *tenant;
	const char *id, *session_id, *language;
	const char *request_id; /* that asked for it; "" where it is not known */
	const char *code;       /* NULL once forgotten for size */
	size_t code_len;
	enum execution_state state;
	uint64_t created_ms, started_ms, completed_ms; /* 0: not yet */
	uint64_t paused_ms; /* for so long it stood still since it started */
	uint64_t timeout_us;
	const struct outcome *outcome; /* ENDED: NULL if it could not be run, then @failure */
	const struct error *failure;
	bool session_reset; /* the runner was lost with it: the session's variables are gone */
	bool begun;         /* PENDING: whether it may have begun; see execution_begin */
};

struct execution_new {
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
	bool waits;          /* it does not begin before execution_begin was called */
	bool exact; /* each piece of output is an event: however often it is told, their numbers are
	               the same */
};

void executions_free(struct executions *all);
/** executions_new - keeps at most @max_count ended records of at most @max_bytes together. */
struct executions *executions_new(struct loop *loop, size_t max_count, size_t max_bytes)
	attr_owned(executions_free);
/** executions_set_metrics - @metrics is borrowed; every end of an execution is counted there. */
void executions_set_metrics(struct executions *all, struct metrics *metrics);
/** executions_set_store - @store is borrowed; every execution is written there. */
void executions_set_store(struct executions *all, struct store *store);
/** executions_set_audit - @audit is borrowed; every end of an execution is told there. */
void executions_set_audit(struct executions *all, struct audit *audit);
struct execution *executions_add(struct executions *all, const struct execution_new *what);
/** executions_find - NULL when unknown, forgotten or another tenant's. */
struct execution *executions_find(struct executions *all, const char *tenant, const char *id);
/** executions_of - of one session, newest first; NULL past the end. O(offset). */
struct execution *executions_of(struct executions *all, const char *tenant, const char *session_id,
                                size_t offset);
size_t executions_count_of(struct executions *all, const char *tenant, const char *session_id);
/** executions_expire - the store has let go of an ended one: so does memory. */
void executions_expire(struct executions *all, const char *tenant, const char *id);
/** executions_delete - as executions_forget; what is not written yet never will be. */
void executions_delete(struct executions *all, const char *tenant, const char *session_id);
/** executions_forget - all of one session, in memory. Subscribers are told the end first. */
void executions_forget(struct executions *all, const char *tenant, const char *session_id);

void execution_info(const struct execution *e, struct execution_info *ret_info);
/** execution_told - what it printed so far; borrowed until the next event. */
const struct buf *execution_told(const struct execution *e, enum output_stream stream);

/** execution_stored_fn - @err NULL: the record is on the disk. Else it never was accepted: it is
 * gone when this returns, and nothing was run. */
typedef void execution_stored_fn(void *ctx, struct execution *e, const struct error *err);
/**
 * execution_when_stored - @fn is called once, from the loop; at once where there is no store. For
 * one that was asked for as durable (struct run_request). @fn NULL: not interested any more.
 */
void execution_when_stored(struct execution *e, execution_stored_fn *fn, void *ctx);

/* Called by whoever runs it. */

/**
 * execution_begin - for one that was made with @waits: that it may begin is to be on the disk
 * before it does, so that a daemon that comes after a crash never runs it twice. Return: 0: it may,
 * now; 1: not before @fn was told that it is written; -1: it cannot be written now.
 */
int execution_begin(struct execution *e, execution_stored_fn *fn, void *ctx,
                    struct error *err) attr_must_check;
void execution_started(struct execution *e);
/** execution_paused - it has stood still for @ms more. */
void execution_paused(struct execution *e, uint64_t ms);
void execution_output(struct execution *e, enum output_stream stream, const char *data, size_t len);
/**
 * execution_ended - takes what @outcome owns. What execution_output was given is its output:
 * @outcome need not have it again.
 */
void execution_ended(struct execution *e, struct outcome *outcome, bool session_reset);
void execution_failed(struct execution *e, const struct error *err);
/**
 * execution_when_settled - @fn is called once: when the end of @e is where it survives the daemon
 * (without a store: when it has ended), or when the record goes. It may be called from inside
 * execution_ended and execution_failed.
 */
void execution_when_settled(struct execution *e, void (*fn)(void *ctx), void *ctx);

/** execution_set_control - what execution_cancel and _stdin call (NULL: refused); cleared by the
 * end. */
void execution_set_control(struct execution *e, void (*cancel)(void *ctx),
                           int (*input)(void *ctx, const void *data, size_t len, bool end,
                                        struct error *err),
                           void *ctx);
/** execution_cancel - ERR_CONFLICT when it has ended. */
int execution_cancel(struct execution *e, struct error *err) attr_must_check;
/** execution_stdin - for one that was started with an open stdin. */
int execution_stdin(struct execution *e, const void *data, size_t len, bool end,
                    struct error *err) attr_must_check;

struct execution_watch;
typedef void execution_fn(void *ctx, struct execution *e, const struct execution_event *event);
/**
 * execution_watch - @fn is called for every event after number @after, old ones first, then new
 * ones as they come, up to and including END. The record stays while it is watched. Whoever knows
 * the END already is told it again.
 */
struct execution_watch *execution_watch(struct execution *e, uint64_t after, execution_fn *fn,
                                        void *ctx);
/** execution_unwatch - may be called in @fn. Not needed after END was delivered. */
void execution_unwatch(struct execution_watch *w);
