/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a run is one program in one box, from the request to the outcome. There is one state
 * machine, one deadline, one way to limit and keep output, one judge and one record for all of
 * them. Runs differ in two things only:
 *
 *   where the box comes from   struct run_place (run_internal.h): a fresh box, from a pool or made
 *                              now, destroyed with the run (run_box.c); or the box of a session,
 *                              with its resident runner or a process of its own, which may have
 *                              been made by an earlier daemon (core/session/session_place.c)
 *   what is kept               of a one-shot run nothing: its caller gets the events as they
 *                              happen (struct run_events). Of a session's run the record, with
 *                              numbered events that any number of callers watch (run_record.h)
 *
 * States. run.c has the table of transitions; set_state is the only writer.
 *
 *   NEW        being made
 *   QUEUED     behind other runs of its session, or until its record is on disk
 *   WAITING    for a place among all runs (scheduler.h)
 *   STARTING   handed to its box; the timer bounds the start
 *   RUNNING    the program runs; the timer is its deadline
 *   STOPPING   interrupted at its deadline or by its caller; the timer is the grace period
 *   KILLING    killed; the timer bounds the wait for the agent's report
 *   GATHERING  the program has ended; the daemon looks for files it made; the timer bounds that
 *   ENDED      record and caller have the outcome; a fresh box is going down
 *
 * The deadline is the daemon's alone: it counts from the start of the program and needs no help of
 * agent or program (security rule LC-3). A program is handed over a second time only if nothing of
 * it can have run: run_box.c and session_box.c say when.
 *
 * This header is for one-shot runs; a session's runs start with session_execute.
 */

#include "base/error.h"
#include "core/request/run_request.h"
#include "core/run/outcome.h"
#include "core/run/run_service.h"
#include "driver/driver.h"
#include <stdbool.h>
#include <stddef.h>

struct run;
struct run_service;

/* For the caller of a one-shot run. Exactly one of on_end and on_error is called, once, from the
 * loop, never from inside run_start; after it the run is gone. */
struct run_events {
	void *ctx;
	/* The program runs. May be NULL. */
	void (*on_start)(void *ctx, const char *execution_id);
	/* Within the limit; bytes, not text. May be NULL. The outcome repeats all of it. */
	void (*on_output)(void *ctx, enum output_stream stream, const char *data, size_t len);
	/* The program ran, however it ended. @outcome is borrowed. */
	void (*on_end)(void *ctx, const struct outcome *outcome);
	/* The program could not be run. */
	void (*on_error)(void *ctx, const struct error *err);
};

/**
 * run_start - run a program once, in a box of its own. @request is borrowed for the call.
 * Return: 0, and *ret_run is valid until on_end or on_error was called; or -1 and nothing was
 * begun: ERR_INVALID with the field, ERR_BUSY if the queue is full, ERR_UNAVAILABLE while draining.
 */
int run_start(struct run_service *s, const struct run_request *request,
              const struct run_events *events, struct run **ret_run,
              struct error *err) attr_must_check;
/** run_stdin - for a run whose request left stdin open. Some is kept while the run waits. */
int run_stdin(struct run *r, const void *data, size_t len, bool end,
              struct error *err) attr_must_check;
/** run_signal - signal the program. ERR_CONFLICT if it does not run. */
int run_signal(struct run *r, int signo, struct error *err) attr_must_check;
/** run_cancel - end it; no callback follows. */
void run_cancel(struct run *r);
/** run_abort - end it; on_end follows with OUTCOME_CANCELLED and the output so far. A resident
 * runner is interrupted first. */
void run_abort(struct run *r);
