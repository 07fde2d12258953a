/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the clocks that stamp files. The kernel has a coarse one that ticks every few milliseconds,
 * and the exact one, for a file whose change time was read since it was last set. So stamps
 * separate what happened before a moment from what happened after it only if the coarse clock has
 * since passed the exact time of that moment.
 */

#include <stdint.h>

/** file_clock_earliest - wall clock in ns: later changes have no earlier stamp. */
uint64_t file_clock_earliest(void);
/** file_clock_latest - wall clock in ns: earlier changes have no later stamp. */
uint64_t file_clock_latest(void);
/**
 * file_clock_wait_past - sleep until file_clock_earliest() is more than @ns, a recent
 * file_clock_latest(). Gives up after FILE_CLOCK_WAIT_MAX_US, because the clock may have been set
 * back. That is many ticks: a host that stalls the timekeeping CPU stalls the clock.
 */
#define FILE_CLOCK_WAIT_MAX_US (200 * 1000ULL)
void file_clock_wait_past(uint64_t ns);
