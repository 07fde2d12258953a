/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the inside of sessions, for the files of this folder:
 *
 *   session_service.c   all sessions: create, find, forget, drain
 *   session_owner.c     those of one tenant: ids, list, what is remembered of ended ones
 *   session.c           one session: states and clocks
 *   session_pause.c     pause and resume
 *   session_change.c    notes, environment, restart of the runners
 *   session_queue.c     from a request to a run in the queue, one run at a time
 *   session_place.c     the session's box as the place of its runs
 *   session_box.c       events of the box, to the current run or its runner
 *   session_pool.c      a box that waited in a pool
 *   session_reattach.c  a box that an earlier daemon made, and what runs in it
 *   session_restore.c   at the start: sessions and runs of an earlier daemon
 *   session_label.c     what the box remembers of a run for the next daemon
 */

#include "base/list.h"
#include "base/log.h"
#include "core/run/run_internal.h"
#include "core/session/session.h"
#include "core/store/store.h"
#include "core/template/template.h"

struct map;
struct session_write;
struct timer;

/* Code, input and files of all queued runs. */
#define SESSION_QUEUED_BYTES_MAX (256u * 1024 * 1024)
/* Of one tenant: it leaves room for the others. */
#define SESSION_QUEUED_BYTES_OF_TENANT (SESSION_QUEUED_BYTES_MAX / 2)

struct session_service {
	struct session_service_config config; /* what it points to is borrowed */
	const struct policy_rules *rules;     /* of the exec service */
	struct scheduler *scheduler;          /* of the exec service */
	struct map *owners;                   /* struct session_owner, by tenant */
	struct list all;                      /* struct session.node, the oldest first */
	size_t count;
	struct list ended; /* struct session.ended_node, the first to end first */
	size_t ended_count;
	struct list deleted; /* struct session.node: in no table, their box is going down */
	size_t boxes;
	size_t runs;         /* queued and current */
	size_t queued_bytes; /* of those */
	bool draining;
	bool leaving;                  /* draining, but sessions that can stay do */
	size_t left_boxes, left_runs;  /* of those */
	void (*on_drained)(void *ctx); /* NULL: no drain, or already called */
	void *drained_ctx;
	struct timer *drain_timer; /* nothing is left: calls on_drained */
	struct session_watcher watcher;
};

/* All sessions of one tenant; there as long as it has one. */
struct session_owner {
	struct map *by_box; /* persistent ones, by the id of their box */
	struct session_service *service;
	char tenant[TENANT_NAME_MAX + 1];
	struct map *by_id;
	struct map *by_agent; /* the newest persistent session of each agent */
	struct list sessions; /* struct session.owner_node, the oldest first */
	struct list ended;    /* struct session.owner_ended_node, the first to end first */
	size_t count, ended_count;
};

struct session {
	struct list node;                /* session_service.all or .deleted */
	struct list ended_node;          /* session_service.ended */
	struct list owner_node;          /* session_owner.sessions */
	struct list owner_ended_node;    /* session_owner.ended */
	struct session_service *service; /* NULL: freed before the box was gone */
	struct session_owner *owner;     /* NULL: deleted */
	char tenant[TENANT_NAME_MAX + 1];
	struct tenant *account; /* of it, held: what it may have; NULL: as much as it likes */
	bool counted;           /* as a session that lives */
	uint64_t held_bytes;    /* memory of its box, taken from the account */
	char id[SESSION_ID_MAX + 1];
	char *language, *agent_id; /* owned */
	char *dependencies;        /* owned; NULL: none */
	char *notes;               /* owned; NULL: none */
	struct template *template; /* a reference; NULL: none */
	char *key_id;              /* owned; that made it; NULL: no key was needed */
	char **env;                /* owned, NULL-terminated; never NULL */
	enum session_mode mode;
	enum session_state state;                       /* written by session_set_state alone */
	struct session_step steps[SESSION_HISTORY_MAX]; /* a ring */
	size_t steps_count;                             /* ever */
	struct box_spec spec;
	struct policy_stack stack; /* references: what it was made under, whatever came since */
	uint64_t idle_us, lifetime_us;
	uint64_t created_us, active_us;
	uint64_t making_us; /* CREATING: since when, by this daemon */
	uint64_t created_ms, updated_ms, active_ms, ended_ms;
	char *reason; /* owned */
	bool deleted;
	struct image *image; /* a reference: what its box stands on; NULL: no import */
	char *past_root;     /* owned; of its box, of one that was read from the store */
	uint64_t past_image_bytes;
	char *past_spec; /* owned; JSON, of a template of its tenant's as it was; NULL: not known */
	uint64_t past_spec_ms;
	char *past_template, *past_policy; /* owned; names, of one that was read from the store */
	struct store_item dirty;           /* store: what it is, is not what is written */
	struct session_write *writing;     /* the latest write that is under way; the store's */

