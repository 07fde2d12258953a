/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the clocks that stamp files. The kernel has a coarse one that ticks every few milliseconds,
 * and an exact one, for a file whose change time was read since it was last set. So stamps separate
 * before from after a moment only once the coarse clock has passed the moment's exact time.
 */

#include <stdint.h>

/** file_clock_earliest - wall clock in ns: later changes have no earlier stamp. */
uint64_t file_clock_earliest(void);
/** file_clock_latest - wall clock in ns: earlier changes have no later stamp. */
uint64_t file_clock_latest(void);
/**
 * file_clock_wait_past - sleep until file_clock_earliest() is more than @ns, a recent
 * file_clock_latest(). Gives up after FILE_CLOCK_WAIT_MAX_US (many ticks): the clock may have been
 * set back, or the host stalls its timekeeping CPU.
 */
#define FILE_CLOCK_WAIT_MAX_US (200 * 1000ULL)
void file_clock_wait_past(uint64_t ns);
