/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: internals of sessions, for this folder:
 *
 *   session_service.c   all sessions: create, find, forget, drain
 *   session_owner.c     one tenant's: ids, list, remembered ended ones
 *   session.c           one session: states and clocks
 *   session_pause.c     pause and resume
 *   session_change.c    notes, environment, restart of the runners
 *   session_queue.c     from a request to a queued run, one run at a time
 *   session_beside.c    runs beside that queue
 *   session_box.c       the box as the place of runs, and its events
 *   session_build.c     a new box, when it is the tenant's turn
 *   session_pool.c      a box from a pool
 *   session_ports.c     connections to ports of the box
 *   session_reattach.c  a box of an earlier daemon and its runs
 *   memory_guard.c      ends boxes when the host runs short of memory
 *   session_restore.c   at startup: sessions and runs of an earlier daemon
 */

#include "base/list.h"
#include "base/log.h"
#include "core/run/run_internal.h"
#include "core/session/session.h"
#include "core/session/session_streams.h"
#include "core/store/store.h"
#include "core/template/template.h"

struct map;
struct memory_guard;
struct session_write;
struct timer;

/* Code, input and files of queued runs. */
#define SESSION_QUEUED_BYTES_MAX (256u * 1024 * 1024)
/* Per tenant: leaves room for others. */
#define SESSION_QUEUED_BYTES_OF_TENANT (SESSION_QUEUED_BYTES_MAX / 2)
/* Of a program that runs; one piece may be larger. */
#define SESSION_UNREAD_MAX (4u * 1024 * 1024)

struct session_service {
	struct session_service_config config; /* its pointers are borrowed */
	const struct policy_rules *rules;
	struct scheduler *scheduler;
	struct map *owners; /* struct session_owner, by tenant */
	struct list all;    /* struct session.node, oldest first */
	size_t count;
	struct list ended; /* struct session.ended_node, in order of end */
	size_t ended_count;
	struct list deleted; /* struct session.node: in no table, box going down */
	size_t boxes;
	size_t ports; /* open connections to ports of boxes */
	size_t beside, terminals;
	size_t runs;         /* queued and current */
	size_t queued_bytes; /* of those */
	bool draining;
	bool leaving;                  /* draining, but kept sessions stay */
	size_t left_boxes, left_runs;  /* of those that stay */
	void (*on_drained)(void *ctx); /* NULL: no drain, or already called */
	void *drained_ctx;
	struct timer *drain_timer;
	struct memory_guard *memory_guard;
	struct session_watcher watcher;
};

/* One tenant's sessions; freed with the last. */
struct session_owner {
	struct map *by_box; /* persistent ones, by box id */
	struct session_service *service;
	char tenant[TENANT_NAME_MAX + 1];
	struct map *by_id;
	struct map *by_agent; /* each agent's newest persistent session */
	struct list sessions; /* struct session.owner_node, oldest first */
	struct list ended;    /* struct session.owner_ended_node, in order of end */
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
	struct tenant *account; /* quotas; held; NULL: none */
	bool counted;
	uint64_t held_bytes; /* memory of the box, taken from the account */
	char id[SESSION_ID_MAX + 1];
	char *language, *agent_id; /* owned */
	char *dependencies;        /* owned; NULL: none */
	struct policy_cuts *cuts;  /* owned; NULL: none, or restored */
	char *notes;               /* owned; NULL: none */
	struct template *template; /* reference; NULL: none */
	char *key_id;              /* owned; of the creator; NULL: no key was needed */
	char **env;                /* owned, NULL-terminated; never NULL */
	char **secrets;            /* names, the same */
	char **mcp;                /* owned, NULL-terminated: as requested; NULL: none */
	char **network_allow;      /* the same; NULL: what its policies allow */
	enum session_mode mode;
	enum session_state state; /* only session_set_state writes it */
	struct session_step steps[SESSION_HISTORY_MAX];
	size_t steps_count;
	struct box_spec spec;
	struct policy_stack stack; /* references, from its creation */
	uint64_t idle_us, lifetime_us;
	uint64_t created_us, active_us;
	uint64_t making_us; /* CREATING: since, in this daemon */
	uint64_t created_ms, updated_ms, active_ms, ended_ms;
	char *reason; /* owned */
	bool deleted;
	char *network_lost;             /* owned: why its network is to be taken; NULL: it is not */
	struct image *image, *packages; /* references: root and packages of its box; NULL: none */
	struct image *library;          /* the same, of its language's compiler; NULL: none */
	char *past_root;                /* owned; from the store */
	uint64_t past_image_bytes;
	char *past_spec; /* owned; JSON of the template at creation; NULL: unknown */
	uint64_t past_spec_ms;
	char *past_template, *past_policy; /* owned names; from the store */
	struct store_item dirty;           /* in the store's list: unwritten changes */
	struct session_write *writing;     /* latest unfinished write; the store's */