	struct box *box;   /* NULL before it was asked for and after it is gone */
	bool unproven;     /* @box is of a pool, and nothing was done in it */
	uint64_t pool_key; /* of that */
	bool box_leaving; /* @box is going down, and the session goes on: ephemeral, it was spent by
	                   * an execution; persistent, another is made (session_remake_box) */
	struct list files; /* struct file_op, owned */
	size_t files_count;
	struct artifacts seen; /* files of its box as the last execution left them */
	struct list runners;   /* struct session_runner, owned */
	uint32_t last_id;      /* of a program or run in the box */
	struct list acks;      /* struct session_ack: ends that are not recorded yet */
	size_t unacked;
	bool reattaching;    /* the box is an earlier daemon's and has not described itself yet */
	size_t unknown_runs; /* in that box: without a record, and not ended yet */
	uint32_t unknown_id; /* the latest of those, to be killed; 0: it was */
	struct timer *unknown_timer; /* owned; NULL until it is needed */
	struct list queue;           /* struct run.queue_node, owned */
	size_t queued, executions;
	struct run *current; /* owned */
	bool pumping;
	bool resuming;       /* PAUSED, and waits for a place to go on */
	struct timer *timer; /* owned: build, idle time, lifetime */
	uint64_t paused_us;  /* since when */
};

/* session.c */

/** session_new - CREATING; in no table yet. @decision gives the box. */
struct session *session_new(struct session_service *s, const struct session_request *request,
                            const struct policy_decision *decision);
/** session_new_blank - with all its lists; for one that is read from the store. */
struct session *session_new_blank(struct session_service *s);
/** session_set_state - the only writer of the state; asserts that the step is in the table. */
void session_set_state(struct session *session, enum session_state next);
#define SESSION_CTX_LEN 320
/** session_log_ctx - which request, session, box and execution a line of the log is of. */
const char *session_log_ctx(const struct session *session, char ret_ctx[SESSION_CTX_LEN]);
#define session_log(session, level, ...)                                                           \
	do {                                                                                       \
		char session_ctx_[SESSION_CTX_LEN];                                                \
		if (log_is_on(level))                                                              \
			log_write(level, session_log_ctx(session, session_ctx_), __VA_ARGS__);     \
	} while (0)
bool session_is_over(const struct session *session);
/** session_touch - it is used. */
void session_touch(struct session *session);
/** session_changed - call the watcher. */
void session_changed(const struct session *session, enum session_change change, const char *path);
/** session_arm - let the timer fire when the next of its clocks ends. */
void session_arm(struct session *session);
/** session_fail - the box could not be made or was lost: everything ends. */
void session_fail(struct session *session, const struct error *err);
/** session_reap - free it if it was deleted and nothing is left of it. */
void session_reap(struct session *session);
/** session_leave_root - it is over and its box is gone: its template and its root may go, too. */
void session_leave_root(struct session *session);
/** session_refuse - ERR_CONFLICT: not in this state. Return: always -1. */
int session_refuse(const struct session *session, const char *what, struct error *err);

/** session_wake - the clocks of one that was read from the store. */
void session_wake(struct session *session);

/* session_pause.c */

/** session_run_inside - the run in the box: the current one, or what the store says runs in a box
 * that has not described itself yet. NULL: none. */
struct run *session_run_inside(const struct session *session);
/** session_resumed - a place was found for the execution of a paused session. */
void session_resumed(struct session *session);

/* session_owner.c */

/** session_owner_of - NULL: the tenant has no session. */
struct session_owner *session_owner_of(const struct session_service *s, const char *tenant);
/** session_owner_enter - by its id, which is made where @id is NULL; it must be free. */
void session_owner_enter(struct session *session, const char *id);
/** session_owner_name_box - what it is found by; NULL: a new name. */
void session_owner_name_box(struct session *session, const char *id);
/** session_owner_take - count it and its box for its tenant. @err NULL: whatever the quotas say,
 * for one that was there before a restart. */
