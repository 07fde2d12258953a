/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the inside of a run and of the run service, for core/run and core/session. */

#include "base/list.h"
#include "core/policy/policy.h"
#include "core/run/artifacts.h"
#include "core/run/outcome.h"
#include "core/run/run.h"
#include "core/run/run_record.h"
#include "core/run/run_service.h"
#include "core/tenant/principal.h"
#include "core/tenant/scheduler.h"
#include "core/tenant/tenant.h"

struct run;
struct session_runner;
struct timer;

struct run_service {
	struct run_service_config config; /* what it points to is borrowed */
	struct policy_rules rules;
	struct scheduler scheduler;
	struct list all; /* struct run.node: with a fresh box or waiting for one */
	size_t boxes;    /* fresh boxes that are not gone */
	bool draining;
	void (*on_drained)(void *ctx); /* NULL: no drain, or already called */
	void *drained_ctx;
	struct pools *pools;       /* owned */
	struct timer *drain_timer; /* drain time-out; calls on_drained */
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
	RUN_STOP_OVERFLOW, /* too much output, by policy */
};

/* A resident runner has RUN_GRACE_US to end an interrupted run; then it is killed, and the agent
 * has RUN_KILL_US to report that. Together below the 2 s that are promised. */
#define RUN_GRACE_US (500 * 1000ULL)
#define RUN_KILL_US  (1000 * 1000ULL)

/* Where the box of a run comes from. Its events arrive through run_started ... run_lost. */
struct run_place {
	/* Hand program, files and input to the box. Return: -1: the run fails; 0: @r may be gone,
	 * if the box was lost meanwhile. */
	int (*hand_over)(struct run *r, struct error *err);
	/* End the program; the evidence has the reason. May end the run at once. */
	void (*stop)(struct run *r, enum run_stop why);
	/* The box does not respond. Ends the run. */
	void (*give_up)(struct run *r, const struct error *err);
	/* The outcome is judged, or the failure set; the record has not ended. May be NULL. */
	void (*settle)(struct run *r);
	/* The record has ended: return box and place in the scheduler. */
	void (*leave)(struct run *r);
};

extern const struct run_place run_place_fresh; /* run_box.c */

struct run {
	struct list node;            /* run_service.all */
	struct list queue_node;      /* session.queue */
	struct run_service *service; /* NULL: freed before the box was gone */
	const struct run_place *place;
	enum run_state state;      /* written by set_state alone */
	struct run_record *record; /* until ENDED; owned if nothing is kept of it */
	struct scheduler_entry entry;
	/* Of the queue: called once it has ended, from inside the call that ended it. */
	void (*on_ended)(struct run *r); /* NULL: a one-shot run */
	void *owner;

	/* What was asked and decided. */
	struct run_request *request; /* NULL: no longer needed; code may be in the record */
	bool request_owned;          /* else borrowed, inside run_start */
	struct policy_decision decision;
	struct tenant *tenant; /* held; NULL: no quotas */
	bool queued;           /* counts as such for the tenant, until STARTING */
	size_t bytes;          /* of the sessions' queued_bytes */
	struct image *image;   /* reference: the root of a fresh box; NULL: no import */

	/* One-shot: how to answer. */
	bool answer_later; /* inside a call of the caller: END comes from the loop */
	bool answering;    /* ENDED: the timer delivers END */
	bool leaving;      /* ENDED: the loop returns box and place */

	/* The program in its box. */
	struct box *box;               /* NULL: none. Owned if fresh, else by the session */
	uint32_t id;                   /* in the box; 0: not handed over */
	struct session_runner *runner; /* resident in the session's box; NULL: own process */
	uint32_t runner_id;            /* of that, in the box */
	uint32_t dead_runner;          /* its loss is reported by this run; 0: none */
	bool runner_unused;            /* the runner had run nothing before */
	bool pooled;                   /* the box came from a pool */
	uint64_t pool_key;
	bool repeatable;        /* nothing of it has run: it may be handed over again */
	bool retried;           /* it was */
	bool held;              /* QUEUED: until its record is on disk */
	bool restored;          /* queued by an earlier daemon */
	bool reattached;        /* started by an earlier daemon: it is in the box */
	bool reset;             /* a resident runner was lost: its variables are gone */
	uint64_t past_queue_us; /* reattached: outcome.queue_us; COUNTER_UNKNOWN */
	uint64_t stdin_taken;   /* reattached: bytes of stdin the agent has */
	bool stdin_ended;       /* reattached */