	struct memory_sample memory;  /* of @box */
	struct box *box;              /* NULL: not made yet, or gone */
	struct scheduler_entry entry; /* while @box waits to be built, or is */
	bool unproven;                /* @box is pooled and still unused */
	uint64_t pool_key;
	bool box_leaving;  /* @box is going down, and the session goes on: an ephemeral one has used
	                    * it up, a persistent one gets another (session_remake_box) */
	struct list files; /* struct file_op, owned */
	size_t files_count;
	struct list ports, port_listings; /* struct port_conn, struct port_listing; owned */
	size_t ports_count;               /* of both */
	struct artifacts seen;            /* files of the box after the last run */
	struct list runners;              /* struct session_runner, owned */
	uint32_t last_id;                 /* of a program or run in the box */
	struct list acks;                 /* struct session_ack: ends not yet recorded */
	size_t unacked;
	bool reattaching;    /* the box is an earlier daemon's and has not described itself */
	size_t unknown_runs; /* in that box: running without a record */
	uint32_t unknown_id; /* the latest of those, to be killed; 0: it was */
	struct timer *unknown_timer; /* owned; NULL until needed */
	struct list queue;           /* struct run.queue_node, owned */
	size_t queued, executions;
	struct run *current; /* owned */
	struct list beside;  /* struct run.queue_node, owned: session_beside.c */
	size_t beside_count;
	bool pumping;
	bool resuming;              /* PAUSED, waiting for a place */
	bool settling;              /* the kernel has not yet done the latest pause or resume */
	struct list settle_waits;   /* struct settle_wait, owned */
	struct timer *settle_timer; /* owned; NULL until needed */
	struct timer *timer;        /* owned: build, idle time, lifetime */
	uint64_t paused_us;
};

/* session.c */

/** session_new - in CREATING, in no table. @decision gives the box. */
struct session *session_new(struct session_service *s, const struct session_request *request,
                            const struct policy_decision *decision);
/** session_new_blank - lists initialised; for one from the store. */
struct session *session_new_blank(struct session_service *s);
/** session_set_state - the only writer of the state; asserts the transition. */
void session_set_state(struct session *session, enum session_state next);
#define SESSION_CTX_LEN 320
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
void session_touch(struct session *session);
void session_changed(const struct session *session, enum session_change change, const char *path);
void session_arm(struct session *session);
/** session_reap - free it if deleted, without a box. */
void session_reap(struct session *session);
/** session_leave_root - if over and its box is gone, release template and root. */
void session_leave_root(struct session *session);
/** session_refuse - ERR_CONFLICT: wrong state. Return: -1. */
int session_refuse(const struct session *session, const char *what, struct error *err);

/** session_wake - start the clocks of one from the store. */
void session_wake(struct session *session);

/* session_owner.c */

/** session_owner_of - NULL: the tenant has no session. */
struct session_owner *session_owner_of(const struct session_service *s, const char *tenant);
/** session_owner_enter - under @id, which must be free; NULL: make one. */
void session_owner_enter(struct session *session, const char *id);
/** session_owner_name_box - set the id it is found by; NULL: a new one. */
void session_owner_name_box(struct session *session, const char *id);
/** session_owner_take - account it and its box. @err NULL: ignore quotas, after a restart. */
int session_owner_take(struct session *session, struct error *err);
void session_owner_drop(struct session *session);
void session_owner_drop_box(struct session *session);
/** session_owner_ended - agents no longer find it; it may be forgotten. */
void session_owner_ended(struct session *session);
void session_owner_leave(struct session *session);
/** session_owner_oldest - which to forget after @session: its tenant's oldest if over its share,
 * else the oldest of all. */
