/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the clocks that stamp files. The kernel has two: a coarse one that ticks every few
 * milliseconds, and, for a file whose change time was looked at since it was last set, the exact
 * one. So what happened before a moment and what happened after it are told apart by their stamps
 * only if the coarse clock has passed in between what the exact one said.
 */

#include <stdint.h>

/** file_clock_earliest - ns of the wall clock: what is changed from now on is not stamped earlier.
 */
uint64_t file_clock_earliest(void);
/** file_clock_latest - ns of the wall clock: what was changed until now is not stamped later. */
uint64_t file_clock_latest(void);
/** file_clock_wait_past - sleep until file_clock_earliest() is more than @ns, which
 * file_clock_latest() said not long ago. Gives up after FILE_CLOCK_WAIT_MAX_US: a clock that was
 * set back is nobody's to wait for. That is many ticks, because a host that holds up the processor
 * that keeps the time holds up the clock. */
#define FILE_CLOCK_WAIT_MAX_US (200 * 1000ULL)
void file_clock_wait_past(uint64_t ns);
