/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: let time pass on a loop, real or virtual (virtual_time.c). */

#include "io/loop.h"

struct loop_pass {
	struct loop *loop;
	bool over;
};

static inline void loop_pass_end(void *ctx)
{
	struct loop_pass *pass = ctx;

	pass->over = true;
	/* The timer may be due before the round waits, which must not wait for another then. */
	loop_stop(pass->loop);
}

/** loop_pass - run @loop for @us. */
static inline void loop_pass(struct loop *loop, uint64_t us)
{
	struct loop_pass pass = {loop, false};
	struct timer *t = timer_new(loop, loop_pass_end, &pass);

	timer_start(t, us);
	while (!pass.over)
		loop_run_once(loop, true);
	timer_free(t);
}
