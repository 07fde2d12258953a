/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/tick.h"

#include <time.h>

#include "base/clock.h"

#define STEP_NS (200 * 1000L)

/* Files get their times from the coarse clock: compared with a finer one a new file may be old. */
uint64_t tick_now(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

void tick_after(uint64_t ns)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	uint64_t end = clock_us() + TICK_MAX_US;

	while (tick_now() <= ns && clock_us() < end)
		(void)nanosleep(&step, NULL); /* woken early: it looks again */
}
