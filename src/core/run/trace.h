/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: when a run took each step, on the monotonic clock. Always noted (tens of nanoseconds), shown
 * on request.
 */

#include "base/clock.h"
#include <stdint.h>

enum trace_step {
	TRACE_RECEIVED,
	TRACE_PARSED,
	TRACE_DECIDED,
	TRACE_ADMITTED,
	TRACE_BOX,
	TRACE_SENT,
	TRACE_STARTED,
	TRACE_FIRST_OUTPUT,
	TRACE_DONE,
	TRACE_JUDGED,
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
