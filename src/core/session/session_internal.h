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
 *   session_box.c       the session's box as the place of its runs, and its events
 *   session_pool.c      a box that waited in a pool
 *   session_reattach.c  a box that an earlier daemon made, what runs in it, what it remembers
 *   session_restore.c   at the start: sessions and runs of an earlier daemon
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
	const struct policy_rules *rules;     /* of the run service */
	struct scheduler *scheduler;          /* of the run service */
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
	bool leaving;                  /* draining, but sessions that outlive the daemon stay */
	size_t left_boxes, left_runs;  /* of those */
	void (*on_drained)(void *ctx); /* NULL: no drain, or already called */
	void *drained_ctx;
	struct timer *drain_timer; /* nothing is left: calls on_drained */
	struct session_watcher watcher;
};

/* All sessions of one tenant; freed with the last. */
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
	struct tenant *account; /* its quotas; held; NULL: none */
	bool counted;           /* for the account */
	uint64_t held_bytes;    /* memory of its box, taken from the account */
	char id[SESSION_ID_MAX + 1];
	char *language, *agent_id; /* owned */
	char *dependencies;        /* owned; NULL: none */
	char *notes;               /* owned; NULL: none */
	struct template *template; /* a reference; NULL: none */
	char *key_id;              /* owned; of its creator; NULL: no key was needed */
	char **env;                /* owned, NULL-terminated; never NULL */
	enum session_mode mode;
	enum session_state state;                       /* written by session_set_state alone */
	struct session_step steps[SESSION_HISTORY_MAX]; /* a ring */
	size_t steps_count;                             /* ever */
	struct box_spec spec;
	struct policy_stack stack; /* references: as it was when the session was made */
	uint64_t idle_us, lifetime_us;
	uint64_t created_us, active_us;
	uint64_t making_us; /* CREATING: since when, by this daemon */
	uint64_t created_ms, updated_ms, active_ms, ended_ms;
	char *reason; /* owned */
	bool deleted;
	struct image *image; /* a reference: the root of its box; NULL: no import */
	char *past_root;     /* owned; of its box; read from the store */
	uint64_t past_image_bytes;
	char *past_spec; /* owned; JSON of the tenant's template as it was; NULL: unknown */
	uint64_t past_spec_ms;
	char *past_template, *past_policy; /* owned; names; read from the store */
	struct store_item dirty;           /* store: it has unwritten changes */
	struct session_write *writing;     /* the latest write, not finished yet; the store's */

	struct box *box;   /* NULL: not made yet, or gone */
	bool unproven;     /* @box is of a pool, and nothing was done in it */
	uint64_t pool_key; /* of that */
	bool box_leaving;  /* @box is going down, and the session goes on: an ephemeral one has used
	                    * it up, a persistent one gets another (session_remake_box) */
	struct list files; /* struct file_op, owned */
	size_t files_count;
	struct artifacts seen; /* files of its box as the last run left them */
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
	bool resuming;       /* PAUSED, waiting for a place in the scheduler */
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
/** session_log_ctx - ids of request, session, box and run for a log line. */
const char *session_log_ctx(const struct session *session, char ret_ctx[SESSION_CTX_LEN]);
#define session_log(session, level, ...)                                                           \
	do {                                                                                       \
		char session_ctx_[SESSION_CTX_LEN];                                                \
		if (log_is_on(level))                                                              \
			log_write(level, session_log_ctx(session, session_ctx_), __VA_ARGS__);     \
	} while (0)
static inline bool session_is_over(const struct session *session)
{
	return session->state == SESSION_TERMINATED || session->state == SESSION_FAILED;
}
/** session_touch - it was used. */
void session_touch(struct session *session);
/** session_changed - call the watcher. */
void session_changed(const struct session *session, enum session_change change, const char *path);
/** session_arm - set the timer to the next of its clocks. */
void session_arm(struct session *session);
/** session_fail - the box could not be made or was lost: everything ends. */
void session_fail(struct session *session, const struct error *err);
/** session_reap - free it if it was deleted and its box is gone. */
void session_reap(struct session *session);
/** session_leave_root - if it is over and its box is gone, release template and root. */
void session_leave_root(struct session *session);
/** session_refuse - ERR_CONFLICT: not in this state. Return: -1. */
int session_refuse(const struct session *session, const char *what, struct error *err);

/** session_wake - start the clocks of one that was read from the store. */
void session_wake(struct session *session);

/* session_pause.c */

/** session_run_inside - the current run; while reattaching, the one that runs according to the
 * store. NULL: none. */