	/* Clock. */
	struct timer *timer; /* owned; NULL until needed */
	uint64_t due_us;     /* when it fires; 0: off */
	bool frozen;         /* the clock stands still */
	uint64_t left_us;    /* frozen: left on the timer */
	uint64_t arrived_us, admitted_us, started_us;

	/* What came out. */
	uint64_t left[OUTPUT_COUNT]; /* of the output limit, in bytes */
	struct outcome outcome;      /* moves into the record */
	uint64_t start_us;           /* of the outcome, after that */
	struct outcome_evidence evidence;
	struct box_counters before; /* of the box, at the start of this run */
	struct error failure;       /* set: it could not be run */
	struct given_files given;   /* files that came with it */
	struct gather gather;
};

#define RUN_BOX_EXEC_ID 1 /* of the one program in a fresh box */

/* run.c */

/** run_new - QUEUED. Takes what @decision owns, and a one-shot @record. */
struct run *run_new(struct run_service *s, struct run_record *record,
                    struct policy_decision *decision);
/** run_queue - WAITING: back to the queue of its session. */
void run_queue(struct run *r);
/** run_enter - get a place in the scheduler. Return: 0: call run_launch; 1: entry.on_turn follows;
 * -1: refused. */
int run_enter(struct run *r, struct error *err) attr_must_check;
/** run_launch - it has a place: hand it to its box. @r may be gone afterwards. */
void run_launch(struct run *r);
/** run_hand_over - hand it over, or once more. @r may be gone afterwards. */
void run_hand_over(struct run *r);
/** run_reattach - it has a place and is in the box: wait for run_started. */
void run_reattach(struct run *r);
/** run_code - its code, from the record or the request. */
struct exec_source run_code(const struct run *r, const char *name);

/* What the caller does. */

/** run_stdin - for a run whose request left stdin open. Some is kept while the run waits. */
int run_stdin(struct run *r, const void *data, size_t len, bool end,
              struct error *err) attr_must_check;
/** run_signal - signal the program. ERR_CONFLICT if it does not run. */
int run_signal(struct run *r, int signo, struct error *err) attr_must_check;
/** run_abort - end it with OUTCOME_CANCELLED and the output so far. A resident runner is
 * interrupted first. @r may be gone afterwards. */
void run_abort(struct run *r);

/* Events of the box; called by the place. Events that come too late are ignored. */
void run_started(struct run *r);
void run_add_output(struct run *r, enum output_stream stream, const char *data, size_t len);
void run_add_report(struct run *r, const char *data, size_t len);
void run_add_denial(struct run *r, const char *what, uint64_t count);
/** run_done - the program has ended: gather its files, then conclude. @seen: struct gather. */
void run_done(struct run *r, const struct exec_facts *facts, struct artifacts *seen);

/* Ends: @r may be gone afterwards. */

/** run_conclude - judge the evidence and end the run. */
void run_conclude(struct run *r);
/** run_fail - it could not be run. */
void run_fail(struct run *r, const struct error *err);
/** run_drop - end it without an event: its record stays as it is, for the next daemon. */
void run_drop(struct run *r);
/** run_interrupt - a run in a resident runner gets SIGINT, then SIGKILL; any other SIGKILL. */
void run_interrupt(struct run *r);
/** run_reap - free it if it has ended and its box is gone. */
void run_reap(struct run *r);
/** run_orphan - the service is freed: no callback; the run goes with its box. */
void run_orphan(struct run *r);

/* The clock of a paused session. */

void run_freeze(struct run *r);
/** run_thaw - its clock goes on; @paused_us do not count for it. */
void run_thaw(struct run *r, uint64_t paused_us);
/** run_stop_clock - the daemon leaves: no deadline fires. */
void run_stop_clock(struct run *r);

/* run_box.c */

/** run_box_prepare - for a fresh box: name it, count its memory. ERR_UNAVAILABLE while draining. */
int run_box_prepare(struct run *r, struct error *err) attr_must_check;
/** run_box_leave - ENDED: place.leave without waiting for the loop. */
void run_box_leave(struct run *r);

/* run_service.c */

/** run_service_check_drained - a run is gone. */
void run_service_check_drained(struct run_service *s);
