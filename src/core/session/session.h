/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a session: a box that lives longer than one run, with a runner that keeps variables, and a
 * queue of runs. One state machine with one setter and a transition table:
 *
 *   CREATING    its box is being built; executions may be queued
 *   READY       the box is there and nothing runs
 *   RUNNING     an execution runs; others wait in order
 *   PAUSED      frozen; executions queue, nothing runs, the deadline of the running one stands
 * still TERMINATED  ended by its owner, by idle time or lifetime; the box is gone or going;
 * executions stay readable FAILED      the box could not be made, or was lost; unfinished
 * executions are `crashed`
 *
 * Sessions never wait for each other beyond admission. Nothing on a request path scans all
 * sessions. Ids belong to a tenant: two tenants may use the same.
 */

#include "base/error.h"
#include "core/request/session_request.h"
#include "core/run/run.h"
#include "core/run/run_record.h"
#include "core/tenant/principal.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy_explanation;
struct session;
struct session_service;

enum session_state {
	SESSION_CREATING,
	SESSION_READY,
	SESSION_RUNNING,
	SESSION_PAUSED,
	SESSION_TERMINATED,
	SESSION_FAILED,
	SESSION_STATE_COUNT
};

#define SESSION_ID_MAX 64

/* Strings are the session's, valid until the next event. */
struct session_info {
	const char *tenant;
	const char *id, *language, *agent_id; /* agent_id: NULL if none */
	const char *template_id;
	enum session_state state;
	enum session_mode mode;
	const char *box_id;       /* NULL: none */
	const char *container_id; /* as box_id, also before it is there and after it is gone */
	const char *driver;
	const char *policy; /* that it was made under; NULL: the settings alone */
	enum box_network network;
	char *const *env;
	struct box_limits limits;
	uint64_t idle_timeout_us, lifetime_us;
	uint64_t created_ms, updated_ms, last_activity_ms, ended_ms; /* wall clock; 0: not yet */
	const char *reason;              /* why it ended or failed, for people; NULL */
	const char *request_id, *key_id; /* that made it; key_id: NULL if none */
	size_t queued, executions;
	const char *dependencies; /* of session_set_dependencies; NULL: none */
	const char *notes;        /* of session_set_notes; NULL: none */
};

/* A state and when it was entered, wall clock. */
struct session_step {
	enum session_state state;
	uint64_t at_ms;
};

#define SESSION_HISTORY_MAX 16

struct session_service_config {
	const struct config *config;
	struct driver *driver;
	struct runners *runners;
	struct loop *loop;
	struct run_service *runs;       /* for ephemeral executions, and admission */
	struct run_records *executions; /* where records are kept */
	struct store *store;            /* NULL: nothing is stored */
	struct metrics *metrics;        /* NULL: metrics off */
	struct templates *templates;    /* NULL: only the host's root, without defaults */
	struct audit *audit;            /* NULL: audit off */
};

/* What may change in a session, for a watcher. */
enum session_change {
	SESSION_CHANGE_LIST, /* it was made, could be used, or ended */
	SESSION_CHANGE_FILE, /* the file at a path */
	SESSION_CHANGE_LOG,  /* a program has ended */
	SESSION_CHANGE_COUNT
};

struct session_watcher {
	void *ctx;
	/* From inside whatever changes it: nothing may be asked of core here but session_info.
	 * @path: of FILE, below the workspace. */
	void (*on_change)(void *ctx, const struct session *session, enum session_change change,
	                  const char *path);
};

/** session_service_free - before all that its configuration names; no callback follows. */
void session_service_free(struct session_service *s);
struct session_service *session_service_new(const struct session_service_config *config)
	attr_owned(session_service_free);

/** session_service_watch - at most one watcher; NULL: none any more. */
void session_service_watch(struct session_service *s, const struct session_watcher *watcher);
/**
 * session_create - ERR_CONFLICT for an id that its tenant has in use, ERR_BUSY over the configured
 * number of sessions. *ret_reused: an idle session of the same agent was given again (updated, not
 * made).
 */
int session_create(struct session_service *s, const struct session_request *asked,
                   struct session **ret_session, bool *ret_reused,
                   struct error *err) attr_must_check;
/** session_explain - what @asked would get from session_create, and by which rules. Nothing is
 * made; that there would be no room, or that the id is in use, is not looked at. */
void session_explain(const struct session_service *s, const struct session_request *asked,
                     struct policy_explanation *ret_explanation);
/** session_find - NULL if @tenant has none with this id, whether or not another tenant has. */
struct session *session_find(struct session_service *s, const char *tenant, const char *id);
/** session_at - of @tenant, newest first, for listings; NULL past the end. O(offset). */
struct session *session_at(struct session_service *s, const char *tenant, size_t offset);
/** session_older - the next of a listing; NULL: @session is the oldest of its tenant. */
struct session *session_older(const struct session *session);
/** session_find_box - the persistent session whose box has, or had, this id. */
struct session *session_find_box(struct session_service *s, const char *tenant,
                                 const char *container_id);
