/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: whether a server is asked at all. After FAILURES_MAX calls in a row without an answer the
 * breaker is open for a while, which doubles with each failed attempt; then one call tries. Pure:
 * the caller has the clock.
 */

#include <stdbool.h>
#include <stdint.h>

#define BREAKER_FAILURES_MAX 3
#define BREAKER_WAIT_US      1000000ULL
#define BREAKER_WAIT_MAX_US  30000000ULL

struct breaker {
	unsigned failures; /* in a row */
	uint64_t wait_us;
	uint64_t next_us; /* open until then */
	bool is_trying;   /* half open: one call is under way */
};

/** breaker_allows - whether to begin a call now; its end must be reported. */
bool breaker_allows(struct breaker *b, uint64_t now_us);
void breaker_succeeded(struct breaker *b);
void breaker_failed(struct breaker *b, uint64_t now_us);
/** breaker_abandoned - the call was cancelled: it says nothing. */
void breaker_abandoned(struct breaker *b);
/** breaker_wait_us - until the next attempt; 0: closed, or one may be made. */
uint64_t breaker_wait_us(const struct breaker *b, uint64_t now_us);
