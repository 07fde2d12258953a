/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the circuit breaker of an engine. Pure: the caller has the clock.
 *
 *   CLOSED     the engine makes boxes. Left by breaker_open.
 *   OPEN       it is gone: every request for a box is refused at once. Left by breaker_try, at the
 *              next try's time.
 *   HALF_OPEN  it has been started and must show that it works. Left by breaker_close or
 *              breaker_open.
 *
 * Each failure doubles the time to the next try, until the engine has worked for a while.
 */

#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

enum breaker_state {
	BREAKER_CLOSED,
	BREAKER_OPEN,
	BREAKER_HALF_OPEN,
	BREAKER_STATE_COUNT
};

#define BREAKER_WHY_LEN 200

struct breaker {
	enum breaker_state state;
	unsigned failures;         /* in a row */
	uint64_t closed_us;        /* since when it works */
	uint64_t next_us;          /* OPEN: the next try; 0: there will be none */
	char why[BREAKER_WHY_LEN]; /* OPEN and HALF_OPEN: the last failure */
	uint64_t trips;            /* how often it was left CLOSED */
};

const char *breaker_state_name(enum breaker_state state);
/** breaker_open - it failed. Return: microseconds until the next try. */
uint64_t breaker_open(struct breaker *b, uint64_t now_us, const char *why);
/** breaker_give_up - OPEN for good. */
void breaker_give_up(struct breaker *b, const char *why);
void breaker_try(struct breaker *b);
void breaker_close(struct breaker *b, uint64_t now_us);
/** breaker_retry_s - whole seconds until it may work again; 0: not known. */
uint64_t breaker_retry_s(const struct breaker *b, uint64_t now_us);
/** breaker_check - ERR_UNAVAILABLE unless CLOSED: engine @name, why, and when it is tried again. */
int breaker_check(const struct breaker *b, const char *name, uint64_t now_us,
                  struct error *err) attr_must_check;
