/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: when a run took each step, on the monotonic clock. Always noted (tens of nanoseconds), shown
 * on request.
 */

#include "base/clock.h"
#include <stdint.h>

enum trace_step {
	TRACE_RECEIVED, /* first request line arrived */
	TRACE_PARSED,
	TRACE_DECIDED,  /* policies applied */
	TRACE_ADMITTED, /* after queueing */
	TRACE_BOX,      /* taken from a pool or requested */
	TRACE_SENT,     /* program sent to the agent */
	TRACE_STARTED,  /* reported by the agent */
	TRACE_FIRST_OUTPUT,
	TRACE_DONE,   /* end reported by the agent */
	TRACE_JUDGED, /* files found, counters read, outcome judged */
	TRACE_RENDERED,
	TRACE_COUNT
};

struct trace {
	uint64_t us[TRACE_COUNT]; /* 0: did not happen, or unknown */
};

/** trace_note - now, unless already noted. */
static inline void trace_note(struct trace *t, enum trace_step step)
{
	if (t->us[step] == 0)
		t->us[step] = clock_us();
}