int session_owner_take(struct session *session, struct error *err);
/** session_owner_drop - it does not live any more. */
void session_owner_drop(struct session *session);
/** session_owner_drop_box - its box is gone, or was never made. */
void session_owner_drop_box(struct session *session);
/** session_owner_ended - it is no agent's any more, and may be forgotten when there is no room. */
void session_owner_ended(struct session *session);
/** session_owner_leave - out of all tables of its owner, which goes with its last one. */
void session_owner_leave(struct session *session);
/** session_owner_oldest - which to forget for the end of @session: the first that its own
 * tenant ended where that has more than its share of what is remembered, else the first of all. */
struct session *session_owner_oldest(const struct session *session);

/* session_service.c */

/** session_find_template - @request with its template, which also has the idle time-out that is not
 * asked for. Borrowed. */
int session_find_template(const struct session_service *s, struct session_request *request,
                          struct error *err) attr_must_check;
/** session_open - ask for its box, if it is to have one. @decision: it may be one of a pool that
 * was made for what was decided; NULL: it may not. */
int session_open(struct session_service *s, struct session *session,
                 const struct policy_decision *decision, struct error *err) attr_must_check;
/** session_service_ended - @session has ended: from now on it is only remembered. */
void session_service_ended(struct session *session);
/** session_remember - one that had ended is in memory again. */
void session_remember(struct session *session);
/** session_service_has_box - whether sessions may have one more. */
bool session_service_has_box(const struct session_service *s);
/** session_service_check_drained - a box or a run is gone. */
void session_service_check_drained(struct session_service *s);

/* session_pool.c */

/** session_take_box - one of a pool. Return: false: there is none. */
bool session_take_box(struct session *session, const struct policy_decision *decision);
/** session_prove - something was done in its box. */
void session_prove(struct session *session);
/** session_replace_box - its box is lost. Return: whether it was one of a pool in which nothing had
 * been done, and the session goes on in another, or has failed for lack of one. */
bool session_replace_box(struct session *session);
/** session_drop_unused - runners that have done nothing yet have an environment of the past. */
int session_drop_unused(struct session *session, struct error *err) attr_must_check;

/* session_queue.c */

/** session_pump - start what may start. */
void session_pump(struct session *session);
/** session_queue_restore - @record was asked for under an earlier daemon: it is to be run, or runs
 * in the box already. To the end of the queue. */
int session_queue_restore(struct session *session, struct run_record *record,
                          const struct run_request *request, struct error *err) attr_must_check;
/** session_queue_detach - @run is neither queued nor current any more. */
void session_queue_detach(struct run *run);
/** session_queue_put_back - the current run, which is WAITING: to the front of the queue. */
void session_queue_put_back(struct session *session);
/** session_queue_end - end all runs. @lost: the box was lost, else the owner ended the session;
 * @failure: the box was never there. */
void session_queue_end(struct session *session, bool lost, const struct error *failure);

/* session_place.c */

/* The resident runner of one language in the box of a session. */
struct session_runner {
	struct list node; /* session.runners */
	const struct runner *language;
	uint32_t id;          /* 0: not running */
	bool unused;          /* it waited in a pool and has run nothing */
	bool reset_due;       /* it died between runs: the next one reports it */
	uint32_t dead_id;     /* that one: acknowledged with the run that reports it; 0: none */
	struct error failure; /* set: it could not be started */
};

extern const struct run_place session_place;

/* session_files.c */

/** session_files_end - all operations fail. */
void session_files_end(struct session *session, const struct error *err);
/** session_files_drop - all operations end, without a callback. */
void session_files_drop(struct session *session);
/** session_files_go_on - the box of an ephemeral session is gone: make another if an operation
 * waits for one. */
void session_files_go_on(struct session *session);
/** session_box_spent - the run that an ephemeral session's box was for has ended. */
void session_box_spent(struct session *session);

/* session_box.c */

/** session_box_lost - with it goes the session, or, if it is ephemeral, the execution. */
void session_box_lost(struct session *session, const struct error *err);

struct box_events session_box_events(struct session *session);
/** session_runner_of - of one language; NULL: it never had one. */
struct session_runner *session_runner_of(struct session *session, const struct runner *language);
