/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what exec*.c share, with session*.c in parts, and nobody else sees. */

#include "base/list.h"
#include "core/policy/policy.h"
#include "core/run/outcome.h"
#include "core/run/run.h"
#include "core/run/run_audit.h"
#include "core/tenant/principal.h"
#include "core/tenant/scheduler.h"
#include "core/tenant/tenant.h"

struct timer;

struct run_service {
	struct run_service_config config; /* what it points to is borrowed */
	struct policy_rules rules;
	struct scheduler scheduler;
	struct list all; /* struct run.node; walked only when draining */
	size_t boxes;    /* executions that have a box */
	bool draining;
	void (*on_drained)(void *ctx); /* NULL: nobody asked, or told */
	void *drained_ctx;
	struct pools *pools;       /* owned */
	struct timer *drain_timer; /* end of patience, or (nothing left) the moment to tell */
};

/*
 * NEW       being made, inside run_start
 * QUEUED    waits for its turn; owns a copy of the request
 * BUILDING  admitted: box and program were asked for, the program has not started;
 *           the timer bounds this
 * RUNNING   the program runs; the timer is its deadline
 * ENDED     the answer is settled and given (or the timer is about to give it); the box, if there
 *           is one, is going down. Freed when the answer was given and the box is gone.
 */
enum run_state {
	RUN_NEW,
	RUN_QUEUED,
	RUN_BUILDING,
	RUN_RUNNING,
	RUN_ENDED,
	RUN_COUNT
};

struct run {
	struct list node;            /* run_service.all */
	struct run_service *service; /* NULL: freed before the box was gone */
	struct scheduler_entry entry;
	enum run_state state; /* written by set_state alone */
	struct run_events events;
	bool muted;     /* the caller wants no more callbacks */
	bool answering; /* ENDED, but the answer is still to be given, by the timer */
	bool leaving;   /* ENDED, but its box and its place are still to be given up, by the loop */
	bool announced; /* on_start was called */
	/* owned; QUEUED, and with a box of a pool, until the program is known to run: it may have
	 * to be asked for again */
	struct run_request *kept;
	bool pooled;                /* its box is of a pool */
	uint64_t pool_key;          /* of that */
	struct box_counters before; /* what that had used */
	struct tenant *tenant;      /* held; NULL: has no quotas */
	bool queued;                /* counts as such for the tenant */
	char tenant_name[TENANT_NAME_MAX + 1];
	char key_id[RUN_AUDIT_KEY_LEN];
	char code_hash[RUN_AUDIT_HASH_LEN]; /* "": nobody keeps a log */
	struct policy_decision decision;
	struct image *image;  /* a reference: the root of its box; NULL: no import */
	struct box *box;      /* NULL before it was asked for and after it is gone */
	struct timer *timer;  /* owned */
	struct error failure; /* set: it could not be run */
	struct outcome outcome;
	struct outcome_evidence evidence;
	uint64_t arrived_us, admitted_us, started_us;
	struct given_files given; /* files that came with it */
	struct gather gather;     /* the program has ended; its files are being looked for */
};

/** run_begin - run_start; @session: policies of the session whose execution it is, which is not
 * refused for the length of the queue. NULL: it has none, and its policies are to be chosen. */
int run_begin(struct run_service *s, const struct run_request *request,
              const struct run_events *events, const struct policy_stack *session,
              struct run **ret_run, struct error *err) attr_must_check;
#define EXEC_ID 1 /* one program per box: any number that is not 0 */

/** run_build - a box for @e, and the program into it. */
int run_build(struct run *e, const struct run_request *request, const struct box_events *events,
              struct error *err) attr_must_check;
/** run_build_again - the box turned out to be of no use before its program ran, and it was one of
 * a pool's: make another. Return: false: there is nothing more to try; *err may be set, else the
 * loss stands. */
bool run_build_again(struct run *e, const struct box_events *events,
                     struct error *err) attr_must_check;
/** run_service_tenant - whose @name (NULL: TENANT_DEFAULT) it is; NULL where there are no tenants.
 */
struct tenant *run_service_tenant(const struct run_service *s, const char *name);
/** run_service_choose - the policies that hold for @tenant and a request that names @asked;
 * borrowed. */
int run_service_choose(const struct run_service *s, const struct tenant *tenant, const char *asked,
                       struct policy_stack *ret_stack, struct error *err) attr_must_check;
/** run_orphan - the service goes away: no callback, and the box takes the execution with it. */
void run_orphan(struct run *e);
/** run_service_forget - called by an execution that is about to be freed. */
void run_service_forget(struct run_service *s, struct run *e);
