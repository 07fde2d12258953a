/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the clock that stamps files. It ticks every few milliseconds, so that what happened just
 * before a moment and just after it may have the same time. Whoever has to tell them apart lets a
 * tick pass in between.
 */

#include <stdint.h>

/** tick_now - ns of the wall clock, as the kernel would stamp a file now. */
uint64_t tick_now(void);
/** tick_after - sleep until tick_now() is more than @ns, which was now not long ago. Gives up after
 * TICK_MAX_US: a clock that was set back is nobody's to wait for. That is many ticks, because a
 * host that holds up the processor that keeps the time holds up the clock. */
#define TICK_MAX_US (200 * 1000ULL)
void tick_after(uint64_t ns);
