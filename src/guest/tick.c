/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/tick.h"

#include <time.h>

#include "base/clock.h"

#define STEP_NS (200 * 1000L)

static uint64_t read_clock(clockid_t id)
{
	struct timespec t = {0};

	(void)clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

uint64_t tick_earliest(void)
{
	return read_clock(CLOCK_REALTIME_COARSE);
}

uint64_t tick_latest(void)
{
	return read_clock(CLOCK_REALTIME);
}

void tick_after(uint64_t ns)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	uint64_t end = clock_us() + TICK_MAX_US;

	while (tick_earliest() <= ns && clock_us() < end)
		(void)nanosleep(&step, NULL); /* woken early: it looks again */
}