struct session *session_owner_oldest(const struct session *session);

/* session_change.c */

/** session_note_lost_network - in log and audit. */
void session_note_lost_network(struct session *session, enum box_network lost, const char *reason);

/* session_service.c */

/** session_find_template - set @request's template (borrowed) and idle time-out. */
int session_find_template(const struct session_service *s, struct session_request *request,
                          struct error *err) attr_must_check;
/** session_open - get a box if persistent. @decision: may be pooled; NULL: a new one. */
int session_open(struct session_service *s, struct session *session,
                 const struct policy_decision *decision, struct error *err) attr_must_check;
/** session_service_ended - from now on @session is only remembered. */
void session_service_ended(struct session *session);
/** session_remember - add an ended one from the store. */
void session_remember(struct session *session);
bool session_service_has_box(const struct session_service *s);
void session_service_check_drained(struct session_service *s);

/* session_pool.c */

/** session_take_box - from a pool. Return: false: none. */
bool session_take_box(struct session *session, const struct policy_decision *decision);
void session_prove(struct session *session);
/** session_replace_box - its box is lost. Return: true: it was unused, from a pool; the session
 * continues in another, or has failed. */
bool session_replace_box(struct session *session);
/** session_drop_unused - kill unused runners, which have the old environment. */
int session_drop_unused(struct session *session, struct error *err) attr_must_check;

/* session_queue.c */
void session_pump(struct session *session);
/** session_queue_restore - queue an earlier daemon's @record, to be run, or already in the box. */
int session_queue_restore(struct session *session, struct run_record *record,
                          const struct run_request *request, struct error *err) attr_must_check;
void session_queue_detach(struct run *run);
/* The current, WAITING run to the front. */
void session_queue_put_back(struct session *session);
/** session_queue_end - end all runs. @lost: the box was lost, else the owner ended the session;
 * @failure: the box was never ready. */
void session_queue_end(struct session *session, bool lost, const struct error *failure);

/* session_box.c */

/* A resident runner: one per language. */
struct session_runner {
	struct list node; /* session.runners */
	const struct runner *language;
	uint32_t id;          /* 0: not running */
	bool unused;          /* from a pool, has run nothing */
	bool reset_due;       /* died between runs: the next run reports it */
	uint32_t dead_id;     /* to acknowledge with that run; 0: none */
	struct error failure; /* set: could not be started */
};

extern const struct run_place session_place;

/** session_box_lost - fail the session or, if ephemeral, the current run. */
void session_box_lost(struct session *session, const struct error *err);
struct box_events session_box_events(struct session *session);

/*
 * What a kept box remembers of a run: its id, and the box's counters when it began. Text of at most
 * BOX_LABEL_MAX characters: "exec_20261115_ab12cd34 1f4 2dc6c0 0 -", in base 16, "-" if unknown. A
 * lying agent can only falsify the usage of its own runs.
 */
struct session_label {
	char id[BOX_LABEL_MAX + 1];
	uint64_t queue_us;          /* COUNTER_UNKNOWN */
	struct box_counters before; /* cpu_us, oom_kills, pids_denied */
};

/** session_label_make - the id alone if the rest does not fit. */
void session_label_make(const struct session_label *label, char ret_text[BOX_LABEL_MAX + 1]);
/** session_label_read - never fails: missing or bad numbers are unknown. */
void session_label_read(const char *text, struct session_label *ret_label);

/* Ends to acknowledge once on disk. */
struct session_ack {
	struct list node;        /* session.acks */
	struct session *session; /* NULL: gone */
	uint32_t ids[2];
};

/** session_drop_acks - box or session is gone. */
void session_drop_acks(struct session *session);
/** session_runner_of - NULL: never started. */
struct session_runner *session_runner_of(struct session *session, const struct runner *language);
