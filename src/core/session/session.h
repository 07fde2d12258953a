/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a session: a box that outlives one run, with a runner that keeps variables, and a queue of
 * runs. One state machine with one setter and a transition table:
 *
 *   CREATING    the box is being built; runs may be queued
 *   READY       the box is idle
 *   RUNNING     a run is current; others wait in order
 *   PAUSED      frozen; runs may be queued; the current run's deadline is stopped
 *   TERMINATED  ended by its owner, idle time or lifetime; records stay readable
 *   FAILED      the box could not be made, or was lost; unfinished runs are `crashed`
 *
 * Sessions wait for each other only for admission. No request path scans all sessions. Ids are per
 * tenant.
 */

#include "base/error.h"
#include "core/request/session_request.h"
#include "core/run/run.h"
#include "core/run/run_record.h"
#include "core/tenant/principal.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy_cuts;
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

/* The session's strings: valid until the next event. */
struct session_info {
	const char *tenant;
	const char *id, *language, *agent_id; /* agent_id: NULL: none */
	const char *template_id;
	enum session_state state;
	enum session_mode mode;
	const char *box_id;       /* NULL: none */
	const char *container_id; /* box_id, also before the box exists and after it is gone */
	const char *engine;       /* its name */
	enum box_grade grade;
	const char *policy; /* it was made under; NULL: settings alone */
	enum box_network network;
	char *const *network_allow; /* as requested; NULL: what its policies allow */
	char *const *mcp;           /* tools that it may call, as requested; NULL: none */
	char *const *env;
	char *const *secrets; /* names */
	struct box_limits limits;
	uint64_t idle_timeout_us, lifetime_us;
	uint64_t created_ms, updated_ms, last_activity_ms, ended_ms; /* wall clock; 0: not yet */
	const char *reason;              /* why it ended, for people; NULL */
	const char *request_id, *key_id; /* of its creation; key_id: NULL: none */
	size_t queued, executions;
	size_t background;              /* runs beside the queue */
	const char *dependencies;       /* of session_set_dependencies; NULL: none */
	const struct policy_cuts *cuts; /* of the last session_create; NULL: none, or restored */
	const char *notes;              /* of session_set_notes; NULL: none */
};

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
	struct run_service *runs; /* one-shot runs, and admission */
	struct run_records *executions;
	struct store *store;         /* NULL: nothing is stored */
	struct metrics *metrics;     /* NULL: metrics off */
	struct templates *templates; /* NULL: only the host's root, no defaults */
	struct audit *audit;         /* NULL: audit off */
};

enum session_change {
	SESSION_CHANGE_LIST, /* created, became usable, or ended */
	SESSION_CHANGE_FILE,
	SESSION_CHANGE_LOG,
	SESSION_CHANGE_COUNT
};

struct session_watcher {
	void *ctx;
	/* From inside the change: call nothing of core but session_info. @path: of FILE, below the
	 * workspace. */
	void (*on_change)(void *ctx, const struct session *session, enum session_change change,
	                  const char *path);
};

/** session_service_free - before what its configuration points to; no callback follows. */
void session_service_free(struct session_service *s);
struct session_service *session_service_new(const struct session_service_config *config)
	attr_owned(session_service_free);

/** session_service_watch - one watcher at most; NULL: none. */
void session_service_watch(struct session_service *s, const struct session_watcher *watcher);
/**
 * session_create - ERR_CONFLICT if the tenant uses the id, ERR_BUSY over the configured number of
 * sessions. *ret_reused: an idle session of the same agent was updated instead.
 */
int session_create(struct session_service *s, const struct session_request *asked,
                   struct session **ret_session, bool *ret_reused,
                   struct error *err) attr_must_check;
/** session_explain - what session_create would decide, and by which rules; without checking room
 * and id. */
void session_explain(const struct session_service *s, const struct session_request *asked,
                     struct policy_explanation *ret_explanation);
/** session_find - NULL if unknown to @tenant. */
struct session *session_find(struct session_service *s, const char *tenant, const char *id);
/** session_at - @tenant's, newest first; NULL past the end. O(offset). */
struct session *session_at(struct session_service *s, const char *tenant, size_t offset);
/** session_older - next in a listing; NULL: @session is its tenant's oldest. */
struct session *session_older(const struct session *session);
/** session_template - borrowed; NULL: none. */
const struct template *session_template(const struct session *session);
/** session_policy - the policy that its request named, borrowed; NULL: only the tenant's. */
const char *session_policy(const struct session *session);
/** session_engine - the name of the engine of its boxes, borrowed. */
const char *session_engine(const struct session *session);
/** session_find_box - the persistent session whose box has or had this id. */
struct session *session_find_box(struct session_service *s, const char *tenant,
                                 const char *container_id);
struct session_service_stats {
	size_t live; /* not ended */
	size_t boxes;
	size_t ports;             /* connections to ports of boxes */
	size_t beside, terminals; /* runs beside the queues; of those, on a terminal */
};
void session_service_stats(const struct session_service *s,
                           struct session_service_stats *ret_stats);
