/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: when a run took each step, by the monotonic clock. Always noted (reading the clock costs
 * some tens of nanoseconds), shown on request.
 */

#include "base/clock.h"
#include <stdint.h>

enum trace_step {
	TRACE_RECEIVED,     /* the first line of the request arrived */
	TRACE_PARSED,       /* the request is parsed */
	TRACE_DECIDED,      /* policies have been applied */
	TRACE_ADMITTED,     /* it has a place; it was queued before */
	TRACE_BOX,          /* a box was taken from a pool or requested */
	TRACE_SENT,         /* its program is on the way to the agent */
	TRACE_STARTED,      /* the agent reported the start */
	TRACE_FIRST_OUTPUT, /* the first byte of output arrived */
	TRACE_DONE,         /* the agent reported the end */
	TRACE_JUDGED,       /* files found, counters read, outcome judged */
	TRACE_RENDERED,     /* the answer is rendered */
	TRACE_COUNT
};

struct trace {
	uint64_t us[TRACE_COUNT]; /* 0: did not happen, or unknown */
};

/** trace_note - now, unless it was noted before. */
static inline void trace_note(struct trace *t, enum trace_step step)
{
	if (t->us[step] == 0)
		t->us[step] = clock_us();
}