struct session_service_stats {
	size_t live; /* have not ended */
	size_t boxes;
};
void session_service_stats(const struct session_service *s,
                           struct session_service_stats *ret_stats);
size_t session_count(const struct session_service *s, const char *tenant);
void session_info(const struct session *session, struct session_info *ret_info);
/** session_history - the last states, oldest first; the current one is the last. Return: how many.
 */
size_t session_history(const struct session *session,
                       struct session_step ret_steps[SESSION_HISTORY_MAX]);
const char *session_state_name(enum session_state state);

/**
 * session_execute - queue code. @request's limits are the session's; its timeout, env, files,
 * stdin, args count.
 * Return: the record (owned by the table), with the events. @request->durable: it does
 * not run before the record is on the disk, see run_record_when_stored.
 * ERR_CONFLICT in a state that takes none, ERR_BUSY when the session's queue (64) is full.
 */
int session_execute(struct session *session, const struct run_request *request,
                    struct run_record **ret_execution, struct error *err) attr_must_check;
/**
 * session_pause / _resume - freezer; ERR_CONFLICT in other states, ERR_UNAVAILABLE without one. A
 * paused execution gives up its place among those that run: resumed, it stays PAUSED until there is
 * one again. Cancelling it resumes the session at once.
 */
int session_pause(struct session *session, struct error *err) attr_must_check;
int session_resume(struct session *session, struct error *err) attr_must_check;
/** session_interrupt - SIGINT to what runs; the session goes on. ERR_CONFLICT when nothing does. */
int session_interrupt(struct session *session, struct error *err) attr_must_check;
/** session_set_dependencies - JSON for session_info; copied. */
void session_set_dependencies(struct session *session, const char *text);
/** session_set_notes - JSON of its owner that core does not read (a name, labels); copied. NULL:
 * none. */
void session_set_notes(struct session *session, const char *text);
/**
 * session_set_env - NAME=value for programs that start from now on; copied. Runners that are there
 * keep what they have until session_restart. ERR_CONFLICT when it is over.
 */
int session_set_env(struct session *session, char *const *env, struct error *err) attr_must_check;
/**
 * session_restart - what runs or waits is cancelled, runners are killed with all that they started;
 * files stay. A paused one goes on. ERR_CONFLICT when it is ephemeral, being made, or over.
 */
int session_restart(struct session *session, struct error *err) attr_must_check;
int session_keepalive(struct session *session, struct error *err) attr_must_check;
/** session_terminate - idempotent; running and queued executions are cancelled. */
void session_terminate(struct session *session, const char *reason);
/** session_delete - terminate and forget, executions included, in the store too. @session is
 * invalid afterwards. Nobody waits for the store: session_delete_kept. */
void session_delete(struct session *session);

/* What is answered with success is on the disk: */

/** session_kept_fn - @err: it could not be written. */
typedef void session_kept_fn(void *ctx, const struct error *err);
/**
 * session_when_kept - @fn is called once, from the loop, when what @session is now is on the disk.
 * Return: 0; 1: it is already, or there is no store: @fn is not called; -1: ERR_BUSY.
 */
int session_when_kept(struct session *session, session_kept_fn *fn, void *ctx,
                      struct error *err) attr_must_check;
/** session_delete_kept - as session_delete, once that is on the disk: if it cannot be written, the
 * session stays as it is. Return: as session_when_kept. */
int session_delete_kept(struct session *session, session_kept_fn *fn, void *ctx,
                        struct error *err) attr_must_check;
/** session_expire - the store has let go of one that has ended: so does memory. */
void session_expire(struct session_service *s, const char *tenant, const char *id,
                    uint64_t created_ms);
/** session_counters - usage of the box, now. */
void session_counters(struct session *session, struct box_counters *ret_counters);
/* Sessions and runs that had not ended when the previous daemon did. */
struct session_saved;
void session_saved_free(struct session_saved *past);
/** session_saved_read - from @store, before store_start. */
int session_saved_read(struct store *store, struct session_saved **ret_past,
                       struct error *err) attr_must_check;
/**
 * session_service_restore - continue with it. Once, before the loop runs; boxes without a session
 * end.
 */
void session_service_restore(struct session_service *s, const struct session_saved *past);
/** session_service_prepare - from now on boxes for sessions of the usual kind are made ahead. Again
 * after run_service_prepare. */
void session_service_prepare(struct session_service *s);
/**
 * session_service_leave - as _drain, but sessions whose boxes outlive the daemon are left as they
 * are, for the next one; nothing more is accepted or started.
 */
void session_service_leave(struct session_service *s, void (*on_drained)(void *ctx), void *ctx);
/** session_service_drain - end all sessions; @on_drained when no box is left. */
void session_service_drain(struct session_service *s, void (*on_drained)(void *ctx), void *ctx);