size_t session_count(const struct session_service *s, const char *tenant);
void session_info(const struct session *session, struct session_info *ret_info);
/** session_history - last states, oldest first, the current one last. Return: how many. */
size_t session_history(const struct session *session,
                       struct session_step ret_steps[SESSION_HISTORY_MAX]);
const char *session_state_name(enum session_state state);

/**
 * session_execute - queue code. Limits are the session's; timeout, env, files, stdin and args are
 * @request's. @request->durable: it runs only once its record is on disk, see
 * run_record_when_stored. Return: 0 and the record, owned by the table; ERR_CONFLICT if the session
 * is over, ERR_BUSY if its queue is full.
 */
int session_execute(struct session *session, const struct run_request *request,
                    struct run_record **ret_execution, struct error *err) attr_must_check;
/**
 * session_pause / _resume - ERR_CONFLICT in other states, ERR_UNAVAILABLE without a freezer. A
 * paused run gives up its place in the scheduler; the session stays PAUSED until it has one again.
 * Cancelling the run resumes the session at once.
 */
int session_pause(struct session *session, struct error *err) attr_must_check;
int session_resume(struct session *session, struct error *err) attr_must_check;
/** session_interrupt - SIGINT the current run. ERR_CONFLICT if nothing runs. */
int session_interrupt(struct session *session, struct error *err) attr_must_check;
/** session_set_dependencies - JSON for session_info; copied. */
void session_set_dependencies(struct session *session, const char *text);
/** session_set_notes - the owner's JSON, opaque to core (name, labels); copied; NULL: none. */
void session_set_notes(struct session *session, const char *text);
/**
 * session_set_env - NAME=value for programs started from now on; copied. Runners keep theirs until
 * session_restart. ERR_CONFLICT if it is over.
 */
int session_set_env(struct session *session, char *const *env, struct error *err) attr_must_check;
/**
 * session_restart - cancel all runs, kill runners and all they started; files stay. Resumes a
 * paused session. ERR_CONFLICT if ephemeral, being made, or over.
 */
int session_restart(struct session *session, struct error *err) attr_must_check;
int session_keepalive(struct session *session, struct error *err) attr_must_check;
/** session_terminate - idempotent; cancels its runs. */
void session_terminate(struct session *session, const char *reason);
/** session_fail - its box could not be made, was lost, or lacks what it must have: end all. */
void session_fail(struct session *session, const struct error *err);
/** session_delete - terminate and forget, records included, also in the store. @session is invalid
 * afterwards. Does not wait for the store; see session_delete_kept. */
void session_delete(struct session *session);

/* Changes persisted before they are answered. */

/** session_kept_fn - @err: the write failed. */
typedef void session_kept_fn(void *ctx, const struct error *err);
/**
 * session_when_kept - call @fn once, from the loop, when @session's present state is on disk and a
 * pause or resumption is done in the kernel. Return: 0; 1: it is, or there is no store: @fn is not
 * called; -1: ERR_BUSY.
 */
int session_when_kept(struct session *session, session_kept_fn *fn, void *ctx,
                      struct error *err) attr_must_check;
/** session_delete_kept - session_delete once the deletion is on disk; if the write fails, the
 * session stays. Return: as session_when_kept. */
int session_delete_kept(struct session *session, session_kept_fn *fn, void *ctx,
                        struct error *err) attr_must_check;
/** session_expire - retention removed an ended one from the store: forget it. */
void session_expire(struct session_service *s, const char *tenant, const char *id,
                    uint64_t created_ms);
void session_counters(struct session *session, struct box_counters *ret_counters);
/* Sessions and runs that the previous daemon left unfinished. */
struct session_saved;
void session_saved_free(struct session_saved *past);
/** session_saved_read - from @store, before store_start. */
int session_saved_read(struct store *store, struct session_saved **ret_past,
                       struct error *err) attr_must_check;
/**
 * session_service_restore - resume them. Once, before the loop runs; boxes without a session end.
 */
void session_service_restore(struct session_service *s, const struct session_saved *past);
/** session_service_secrets_changed - of @tenant: its live sessions get what they may use now. */
void session_service_secrets_changed(struct session_service *s, const char *tenant);
/** session_service_policies_changed - networks of live sessions get the rules of the new policies;
 * a network that these do not allow is taken. */
void session_service_policies_changed(struct session_service *s);
/** session_service_on_policies - the same as a callback; @ctx: the service. */
void session_service_on_policies(void *ctx);
/** session_service_prepare - make boxes for default sessions ahead. Repeat after
 * run_service_prepare. */
void session_service_prepare(struct session_service *s);
/**
 * session_service_leave - as _drain, but sessions whose boxes outlive the daemon stay for the next
 * one; nothing more is accepted or started.
 */
void session_service_leave(struct session_service *s, void (*on_drained)(void *ctx), void *ctx);
/** session_service_drain - end all sessions; call @on_drained when no box is left. */
void session_service_drain(struct session_service *s, void (*on_drained)(void *ctx), void *ctx);
