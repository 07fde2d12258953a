/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: internals of a run and of the run service, for core/run and core/session. */

#include "base/list.h"
#include "core/policy/policy.h"
#include "core/run/artifacts.h"
#include "core/run/build.h"
#include "core/run/outcome.h"
#include "core/run/run.h"
#include "core/run/run_record.h"
#include "core/run/run_service.h"
#include "core/tenant/principal.h"
#include "core/tenant/scheduler.h"
#include "core/tenant/tenant.h"

struct facts_maker;
struct language_checks;
struct run;
struct session_runner;
struct timer;

struct run_service {
	struct run_service_config config; /* its pointers are borrowed */
	struct policy_rules rules;
	struct scheduler scheduler;
	struct list all;    /* struct run.node: in a fresh box or waiting for one */
	size_t boxes;       /* fresh boxes not yet gone */
	size_t shown_bytes; /* output of runs beside queues, while they run */
	bool draining;
	void (*on_drained)(void *ctx); /* NULL: no drain, or already called */
	void *drained_ctx;
	struct pools *pools;                     /* owned */
	struct build_cache *builds;              /* owned */
	struct language_checks *language_checks; /* owned */
	struct facts_maker *facts;               /* owned */
	run_library_fn *library;                 /* NULL: none */
	void *library_ctx;
	struct timer *drain_timer;  /* drain time-out; calls on_drained */
	struct timer *memory_timer; /* memory is short: look again */
	struct timer *turn_timer;   /* the builder of sessions' boxes has rested */
};

enum run_state {
	RUN_QUEUED,
	RUN_WAITING,
	RUN_STARTING,
	RUN_RUNNING,
	RUN_STOPPING,
	RUN_KILLING,
	RUN_GATHERING,
	RUN_ENDED,
	RUN_STATE_COUNT
};

enum run_stop {
	RUN_STOP_DEADLINE,
	RUN_STOP_CANCEL,
	RUN_STOP_OVERFLOW, /* too much output, if policy kills */
	RUN_STOP_MEMORY,   /* the host ran short of it */
};

/* A resident runner has RUN_GRACE_US to end an interrupted run; then it is killed, and the agent
 * has RUN_KILL_US to report that. Together below the promised 2 s. The grace is most of it: a
 * killed runner loses the session's variables, and a busy host may not run it for half a second. */
#define RUN_GRACE_US (1000 * 1000ULL)
#define RUN_KILL_US  (800 * 1000ULL)

/* Where the box comes from. Its events arrive through run_started ... run_done. */
struct run_place {
	/* Hand program, files and input to the box. Return: -1: the run fails; 0: @r may be gone,
	 * if the box was lost. */
	int (*hand_over)(struct run *r, struct error *err);
	/* End the program for the reason in the evidence. May end the run. */
	void (*stop)(struct run *r, enum run_stop why);
	/* The box does not respond: end the run. */
	void (*give_up)(struct run *r, const struct error *err);
	/* Before the record ends. May be NULL. */
	void (*settle)(struct run *r);
	/* The record has ended: release box and place. */
	void (*leave)(struct run *r);
	/* Other runs that have entered its box. Return: their number. NULL: none can. */
	size_t (*others)(const struct run *r, struct run **ret_runs, size_t max);
};

extern const struct run_place run_place_fresh; /* run_box.c */

/* Of a box, for memory_guard.c. */
struct memory_sample {
	uint64_t round; /* when it was taken; 0: never */
	uint64_t bytes;
};

struct run {
	struct list node;            /* run_service.all */
	struct list queue_node;      /* session.queue or .beside */
	struct run_service *service; /* NULL: freed before the box was gone */
	const struct run_place *place;
	enum run_state state;
	struct run_record *record; /* until ENDED; owned if one-shot */
	struct scheduler_entry entry;
	/* For the queue, inside the call that ended it. */
	void (*on_ended)(struct run *r); /* NULL: one-shot */
	void *owner;

