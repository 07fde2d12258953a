/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: time. Timeouts use the monotonic clock; wall time is only for display. */

#include <stddef.h>
#include <stdint.h>

#define USEC_PER_SEC 1000000ULL
#define USEC_PER_MS  1000ULL

uint64_t clock_us(void);
uint64_t clock_real_ms(void);
/** clock_format_utc - "2026-11-15T04:19:36.123Z" into @ret_text. */
void clock_format_utc(uint64_t real_ms, char *ret_text, size_t size);
/** clock_format_day - "20261115" (UTC) into @ret_text. */
void clock_format_day(uint64_t real_ms, char *ret_text, size_t size);