struct run *session_run_inside(const struct session *session);
/** session_resumed - the run of a paused session has a place again. */
void session_resumed(struct session *session);

/* session_owner.c */

/** session_owner_of - NULL: the tenant has no session. */
struct session_owner *session_owner_of(const struct session_service *s, const char *tenant);
/** session_owner_enter - under @id, which must be free; NULL: make one. */
void session_owner_enter(struct session *session, const char *id);
/** session_owner_name_box - the id it is found by; NULL: a new one. */
void session_owner_name_box(struct session *session, const char *id);
/** session_owner_take - count it and its box for its tenant. @err NULL: without checking quotas,
 * after a restart. */
int session_owner_take(struct session *session, struct error *err);
/** session_owner_drop - it is over: no longer counted. */
void session_owner_drop(struct session *session);
/** session_owner_drop_box - its box is gone, or was never made. */
void session_owner_drop_box(struct session *session);
/** session_owner_ended - no agent finds it any more; it may be forgotten for room. */
void session_owner_ended(struct session *session);
/** session_owner_leave - remove it from all tables of its owner. */
void session_owner_leave(struct session *session);
/** session_owner_oldest - which to forget now that @session has ended: the oldest of its tenant if
 * that is over its share, else the oldest of all. */
struct session *session_owner_oldest(const struct session *session);

/* session_service.c */

/** session_find_template - fill in @request's template (borrowed) and its idle time-out. */
int session_find_template(const struct session_service *s, struct session_request *request,
                          struct error *err) attr_must_check;
/** session_open - request a box for a persistent one. @decision: for a box of a pool; NULL: a new
 * one. */
int session_open(struct session_service *s, struct session *session,
                 const struct policy_decision *decision, struct error *err) attr_must_check;
/** session_service_ended - @session has ended and is only remembered. */
void session_service_ended(struct session *session);
/** session_remember - an ended one was read from the store. */
void session_remember(struct session *session);
/** session_service_has_box - whether sessions may have one more. */
bool session_service_has_box(const struct session_service *s);
/** session_service_check_drained - a box or a run is gone. */
void session_service_check_drained(struct session_service *s);

/* session_pool.c */

/** session_take_box - from a pool. Return: false: it has none. */
bool session_take_box(struct session *session, const struct policy_decision *decision);
/** session_prove - its box works: something was done in it. */
void session_prove(struct session *session);
/** session_replace_box - its box is lost. Return: whether it was an unused one of a pool: then the
 * session goes on in another, or has failed. */
bool session_replace_box(struct session *session);
/** session_drop_unused - kill unused runners: they have the old environment. */
int session_drop_unused(struct session *session, struct error *err) attr_must_check;

/* session_queue.c */

/** session_pump - start the next run if it may start. */
void session_pump(struct session *session);
/** session_queue_restore - queue @record of an earlier daemon, to be run, or in the box already. */
int session_queue_restore(struct session *session, struct run_record *record,
                          const struct run_request *request, struct error *err) attr_must_check;
/** session_queue_detach - @run is no longer queued or current. */
void session_queue_detach(struct run *run);
/** session_queue_put_back - the current run, WAITING, to the front of the queue. */
void session_queue_put_back(struct session *session);
/** session_queue_end - end all runs. @lost: the box was lost, else the owner ended the session;
 * @failure: the box was never there. */
void session_queue_end(struct session *session, bool lost, const struct error *failure);

/* session_box.c */

/* The resident runner of one language in the box of a session. */
struct session_runner {
	struct list node; /* session.runners */
	const struct runner *language;
	uint32_t id;          /* 0: not running */
	bool unused;          /* it waited in a pool and has run nothing */
	bool reset_due;       /* it died between runs: the next run reports it */
	uint32_t dead_id;     /* to be acknowledged with that run; 0: none */
	struct error failure; /* set: it could not be started */
};

extern const struct run_place session_place;

/* session_files.c */

/** session_files_end - fail all operations. */
void session_files_end(struct session *session, const struct error *err);
/** session_files_drop - end all operations, without callbacks. */
void session_files_drop(struct session *session);
/** session_files_go_on - the box is gone: make another if an operation waits for one. */
void session_files_go_on(struct session *session);
/** session_box_spent - an ephemeral session's run has ended: destroy its box. */
void session_box_spent(struct session *session);

/* session_box.c */

/** session_box_lost - fail the session, or, if it is ephemeral, the current run. */
void session_box_lost(struct session *session, const struct error *err);

struct box_events session_box_events(struct session *session);
/** session_runner_of - NULL: never started. */
struct session_runner *session_runner_of(struct session *session, const struct runner *language);