	struct run_request *request; /* NULL: no longer needed; code may be in the record */
	bool request_owned;          /* else borrowed, inside run_start */
	struct policy_decision decision;
	struct tenant *tenant; /* held; NULL: no quotas */
	bool queued;           /* counts for the tenant, until STARTING */
	bool awaits_network;   /* GATHERING: for the report of proxy or bridge, until then: */
	uint64_t network_by_us;
	bool beside;   /* beside the session's queue: without a place in the scheduler */
	bool stop_due; /* beside: to be stopped when its session is resumed */
	bool terminal; /* on one: its output is a rolling tail, without a limit */
	bool is_cut[OUTPUT_COUNT]; /* beside: the rest of its output is dropped */
	size_t shown_bytes;        /* beside: output that it keeps */
	size_t owed;               /* terminal: bytes of output that the box may not replace yet */
	size_t bytes;              /* its part of the sessions' queued_bytes */
	size_t unread_bytes;       /* of that: input that it had not read when it got the latest */
	struct image *image;       /* reference: root of a fresh box; NULL: no import */
	struct image *packages;    /* the same, of its packages; NULL: none */
	struct image *library;     /* the same, of its compiler's; NULL: none */

	/* One-shot. */
	bool answer_later; /* inside a call of the caller: END comes from the loop */
	bool answering;    /* ENDED: the timer delivers END */
	bool leaving;      /* ENDED: the loop releases box and place */

	struct memory_sample memory;
	struct box *box;               /* NULL: none. Owned if fresh, else the session's */
	uint32_t id;                   /* in the box; 0: not handed over */
	struct session_runner *runner; /* resident, in the session's box; NULL: own process */
	uint32_t runner_id;            /* its id in the box */
	uint32_t dead_runner;          /* runner whose loss this run reports; 0: none */
	bool runner_unused;            /* the runner had run nothing */
	bool pooled;
	uint64_t pool_key;
	bool repeatable;        /* nothing of it has run: it may be handed over again */
	bool retried;           /* it was */
	bool held;              /* QUEUED: until its record is on disk */
	bool restored;          /* queued by an earlier daemon */
	bool reattached;        /* started by an earlier daemon: it is in the box */
	bool reset;             /* a resident runner and its variables were lost */
	uint64_t past_queue_us; /* reattached: outcome.queue_us; COUNTER_UNKNOWN */
	uint64_t stdin_taken;   /* reattached: bytes of stdin the agent has */
	bool stdin_ended;       /* reattached */

	struct timer *timer; /* owned; NULL until needed */
	uint64_t due_us;     /* when it fires; 0: off */
	bool frozen;
	uint64_t left_us; /* frozen: remaining */
	uint64_t arrived_us, admitted_us, started_us;

	uint64_t left[OUTPUT_COUNT]; /* bytes of the output limit */
	struct outcome outcome;
	uint64_t start_us; /* copy of outcome.start_us */
	struct outcome_evidence evidence;
	struct box_counters before; /* at its start */
	struct box_network_usage net_before;
	enum box_network net_entered; /* of its box when it began there: it may lose it */
	struct error failure;
	struct build *build; /* owned; NULL: nothing to compile */
	struct given_files given;
	struct gather gather;
};

#define RUN_BOX_EXEC_ID 1

/** run_new - in QUEUED. Takes what @decision owns, and a one-shot @record. */
struct run *run_new(struct run_service *s, struct run_record *record,
                    struct policy_decision *decision);
/** run_queue - from WAITING, to the session's queue. */
void run_queue(struct run *r);
/** run_enter - enter the scheduler. Return: 0: call run_launch; 1: entry.on_turn follows; -1:
 * rejected. */
int run_enter(struct run *r, struct error *err) attr_must_check;
/** run_launch - admitted: hand it to its box. @r may be gone afterwards. */
void run_launch(struct run *r);
/** run_hand_over - also to repeat it. @r may be gone afterwards. */
void run_hand_over(struct run *r);
/** run_reattach - admitted and already in the box: wait for run_started. */
void run_reattach(struct run *r);
/** run_built - the compiler has ended. Return: whether the program is due: hand it over; else @r
 * may be gone. */
