/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: executions on their way through a session. Part of session_internal.h. */

#include "base/list.h"
#include "core/run/run_internal.h"
#include "core/session/session.h"

/* The runner of one language in the box of a session. */
struct session_runner {
	struct list node; /* session.runners */
	const struct runner *language;
	uint32_t id;      /* 0: not running */
	bool unused;      /* it waited in a pool, and has run nothing */
	bool reset_due;   /* it died while nobody was looking: the next execution says so */
	uint32_t dead_id; /* that one: acknowledged with the execution that says so; 0: none */
};

/*
 * QUEUED    in the session's queue; if resumed, the box has it already
 * WAITING   its turn in the session; waits for a place among all executions
 * STARTING  handed over; the timer bounds this
 * RUNNING   the timer is its deadline
 * STOPPING  was interrupted, at its deadline or because it was cancelled; the timer is the grace
 * GATHERING it has ended; the files it made are looked for; the timer bounds that
 * KILLING   its runner or program was killed; the timer bounds the wait for the agent's word
 */
enum job_phase {
	JOB_QUEUED,
	JOB_WAITING,
	JOB_STARTING,
	JOB_RUNNING,
	JOB_STOPPING,
	JOB_KILLING,
	JOB_GATHERING,
};

struct session_job {
	struct list node; /* session.queue */
	struct session *session;
	struct run_record *record;   /* of executions; not ended while there is a job */
	struct run_request *request; /* owned; its code is in the record */
	size_t bytes;                /* what it counts for in queued_bytes */
	bool queued;                 /* counts as such for the tenant */
	struct policy_decision decision;
	enum job_phase phase;
	struct scheduler_entry entry;
	struct run *exec;              /* ephemeral, from its turn on */
	struct session_runner *runner; /* NULL: a program of its own */
	uint32_t runner_id, id;        /* in the box */
	uint32_t dead_runner;          /* whose loss it tells; 0: none */
	bool past;                     /* was asked for under an earlier daemon */
	bool resumed;                  /* was begun under it */
	uint64_t past_queue_us;        /* resumed: how long it waited; COUNTER_UNKNOWN */
	uint64_t stdin_taken;          /* resumed: what the agent has of the request's */
	bool stdin_ended;              /* resumed: it takes no more */
	bool retried;
	bool was_unused; /* the runner, before this */
	bool stdin_late; /* input came that is not in the request */
	struct gather gather;
	struct given_files given; /* GATHERING: files that came with it */
	bool held;                /* until its record is on the disk */
	struct error failure;     /* the runner could not be started */
	bool reset;
	uint64_t left[OUTPUT_COUNT]; /* bytes of output that are still kept */
	struct outcome outcome;
	struct outcome_evidence evidence;
	struct box_counters before;
	uint64_t arrived_us, admitted_us, started_us;
};

/* session_execute.c */

/** session_pump - start what may start. */
void session_pump(struct session *session);
/** session_job_restore - @record was asked for under an earlier daemon: it is to be done, or is
 * being done in the box. To the end of the queue. */
int session_job_restore(struct session *session, struct run_record *record,
                        const struct run_request *request, struct error *err) attr_must_check;
/** session_job_unqueue - it waits no more. */
void session_job_unqueue(struct session_job *job);
/** session_job_finish - the record has ended: let go of the job, and go on with the next. */
void session_job_finish(struct session_job *job);
/** session_job_free - it is in no list. */
void session_job_free(struct session_job *job);
/** session_job_conclude - the evidence is in: judge, end the record, finish. */
void session_job_conclude(struct session_job *job);
/** session_job_fail - it could not be run. */
void session_job_fail(struct session_job *job, const struct error *err);
/** session_end_jobs - the session is over. @lost: the box was lost, else the owner ended it;
 * @failure: the box was never there. */
void session_end_jobs(struct session *session, bool lost, const struct error *failure);

/* session_job.c */

/** session_job_start - in the session's box: get a place, then hand over. */
void session_job_start(struct session_job *job);
/** session_job_stop - interrupt, then kill; the reason is in the evidence. */
void session_job_stop(struct session_job *job);
/** session_job_hand_over - (again) to the box. */
void session_job_hand_over(struct session_job *job);
/** session_job_started - the agent says so. */
void session_job_started(struct session_job *job);
/** session_job_gather - it has ended: look for its files, if there can be any, and conclude. */
void session_job_gather(struct session_job *job, uint64_t since_ns);
void session_job_timer(void *ctx);
/** session_job_set_timer - @delay_us 0: stop it. */
void session_job_set_timer(struct session *session, uint64_t delay_us);
int session_job_stdin(struct session_job *job, const void *data, size_t len, bool end,
                      struct error *err) attr_must_check;

/* session_once.c */

void session_once_start(struct session_job *job);
/** session_once_may_begin - that it may is on the disk, or its box knows. Return: false: it has
 * ended, or session_pump is called when it may. */
bool session_once_may_begin(struct session_job *job);

/* files.c */

/** session_files_end - all operations fail. */
void session_files_end(struct session *session, const struct error *err);
/** session_files_drop - they end, and nobody is told. */
void session_files_drop(struct session *session);
/** session_files_go_on - the box of an ephemeral session is gone: make another where one is asked
 * for. */
void session_files_go_on(struct session *session);
/** session_box_spent - the execution that an ephemeral session's box was for is over. */
void session_box_spent(struct session *session);
