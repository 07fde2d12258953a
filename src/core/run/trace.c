/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/trace.h"

#include "base/attr.h"
#include "base/clock.h"

static const char *const names[] = {
	[TRACE_RECEIVED] = "received", [TRACE_PARSED] = "parsed",
	[TRACE_DECIDED] = "decided",   [TRACE_ADMITTED] = "admitted",
	[TRACE_BOX] = "box",           [TRACE_SENT] = "sent",
	[TRACE_STARTED] = "started",   [TRACE_FIRST_OUTPUT] = "first_output",
	[TRACE_DONE] = "done",         [TRACE_JUDGED] = "judged",
	[TRACE_RENDERED] = "rendered",
};
static_assert(ARRAY_SIZE(names) == TRACE_COUNT, "every step has a name");

const char *trace_step_name(enum trace_step step)
{
	return names[step];
}

void trace_note(struct trace *t, enum trace_step step)
{
	if (t->us[step] == 0)
		t->us[step] = clock_us();
}