bool run_built(struct run *r, const struct exec_facts *facts);
/** run_code - from the record or the request. */
struct exec_source run_code(const struct run *r, const char *name);

/** run_stdin - if the request left stdin open. Input is kept while the run waits, within bounds. */
int run_stdin(struct run *r, const void *data, size_t len, bool end,
              struct error *err) attr_must_check;
/** run_signal - ERR_CONFLICT if the program is not running. */
int run_signal(struct run *r, int signo, struct error *err) attr_must_check;
/** run_resize - its terminal. ERR_CONFLICT without one, or if it is not running. */
int run_resize(struct run *r, uint16_t rows, uint16_t cols, struct error *err) attr_must_check;
/** run_beside_room - how many of @len bytes of output may be kept; once fewer than @len, none. */
size_t run_beside_room(struct run *r, enum output_stream stream, size_t len);
/** run_beside_count - after a change of its output; forget_ - it has ended. */
void run_beside_count(struct run *r);
void run_beside_forget(struct run *r);
/** run_add_shown - output of a terminal. */
void run_add_shown(struct run *r, const char *data, size_t len);
/** run_keep_own - of the counters of a box with other runs. */
void run_keep_own(const struct run *r, struct box_counters *c);
/** run_unread - bytes of stdin that the program has not made room for. */
size_t run_unread(const struct run *r);
/** run_allow_output - of a terminal: no watcher is behind any more. */
void run_allow_output(struct run *r);
/** run_abort - end it with OUTCOME_CANCELLED and the output so far; a resident runner is
 * interrupted first. @r may be gone afterwards. */
void run_abort(struct run *r);
/** run_end_for_memory - if it runs: end it with OUTCOME_LIMIT_HOST_MEMORY. */
void run_end_for_memory(struct run *r);

/* run_network.c */

/** run_network_enter - it is about to start in its box. */
void run_network_enter(struct run *r);
/** run_network_leave - take what its box reached and was refused. */
void run_network_leave(struct run *r);

/* Events of the box, called by the place. Late ones are ignored. */
void run_started(struct run *r);
void run_add_output(struct run *r, enum output_stream stream, const char *data, size_t len);
void run_add_report(struct run *r, const char *data, size_t len);
void run_add_denial(struct run *r, const char *what, uint64_t count);
/** run_done - the program ended: gather its files, then conclude. @seen: struct gather. */
void run_done(struct run *r, const struct exec_facts *facts, struct artifacts *seen);

/* The functions that end it: @r may be gone afterwards. */

void run_conclude(struct run *r);
/** run_fail - it could not run. */
void run_fail(struct run *r, const struct error *err);
/** run_drop_request - nothing will hand it over again. Not for a session's. */
void run_drop_request(struct run *r);
/** run_drop - end without an event: the record stays for the next daemon. */
void run_drop(struct run *r);
/** run_interrupt - resident runner: SIGINT, then SIGKILL; otherwise SIGKILL. */
void run_interrupt(struct run *r);
/** run_reap - free it if ended without a box. */
void run_reap(struct run *r);
/** run_orphan - the service is freed: no callback follows; the run is freed with its box. */
void run_orphan(struct run *r);

/* For a paused session. */

void run_freeze(struct run *r);
/** run_thaw - restart its clock; @paused_us do not count. */
void run_thaw(struct run *r, uint64_t paused_us);
/** run_stop_clock - the daemon exits: no deadline fires. */
void run_stop_clock(struct run *r);

/** run_box_prepare - name a fresh box and account its memory. ERR_UNAVAILABLE while draining. */
int run_box_prepare(struct run *r, struct error *err) attr_must_check;
/** run_box_leave - ENDED: place.leave now, not from the loop. */
void run_box_leave(struct run *r);

void run_service_check_drained(struct run_service *s);
