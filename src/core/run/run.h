/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a run is one program in one box, from request to outcome. All runs share the state machine,
 * deadline, output limits, judge and record. They differ in two things:
 *
 *   where the box comes from   struct run_place (run_internal.h): a fresh box, from a pool or made
 *                              now, destroyed with the run (run_box.c); or a session's box,
 * possibly made by an earlier daemon (core/session/session_box.c) what is kept one-shot: nothing;
 * its one watcher gets events as they happen. Session: the record, with numbered events, for any
 * watchers
 *
 * Both have a record (run_record.h), watched and cancelled the same way.
 *
 * States. run.c has the transition table; set_state is the only writer.
 *
 *   QUEUED     behind other runs of its session, or until its record is on disk
 *   WAITING    for a place among all runs (scheduler.h)
 *   STARTING   handed to its box; the timer bounds the start
 *   RUNNING    the timer is the deadline
 *   STOPPING   interrupted at its deadline or by its caller; the timer is the grace period
 *   KILLING    killed; the timer bounds the wait for the agent's report
 *   GATHERING  the program has ended; the timer bounds the search for its files
 *   ENDED      record and caller have the outcome; a fresh box is being destroyed
 *
 * The daemon alone enforces the deadline, from the program's start, without help of agent or
 * program (security rule LC-3). A program is handed over again only if nothing of it can have run:
 * see run_box.c and session_box.c.
 *
 * A session's runs start with session_execute.
 */

#include "base/error.h"
#include "core/request/run_request.h"
#include "core/run/run_service.h"

struct run_record;
struct run_service;

/**
 * run_start - run a program once, in its own box. @request is borrowed for the call. Return: 0 and
 * *ret_record: call run_watch before the loop continues; valid until END is delivered; run_unwatch
 * ends the program. Or -1 and nothing was begun: ERR_INVALID with the field, ERR_BUSY if the queue
 * is full, ERR_UNAVAILABLE while draining.
 */
int run_start(struct run_service *s, const struct run_request *request,
              struct run_record **ret_record, struct error *err) attr_must_check;
