/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/file_clock.h"

#include <time.h>

#include "base/clock.h"

#define STEP_NS (200 * 1000L)

static uint64_t read_clock(clockid_t id)
{
	struct timespec t = {0};

	(void)clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

uint64_t file_clock_earliest(void)
{
	return read_clock(CLOCK_REALTIME_COARSE);
}

uint64_t file_clock_latest(void)
{
	return read_clock(CLOCK_REALTIME);
}

void file_clock_wait_past(uint64_t ns)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	uint64_t end = clock_us() + FILE_CLOCK_WAIT_MAX_US;

	while (file_clock_earliest() <= ns && clock_us() < end)
		(void)nanosleep(&step, NULL); /* woken early: loop again */
}
