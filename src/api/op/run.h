/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: run a program for a caller. The only place in api/ that starts, watches or cancels one. A
 * program runs once in a new box, or in a session, which keeps its record; the events are the same.
 * run_reply.h answers HTTP requests with them.
 *
 * On the loop only. Nothing here knows HTTP.
 */

#include "base/attr.h"
#include "base/error.h"
#include "driver/driver.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct op_run;
struct outcome;
struct principal;
struct router;
struct run_record;
struct run_request;
struct session;

/* How a program ended. Borrowed for the call. */
struct op_run_end {
	const struct outcome *outcome; /* NULL: the program could not be run; see @failure */
	const struct error *failure;
	const struct run_record *record; /* NULL: without a session */
	const char *execution_id;
	const char *session_id; /* NULL: none */
	bool session_reset;     /* the session has lost its variables */
	uint64_t number;        /* of the event; 0: without a session */
};

/* From the loop. Events of a session are numbered from 1, others have 0. */
struct op_run_events {
	void *ctx;
	/* The program runs. May be NULL. */
	void (*on_start)(void *ctx, const char *execution_id, uint64_t number);
	/* Bytes, not text. May be NULL. */
	void (*on_output)(void *ctx, enum output_stream stream, const char *data, size_t len,
	                  uint64_t number);
	/* Once; the run is gone then. */
	void (*on_end)(void *ctx, const struct op_run_end *end);
};

/* Borrowed for the call. */
struct op_run_start {
	struct session *session; /* NULL: a new box */
	const struct run_request *request;
	const struct principal *who;
	const char *request_id; /* for logs and audit */
};

/** op_run_start - Return: 0; -1 with *err: nothing was started. Call op_run_watch next. */
int op_run_start(struct router *r, const struct op_run_start *start, struct op_run **ret_run,
                 struct error *err) attr_must_check;
/** op_run_of - a program that a session has started before. */
struct op_run *op_run_of(struct run_record *record);
/** op_run_watch - all events, past ones first. @run is valid until on_end was called. */
void op_run_watch(struct op_run *run, const struct op_run_events *events);
/** op_run_record - NULL: without a session. */
struct run_record *op_run_record(const struct op_run *run);
/** op_run_cancel - end the program. No callback follows; @run is freed. */
void op_run_cancel(struct op_run *run);
/** op_run_leave - as op_run_cancel, but a session's program goes on: its caller can come back. */
void op_run_leave(struct op_run *run);
