/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: when an execution took each of its steps, by the monotonic clock: to see where its time
 * goes. Noted always, because to ask the clock costs some tens of nanoseconds; told to who asks.
 */

#include <stdint.h>

enum trace_step {
	TRACE_RECEIVED,     /* the first line of the request was there */
	TRACE_PARSED,       /* it has been read and understood */
	TRACE_DECIDED,      /* policies have said what it gets */
	TRACE_ADMITTED,     /* it has a place; before that it was queued */
	TRACE_BOX,          /* a box was taken from its pool, or one was asked for */
	TRACE_SENT,         /* its program is on the way to the agent */
	TRACE_STARTED,      /* the agent says that it runs */
	TRACE_FIRST_OUTPUT, /* the first byte of output came */
	TRACE_DONE,         /* the agent says that it ended */
	TRACE_JUDGED,       /* files were looked for, counters read, the outcome judged */
	TRACE_RENDERED,     /* the answer is made */
	TRACE_COUNT
};

struct trace {
	uint64_t us[TRACE_COUNT]; /* 0: did not happen, or nobody knows */
};

/** trace_step_name - "received", "parsed" ... */
const char *trace_step_name(enum trace_step step);
/** trace_note - now, unless it was noted before. */
void trace_note(struct trace *t, enum trace_step step);
